//go:build !modelcheck

package histories_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/internal/table"
)

// cell is what tables hold here. Cells are identities, and numbered.
type cell struct {
	key int // set where the table asks for that
	n   int
}

// cells is what is used of a table.
type cells interface {
	Load(k int) *cell
	LoadOrStore(k int, e *cell) (actual *cell, loaded bool)
	Swap(k int, e *cell) (old *cell)
	LoadAndDelete(k int) (old *cell)
	CompareAndSwap(k int, old, e *cell) bool
	CompareAndDelete(k int, old *cell) bool
	Compute(k int, f func(now *cell) *cell) *cell
}

// tableEvent is one of these, on one key. Its model's state is the number of
// the cell that is there, or 0.
type tableEvent struct {
	op       string
	old, new int // arguments
	got      int // the cell returned
	ok       bool
}

func (e tableEvent) Kind() string { return fmt.Sprint(e.op, " ", e.ok) }

func (e tableEvent) String() string {
	return fmt.Sprintf("%s(%d, %d) = %d, %v", e.op, e.old, e.new, e.got, e.ok)
}

func (e tableEvent) After(now int) (int, bool) {
	switch e.op {
	case "Load":
		return now, e.got == now
	case "LoadOrStore":
		if now == 0 {
			return e.new, e.got == e.new && !e.ok
		}
		return now, e.got == now && e.ok
	case "Swap":
		return e.new, e.got == now
	case "LoadAndDelete":
		return 0, e.got == now
	case "Compute": // of the cell to its successor: what f was given must be what it replaced
		return e.new, e.old == now && e.got == e.new
	case "CompareAndSwap", "CompareAndDelete":
		if e.ok {
			return e.new, e.old == now
		}
		return now, e.old != now
	}
	panic(e.op)
}

func number(c *cell) int {
	if c == nil {
		return 0
	}
	return c.n
}

// tableTrial uses a table with three keys, and many more to resize it.
func tableTrial(fresh func() cells) func(*rand.Rand) history.Trial[int] {
	return func(*rand.Rand) history.Trial[int] {
		const keys = 3
		tab := fresh()
		work := func(c *history.Client[int]) {
			var held [keys]*cell // what the client knows of the keys
			made := &cell{n: 100 * c.ID}
			op := func(k int) {
				made = &cell{n: made.n + 1}
				e := tableEvent{old: number(held[k]), new: made.n}
				from := c.Now()
				switch c.IntN(7) {
				case 0:
					e.op = "Load"
					held[k] = tab.Load(k)
				case 1:
					e.op = "LoadOrStore"
					held[k], e.ok = tab.LoadOrStore(k, made)
				case 2:
					e.op = "Swap"
					held[k] = tab.Swap(k, made)
				case 3:
					e.op = "LoadAndDelete"
					held[k] = tab.LoadAndDelete(k)
				case 4:
					if held[k] == nil {
						return // not allowed
					}
					e.op = "CompareAndSwap"
					e.ok = tab.CompareAndSwap(k, held[k], made)
				case 5:
					if held[k] == nil {
						return // nothing to delete
					}
					e.op, e.new = "CompareAndDelete", 0
					e.ok = tab.CompareAndDelete(k, held[k])
				case 6:
					e.op = "Compute"
					held[k] = tab.Compute(k, func(now *cell) *cell {
						e.old = number(now)
						return made
					})
				}
				switch e.op {
				case "Load", "LoadOrStore", "Swap", "LoadAndDelete", "Compute":
					e.got = number(held[k])
				}
				c.Add(k, from, e)
			}
			c.Rounds(keys, op, func() { tableTide(c, tab) })
		}
		after := func(c *history.Client[int]) {
			for k := range keys {
				from := c.Now()
				c.Add(k, from, tableEvent{op: "Load", got: number(tab.Load(k))})
			}
		}
		return history.Trial[int]{Clients: 4, Work: work, After: after, Value: tab}
	}
}

// tableTide moves the tide, whose keys only the client uses.
func tableTide(c *history.Client[int], tab cells) {
	c.Tide(func(k int) {
		if _, loaded := tab.LoadOrStore(k, &cell{n: k}); loaded {
			c.Errorf("the key %d was there before it was stored", k)
		}
	}, func(k int) {
		if got := tab.LoadAndDelete(k); number(got) != k {
			c.Errorf("the key %d was %d when it was deleted", k, number(got))
		}
	})
}

var tableKinds = []string{
	"Load false", "LoadOrStore false", "LoadOrStore true", "Swap false", "LoadAndDelete false",
	"CompareAndSwap false", "CompareAndSwap true", "CompareAndDelete false", "CompareAndDelete true", "Compute false",
}

// Everything else takes for granted what is checked here: that each operation
// of a table is atomic, while it grows and shrinks too.
func TestTableHistories(t *testing.T) {
	cover := history.Check(t, tableTrial(func() cells {
		seed := maphash.MakeSeed()
		return table.New[int, cell](func(k int, _ uint64) uint64 { return maphash.Comparable(seed, k) }, 0)
	}), tableKinds...)
	cover.RequireResizes(t)
}

