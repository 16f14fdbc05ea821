package oncecache

// sortBy sorts n things, in place, by a heap. It is for rare use: package slices
// would add 6,000 bytes of code to every program for each type, used or not.
func sortBy(n int, less func(i, j int) bool, swap func(i, j int)) {
	sink := func(i, n int) {
		for {
			child := 2*i + 1
			if child >= n {
				return
			}
			if child+1 < n && less(child, child+1) {
				child++
			}
			if !less(i, child) {
				return
			}
			swap(i, child)
			i = child
		}
	}
	for i := n/2 - 1; i >= 0; i-- {
		sink(i, n)
	}
	for n--; n > 0; n-- {
		swap(0, n)
		sink(0, n)
	}
}

func sortTexts(s []string) {
	sortBy(len(s), func(i, j int) bool { return s[i] < s[j] }, func(i, j int) { s[i], s[j] = s[j], s[i] })
}
