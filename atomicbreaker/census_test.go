package atomicbreaker

import (
	"hash/maphash"
	"math"
	"sync"
	"testing"
	"time"
)

func people(c *census, from, to int) {
	seed := maphash.MakeSeed()
	for i := from; i < to; i++ {
		c.see(maphash.Comparable(seed, i))
	}
}

func TestCensus(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 5, 10, 30, 100, 1_000, 2_500, 3_000, 10_000, 60_000} {
		bad := 0
		for range 10 {
			c := newCensus()
			people(c, 0, n)
			if got := float64(c.estimate(0)); math.Abs(got-float64(n)) > max(0.1*float64(n), 1) {
				bad++
				t.Logf("%d keys are estimated as %v", n, got)
			}
		}
		// Three standard errors and more: one in a thousand.
		if bad > 1 {
			t.Errorf("%d of 10 estimates of %d keys are wrong by a tenth or one", bad, n)
		}
	}
}

// A key that is seen again writes nothing, from however many goroutines.
func TestCensusCountsKeysOnce(t *testing.T) {
	seed := maphash.MakeSeed()
	c := newCensus()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2_000 {
				c.see(maphash.Comparable(seed, i%200))
			}
		})
	}
	all.Wait()
	again := newCensus()
	for i := range 200 {
		again.see(maphash.Comparable(seed, i))
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
		s := new(sketch)
		s.see(hash)
		if got := s[hash>>(64-sketchBits)].Load(); got != want {
			t.Errorf("the rank of %#x is %d, want %d", hash, got, want)
		}
	}
}

// Keys that are not used any more are forgotten after one to two periods in
// which somebody asked.
func TestCensusForgets(t *testing.T) {
	c := newCensus()
	people(c, 0, 1000)
	if n := c.estimate(censusPeriod); n < 900 {
		t.Fatalf("%d of 1000 keys after a period", n)
	}
	people(c, 0, 10)
	if n := c.estimate(2*censusPeriod - 1); n < 900 {
		t.Fatalf("%d of 1000 keys before the second period has passed", n)
	}
	if n := c.estimate(2 * censusPeriod); n != 10 {
		t.Fatalf("%d keys after two periods, want the 10 of the last", n)
	}
	if n := c.estimate(2*censusPeriod + time.Hour); n != 0 {
		t.Fatalf("%d keys after a period without any", n)
	}
}
