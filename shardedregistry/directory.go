package shardedregistry

// directory numbers keys in the order in which they are added. It belongs to
// one goroutine until it is complete, and then may be read by all.
type directory[K comparable] struct {
	keys []hkey[K]

	// slots holds the numbers of the keys plus 1, each in the first slot that
	// was free from that of its hash on, and 0 elsewhere. Their count is a
	// power of two, and at least half of them are free.
	slots []int
}

// makeDirectory returns an empty directory with room for n keys.
func makeDirectory[K comparable](n int) directory[K] {
	return directory[K]{make([]hkey[K], 0, n), make([]int, ceilPowerOfTwo(2*n+2))}
}

// find returns the number of k, or -1.
func (d *directory[K]) find(k hkey[K]) int {
	if len(d.slots) == 0 {
		return -1
	}
	return d.slots[d.slot(k)] - 1
}

// add returns the number of k, and whether it is new.
func (d *directory[K]) add(k hkey[K]) (i int, isNew bool) {
	at := d.slot(k)
	if d.slots[at] != 0 {
		return d.slots[at] - 1, false
	}
	if 2*len(d.keys)+2 > len(d.slots) {
		d.grow()
		at = d.slot(k)
	}
	d.keys = append(d.keys, k)
	d.slots[at] = len(d.keys)
	return len(d.keys) - 1, true
}

// slot returns the slot of k, or the one where it belongs.
func (d *directory[K]) slot(k hkey[K]) int {
	mask := len(d.slots) - 1
	for at := int(k.hash) & mask; ; at = (at + 1) & mask {
		if i := d.slots[at]; i == 0 || d.keys[i-1] == k {
			return at
		}
	}
}

func (d *directory[K]) grow() {
	d.slots = make([]int, 2*len(d.slots))
	for i, k := range d.keys {
		d.slots[d.slot(k)] = i + 1
	}
}
