//go:build !modelcheck

package atomicbreaker

import (
	"hash/maphash"
	"math"
	"sync"
	"testing"
	"time"
)

// people lets a distinctKeys see keys. Their hashes depend on nothing else: what the
// tests ask for is true of most seeds and not of all.
func people(c *distinctKeys, seed, from, to int) {
	for i := from; i < to; i++ {
		c.add(hashOf(seed, i))
	}
}

// hashOf is the output of SplitMix64 (Steele, Lea and Flood, 2014) at a place
// that is the seed's.
func hashOf(seed, i int) uint64 {
	h := (uint64(seed)<<32 + uint64(i) + 1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// The error is that of the method: HyperLogLog's standard error with 1024
// registers is 3.25 %, and that of linear counting less. It is largest, and
// estimates are too high by one percent, where the one takes over from the other,
// at 2560 keys.
func TestDistinctKeys(t *testing.T) {
	const seeds = 40
	for _, n := range []int{0, 1, 2, 3, 5, 10, 30, 100, 1_000, 2_000, 2_500, 3_000, 5_000, 20_000} {
		mean, square := 0.0, 0.0
		for seed := range seeds {
			c := newDistinctKeys()
			people(c, seed, 0, n)
			off := float64(c.estimate(0)) - float64(n)
			mean += off / seeds
			square += off * off / seeds
		}
		if math.Sqrt(square) > 0.05*float64(n)+0.5 || math.Abs(mean) > 0.02*float64(n)+0.1 {
			t.Errorf("estimates of %d keys are off by %.3g, and by %.3g on average", n, math.Sqrt(square), mean)
		}
	}
}

// Two of ten keys share a register in one of 23 seeds, and are taken for one.
// Estimates of so few are right in nearly all, and nearly all others by one.
func TestDistinctKeysOfFewKeys(t *testing.T) {
	const seeds = 600
	for n, share := range map[int]float64{1: 1, 2: 0.999, 5: 0.990, 10: 0.957, 20: 0.830} { // by counting how balls fall into 1024 bins
		right, near := 0, 0
		for seed := range seeds {
			c := newDistinctKeys()
			people(c, seed, 0, n)
			switch off := int(c.estimate(0)) - n; {
			case off == 0:
				right++
			case off == 1 || off == -1:
				near++
			}
		}
		if got := float64(right) / seeds; math.Abs(got-share) > 0.03 {
			t.Errorf("%d keys are counted right in %v of all cases, want %v", n, got, share)
		}
		if right+near < seeds*98/100 {
			t.Errorf("%d keys are counted to one in %d of %d cases", n, right+near, seeds)
		}
	}
}

// A key that is seen again writes nothing, from however many goroutines.
func TestDistinctKeysCountsKeysOnce(t *testing.T) {
	seed := maphash.MakeSeed()
	c := newDistinctKeys()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2_000 {
				c.add(maphash.Comparable(seed, i%200))
			}
		})
	}
	all.Wait()
	again := newDistinctKeys()
	for i := range 200 {
		again.add(maphash.Comparable(seed, i))
	}
	if a, b := c.estimate(0), again.estimate(0); a != b {
		t.Fatalf("200 keys are estimated as %d and as %d", a, b)
	}
}

// Ranks are right where hashes are extreme.
func TestSketchRanks(t *testing.T) {
	for hash, want := range map[uint64]uint32{
		0:                    55,
		1:                    54,
		1 << 53:              1,
		1 << 52:              2,
		math.MaxUint64 >> 10: 1,
		math.MaxUint64:       1,
	} {
		s := new(hyperLogLog)
		s.add(hash)
		if got := s[hash>>(64-registerBits)].Load(); got != want {
			t.Errorf("the rank of %#x is %d, want %d", hash, got, want)
		}
	}
}

// Keys that are not used any more are forgotten after one to two periods in
// which somebody asked.
func TestDistinctKeysForgets(t *testing.T) {
	ten := newDistinctKeys() // what ten keys are taken for, whose registers may be fewer
	people(ten, 1, 0, 10)
	want := ten.estimate(0)

	c := newDistinctKeys()
	people(c, 1, 0, 1000)
	if n := c.estimate(distinctPeriod); n < 900 {
		t.Fatalf("%d of 1000 keys after a period", n)
	}
	people(c, 1, 0, 10)
	if n := c.estimate(2*distinctPeriod - 1); n < 900 {
		t.Fatalf("%d of 1000 keys before the second period has passed", n)
	}
	if n := c.estimate(2 * distinctPeriod); n != want {
		t.Fatalf("%d keys after two periods, want the %d of the last", n, want)
	}
	if n := c.estimate(2*distinctPeriod + time.Hour); n != 0 {
		t.Fatalf("%d keys after a period without any", n)
	}
}
