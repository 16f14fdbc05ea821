//go:build modelcheck

package mc_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// set is a set of small numbers, with the number of its elements.
type set interface {
	add(int) bool
	remove(int) bool
	size() int
}

// plain is the sequential model.
type plain map[int]bool

func (p plain) add(x int) bool    { had := p[x]; p[x] = true; return !had }
func (p plain) remove(x int) bool { had := p[x]; delete(p, x); return had }
func (p plain) size() int         { return len(p) }

// bits keeps the set in one word, and its size there too or, if separate, in
// a second word: a classic mistake.
type bits struct {
	word     atomics.Uint64
	count    atomics.Int64
	separate bool
}

func (b *bits) add(x int) bool {
	added := b.word.Or(1<<x)&(1<<x) == 0
	if added && b.separate {
		b.count.Add(1)
	}
	return added
}

func (b *bits) remove(x int) bool {
	removed := b.word.And(^(1<<x))&(1<<x) != 0
	if removed && b.separate {
		b.count.Add(-1)
	}
	return removed
}

func (b *bits) size() int {
	if b.separate {
		return int(b.count.Load())
	}
	n := 0
	for w := b.word.Load(); w != 0; w &= w - 1 {
		n++
	}
	return n
}

var (
	add1    = mc.Call[set]{Name: "add(1)", Do: func(s set) any { return s.add(1) }}
	add2    = mc.Call[set]{Name: "add(2)", Do: func(s set) any { return s.add(2) }}
	remove1 = mc.Call[set]{Name: "remove(1)", Do: func(s set) any { return s.remove(1) }}
	size    = mc.Call[set]{Name: "size()", Do: func(s set) any { return s.size() }}
)

func program(separate bool, threads ...[]mc.Call[set]) mc.Program[set] {
	return mc.Program[set]{
		New:     func() set { return &bits{separate: separate} },
		Model:   func() set { return plain{} },
		Threads: threads,
		After:   []mc.Call[set]{size, add1, add2},
	}
}

func TestLinearizable(t *testing.T) {
	type calls = []mc.Call[set]
	mc.Linearizable(t, mc.Config{}, program(false, calls{add1, size}, calls{add2, size}))
	mc.Linearizable(t, mc.Config{}, program(false, calls{add1, remove1}, calls{add1, size}))
	mc.Linearizable(t, mc.Config{}, program(false, calls{add1}, calls{remove1}, calls{size, add2}))
}

func TestNotLinearizable(t *testing.T) {
	probe := &recorder{TB: t}
	r := mc.Linearizable(probe, mc.Config{}, program(true,
		[]mc.Call[set]{add1}, []mc.Call[set]{remove1, size}))
	if !strings.HasPrefix(r.Failure, "not linearizable") || !strings.Contains(r.Failure, "remove(1) = true") {
		t.Errorf("%v %q", r, r.Failure)
	}
}

// stale returns what it read before the operation began: right in every
// order, wrong in real time.
type stale struct {
	bits
	old int
}

func (s *stale) size() int { return s.old }

func TestRealTimeCounts(t *testing.T) {
	p := program(false, []mc.Call[set]{add1, add2}, []mc.Call[set]{size})
	p.New = func() set { return &stale{} }
	p.After = nil
	probe := &recorder{TB: t}
	if r := mc.Linearizable(probe, mc.Config{}, p); !strings.HasPrefix(r.Failure, "not linearizable") {
		t.Errorf("a read that ends after a write began, and misses it: %v %q", r, r.Failure)
	}
	p.Threads[0] = nil
	if r := mc.Linearizable(probe, mc.Config{}, p); r.Failure != "" {
		t.Errorf("%v %q", r, r.Failure)
	}
}

func TestPanicIsAResult(t *testing.T) {
	boom := mc.Call[set]{Name: "boom", Do: func(s set) any { s.add(1); panic("boom") }}
	p := program(false, []mc.Call[set]{boom}, []mc.Call[set]{size})
	mc.Linearizable(t, mc.Config{}, p)
	p.Model = func() set { return plain{2: true} }
	probe := &recorder{TB: t}
	if r := mc.Linearizable(probe, mc.Config{}, p); r.Failure == "" {
		t.Error("a wrong model explains the history")
	}
}

// A call that ends its thread has no result that could be judged.
func TestGoexitIsNoResult(t *testing.T) {
	leave := mc.Call[set]{Name: "leave", Do: func(s set) any { s.add(1); runtime.Goexit(); return nil }}
	probe := &recorder{TB: t}
	r := mc.Linearizable(probe, mc.Config{}, program(false, []mc.Call[set]{add2, leave}, []mc.Call[set]{size}))
	if !strings.Contains(r.Failure, "leave ended by runtime.Goexit") {
		t.Errorf("%v %q", r, r.Failure)
	}
}
