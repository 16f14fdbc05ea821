package table_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// Each operation is atomic on real threads, which all fight for one key.

const fighters = 4

// fight calls f as often as it returns, each of the fighters as often as the
// others, and all start together.
func fight(f func()) (calls int) {
	each := 30_000
	if testing.Short() {
		each /= 5
	}
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for range fighters {
		wg.Go(func() {
			<-gate
			for range each {
				f()
			}
		})
	}
	close(gate)
	wg.Wait()
	return fighters * each
}

// No increment is lost.
func TestStressIncrements(t *testing.T) {
	m := newTable()
	for name, increment := range map[string]func(){
		"Compute": func() {
			m.Compute("k", func(now *cell) *cell { return &cell{now.n + 1} })
		},
		"CompareAndSwap": func() {
			for now := m.Load("k"); !m.CompareAndSwap("k", now, &cell{now.n + 1}); now = m.Load("k") {
			}
		},
	} {
		m.Swap("k", &cell{0})
		calls := fight(increment)
		if n := m.Load("k").n; n != calls {
			t.Errorf("%d increments by %s made %d", calls, name, n)
		}
	}
}

// A coin is put into the table once and taken out once.
type coin struct{ taken atomic.Int32 }

// purse is a table with one key, and counts what goes through it.
type purse struct {
	t          *testing.T
	m          *table.Table[string, coin]
	put, taken atomic.Int64
}

func (p *purse) take(c *coin) {
	if c == nil {
		return
	}
	p.taken.Add(1)
	if n := c.taken.Add(1); n > 1 {
		p.t.Errorf("a coin was taken %d times", n)
	}
}

// What is put into the table is taken out once: by the one who deletes it, or
// by the one who swaps something in for it.
func TestStressTakenOnce(t *testing.T) {
	for in, put := range map[string]func(*purse){
		"LoadOrStore": func(p *purse) {
			if _, loaded := p.m.LoadOrStore("k", new(coin)); !loaded {
				p.put.Add(1)
			}
		},
		"Swap": func(p *purse) {
			p.put.Add(1)
			p.take(p.m.Swap("k", new(coin)))
		},
	} {
		for out, take := range map[string]func(*purse){
			"LoadAndDelete": func(p *purse) { p.take(p.m.LoadAndDelete("k")) },
			"CompareAndDelete": func(p *purse) {
				if c := p.m.Load("k"); p.m.CompareAndDelete("k", c) {
					p.take(c)
				}
			},
		} {
			t.Run(in+" and "+out, func(t *testing.T) {
				keys := table.NewKeys[string]()
				p := &purse{t: t, m: table.New[string, coin](keys.Hasher("test"), 0)}
				fight(func() { put(p); take(p) })
				p.take(p.m.LoadAndDelete("k"))
				if p.put.Load() != p.taken.Load() {
					t.Errorf("%d coins were put in and %d taken out", p.put.Load(), p.taken.Load())
				}
			})
		}
	}
}