// The same of the table whose cells hold their keys.
func TestLinesHistories(t *testing.T) {
	cover := history.Check(t, tableTrial(func() cells {
		l := &lines{seed: maphash.MakeSeed()}
		l.Init(func(k int, _ uint64) uint64 { return l.hashed(k).Hash }, 0)
		return l
	}), tableKinds...)
	cover.RequireResizes(t)
}

// lines is a table.Lines in the form of the other.
type lines struct {
	table.Lines[int, cell]
	seed maphash.Seed
}

func (l *lines) hashed(k int) table.Hashed[int] {
	return table.Hashed[int]{Hash: maphash.Comparable(l.seed, k), Key: k}
}

// of gives e, which nobody else knows, the key k.
func (l *lines) of(k int, e *cell) *cell {
	e.key = k
	return e
}

func (l *lines) Load(k int) *cell { return l.Lines.Load(l.hashed(k)) }
func (l *lines) LoadOrStore(k int, e *cell) (*cell, bool) {
	return l.Lines.LoadOrStore(l.hashed(k), l.of(k, e))
}
func (l *lines) Swap(k int, e *cell) *cell { return l.Lines.Swap(l.hashed(k), l.of(k, e)) }
func (l *lines) LoadAndDelete(k int) *cell { return l.Lines.LoadAndDelete(l.hashed(k)) }
func (l *lines) CompareAndSwap(k int, old, e *cell) bool {
	return old != nil && l.Lines.CompareAndSwap(l.hashed(k), old, l.of(k, e))
}
func (l *lines) CompareAndDelete(k int, old *cell) bool {
	return old != nil && l.Lines.CompareAndDelete(l.hashed(k), old)
}

func (l *lines) Compute(k int, f func(now *cell) *cell) *cell {
	return l.Lines.Compute(l.hashed(k), func(now *cell) *cell {
		e := f(now)
		if e != nil && e != now {
			l.of(k, e)
		}
		return e
	})
}

func TestBrokenTableHistories(t *testing.T) {
	for name, broken := range map[string]func() cells{
		"a LoadOrStore in two steps":      func() cells { return tornStore{newLossy(1 << 20)} },
		"a CompareAndDelete in two steps": func() cells { return tornDelete{newLossy(1 << 20)} },
		"writes lost while it grows":      func() cells { return newLossy(100) },
	} {
		t.Run(name, func(t *testing.T) { history.Reject(t, tableTrial(broken)) })
	}
}

// lossy is a table that copies what it holds when it grows, and forgets what
// is written meanwhile.
type lossy struct {
	mu   sync.Mutex
	held map[int]*cell
	most int
}

func newLossy(most int) *lossy { return &lossy{held: map[int]*cell{}, most: most} }

func (l *lossy) Compute(k int, f func(*cell) *cell) *cell {
	l.grow()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := f(l.held[k])
	if e == nil {
		delete(l.held, k)
	} else {
		l.held[k] = e
	}
	return e
}

func (l *lossy) grow() {
	l.mu.Lock()
	if len(l.held) < l.most {
		l.mu.Unlock()
		return
	}
	larger := make(map[int]*cell, 2*l.most)
	l.most *= 2
	for k, e := range l.held {
		larger[k] = e
	}
	l.mu.Unlock()
	runtime.Gosched()
	l.mu.Lock()
	l.held = larger
	l.mu.Unlock()
}

func (l *lossy) Load(k int) *cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[k]
}

func (l *lossy) LoadOrStore(k int, e *cell) (actual *cell, loaded bool) {
	actual = l.Compute(k, func(now *cell) *cell {
		if loaded = now != nil; loaded {
			return now
		}
		return e
	})
	return actual, loaded
}

func (l *lossy) Swap(k int, e *cell) (old *cell) {
	l.Compute(k, func(now *cell) *cell { old = now; return e })
	return old
}

func (l *lossy) LoadAndDelete(k int) (old *cell) { return l.Swap(k, nil) }

func (l *lossy) CompareAndSwap(k int, old, e *cell) (swapped bool) {
	l.Compute(k, func(now *cell) *cell {
		if swapped = now == old; swapped {
			return e
		}
		return now
	})
	return swapped
}

func (l *lossy) CompareAndDelete(k int, old *cell) bool { return l.CompareAndSwap(k, old, nil) }

// tornStore looks before it stores.
type tornStore struct{ *lossy }

func (l tornStore) LoadOrStore(k int, e *cell) (actual *cell, loaded bool) {
	if now := l.Load(k); now != nil {
		return now, true
	}
	runtime.Gosched()
	l.Swap(k, e)
	return e, false
}

// tornDelete compares before it deletes.
type tornDelete struct{ *lossy }

func (l tornDelete) CompareAndDelete(k int, old *cell) bool {
	if l.Load(k) != old {
		return false
	}
	runtime.Gosched()
	l.LoadAndDelete(k)
	return true
}
