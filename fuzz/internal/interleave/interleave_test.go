//go:build modelcheck

package interleave

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// tally is what the programs of these tests share: a number and a clock.
type tally struct {
	n     atomics.Int64
	start time.Time
}

type (
	tallyOp     = Op[*tally, *int]
	tallyCaller = Caller[*tally, *int]
)

func oneMore(add func(*tally) int64) tallyOp {
	return tallyOp{Name: "one more", Do: func(c *tallyCaller) {
		c.Once("one more", func() any { return add(c.Real) }, func(s *int, _ int) any { *s++; return *s })
	}}
}

var (
	adds   = oneMore(func(t *tally) int64 { return t.n.Add(1) })
	stores = oneMore(func(t *tally) int64 { n := t.n.Load() + 1; t.n.Store(n); return n })
	exits  = oneMore(func(t *tally) int64 { t.n.Add(1); runtime.Goexit(); return 0 })
	reads  = tallyOp{Name: "read", Do: func(c *tallyCaller) {
		c.Once("read", func() any { return c.Real.n.Load() }, func(s *int, _ int) any { return *s })
	}}
)

func tallies(prelude []tallyOp, threads ...[]tallyOp) Program[*tally, *int] {
	return Program[*tally, *int]{
		New:     func() *tally { return &tally{start: atomics.Now()} },
		Model:   func() *int { return new(int) },
		Prelude: prelude, Threads: threads, After: []tallyOp{reads}, Tick: time.Second,
	}
}

func TestRightIsExplained(t *testing.T) {
	p := tallies([]tallyOp{adds, stores}, []tallyOp{adds, reads}, []tallyOp{adds}, []tallyOp{reads})
	if r := p.Check(t, Quick); r.Coverage != All {
		t.Errorf("%+v", r)
	}
}

func TestWrongIsNotExplained(t *testing.T) {
	p := tallies(nil, []tallyOp{stores}, []tallyOp{stores, reads})
	r := p.Explore(Quick)
	if !strings.Contains(r.Failure, "no order of these moments is right") {
		t.Errorf("lost updates pass: %+v", r)
	}
	if r := p.Sample(100, nil); r.Failure == "" {
		t.Error("they pass in all samples")
	}
	one := p.Sequential()
	if r := one.Explore(Quick); r.Failure != "" || r.Schedules != 1 {
		t.Errorf("there are none without threads: %+v", r)
	}
}

// An operation that ends its goroutine is not the last of its thread.
func TestExitsAreResults(t *testing.T) {
	one := Op[*tally, *int]{Name: "exits", Do: func(c *tallyCaller) {
		c.Once("exits", func() any { c.Real.n.Add(1); runtime.Goexit(); return 0 },
			func(s *int, _ int) any { *s++; return Exits })
	}}
	panics := Op[*tally, *int]{Name: "panics", Do: func(c *tallyCaller) {
		c.Once("panics", func() any { c.Real.n.Add(1); panic("oh") },
			func(s *int, _ int) any { *s++; return Panics("oh") })
	}}
	reached := Reached{}
	p := tallies([]tallyOp{one}, []tallyOp{one, panics, one, reads}, []tallyOp{panics})
	p.Check(t, Quick)
	p.Sample(10, reached)
	reached.Require(t, "exits = exits", "panics = panics: oh", "read = 4", "read = 5")
	wrong := tallies(nil, []tallyOp{exits}, []tallyOp{reads})
	if wrong.Explore(Quick).Failure == "" {
		t.Error("an exit passes for a result")
	}
}

// An operation that takes effect at two moments, between which others come, or
// not. To be right it must be explained in the order in which it says.
func TestMomentsAreOrdered(t *testing.T) {
	for name, follows := range map[string]bool{"in order": true, "in any order": false} {
		twice := tallyOp{Name: "twice", Do: func(c *tallyCaller) {
			from := c.Begin()
			second, first := c.Real.n.Add(1), c.Real.n.Add(1) // remembered the wrong way round
			to := c.End()
			moment := func(v int64, follows *Moment[*int]) *Moment[*int] {
				return c.Add(&Moment[*int]{Op: "one of two", From: from, To: to, Follows: follows,
					Explains: func(s *int, _ int) bool { *s++; return int64(*s) == v }})
			}
			earlier := moment(first, nil)
			if !follows {
				earlier = nil
			}
			moment(second, earlier)
		}}
		p := tallies([]tallyOp{adds}, []tallyOp{twice}, []tallyOp{adds})
		if failed := p.Explore(Quick).Failure != ""; failed != follows {
			t.Errorf("%s: failed = %v", name, failed)
		}
	}
}

// What the clock shows in an operation is what it showed at some time in it.
func TestTimeIsThatOfTheOperation(t *testing.T) {
	time := func(skew int64) tallyOp {
		return tallyOp{Name: "time", Do: func(c *tallyCaller) {
			c.Once("time", func() any { return int64(atomics.Since(c.Real.start).Seconds()) + skew },
				func(_ *int, ticks int) any { return ticks })
		}}
	}
	tick := tallyOp{Name: "tick", Do: func(c *tallyCaller) { c.Tick() }}
	right := tallies([]tallyOp{tick, time(0)}, []tallyOp{time(0), time(0)}, []tallyOp{tick, time(0), tick})
	right.Check(t, Quick)
	wrong := tallies(nil, []tallyOp{time(1)}, []tallyOp{tick})
	if wrong.Explore(Quick).Failure == "" {
		t.Error("a time yet to come passes")
	}
}
