package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

const (
	lookups = 1_000_000
	keys    = 100_000
)

// trace is a sequence of keys, for caches of some sizes.
type trace struct {
	name    string
	entries []int
	keys    func(entries int) []int
}

func traces() (all []trace) {
	for _, s := range []float64{0.8, 0.9, 1, 1.1} {
		all = append(all, trace{fmt.Sprintf("Zipf %.1f", s), []int{keys / 100, keys / 10}, func(int) []int { return zipf(s) }})
	}
	for _, s := range []float64{0.8, 1} {
		all = append(all, trace{fmt.Sprintf("Zipf %.1f and scans", s), []int{keys / 100, keys / 10}, func(int) []int { return scanned(zipf(s)) }})
	}
	for _, part := range []float64{0.9, 1.1, 2} {
		all = append(all, trace{fmt.Sprintf("loop over %.1f times the entries", part), []int{1000}, func(entries int) []int {
			return loop(int(part * float64(entries)))
		}})
	}
	return all
}

// zipf returns look-ups of keys, of which the i-th is asked for in proportion to 1/iˢ.
func zipf(s float64) []int {
	sums, sum := make([]float64, keys), 0.0
	for i := range sums {
		sum += 1 / math.Pow(float64(i+1), s)
		sums[i] = sum
	}
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]int, lookups)
	for i := range all {
		all[i] = sort.SearchFloat64s(sums, rng.Float64()*sum)
	}
	return all
}

// scanned puts a scan of 10,000 keys, which are asked for once, after each 40,000 of all.
func scanned(all []int) (with []int) {
	next := keys
	for i, k := range all {
		with = append(with, k)
		if i%40_000 == 39_999 {
			for range 10_000 {
				with = append(with, next)
				next++
			}
		}
	}
	return with
}

// loop asks for n keys, one after the other, again and again.
func loop(n int) []int {
	all := make([]int, lookups)
	for i := range all {
		all[i] = i % n
	}
	return all
}
