//go:build !modelcheck

package table_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// Checks L4, L5, L6.

// No cell is lost while the set grows and shrinks under its writers, and All
// yields no key twice (xsync issues 63, 87, 109, 112).
func TestStressLinesLoseNothing(t *testing.T) {
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			p := newParts(hash)
			workers, each := 2*runtime.GOMAXPROCS(0), 500
			if name == "constant" {
				each = 200
			}
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := range each {
						e := p.new(fmt.Sprint(w, "/", i), i)
						if !p.add(e) || p.load(e.key) != e {
							t.Errorf("%s is missing after it was stored", e.key)
							return
						}
						if i%2 == 1 && (!p.remove(e) || p.load(e.key) != nil) {
							t.Errorf("%s could not be deleted", e.key)
						}
					}
				})
			}
			wg.Wait()
			seen := map[string]*part{}
			for e := range p.All() {
				seen[e.key] = e
			}
			wantAll(t, p, seen)
			if want := workers * each / 2; len(seen) != want || p.Len() != want {
				t.Errorf("All yields %d cells and Len is %d, want %d", len(seen), p.Len(), want)
			}
			for _, e := range seen {
				wg.Go(func() { p.remove(e) })
			}
			if wg.Wait(); p.Len() != 0 {
				t.Errorf("Len = %d after everything was deleted", p.Len())
			}
		})
	}
}

// What is there throughout is found by every Load and yielded once by every All,
// while others make the set grow and shrink.
func TestStressLinesKeepWhatStays(t *testing.T) {
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			p := newParts(hash)
			const stay, rounds = 50, 4
			come := 500
			if name == "constant" {
				come = 100
			}
			for i := range stay {
				p.add(p.new(fmt.Sprint("stays ", i), i))
			}
			var done atomic.Bool
			var writers, readers sync.WaitGroup
			for w := range 2 {
				writers.Go(func() {
					for range rounds {
						for i := range come {
							p.add(p.new(fmt.Sprint(w, i), i))
						}
						for i := range come {
							p.remove(p.load(fmt.Sprint(w, i)))
						}
					}
				})
			}
			readers.Go(func() {
				for !done.Load() {
					for i := range stay {
						if e := p.load(fmt.Sprint("stays ", i)); e == nil || e.n != i {
							t.Errorf("what stays is %v", e)
							return
						}
					}
				}
			})
			readers.Go(func() {
				for !done.Load() {
					var times [stay]int
					for e := range p.All() {
						if e.key[0] == 's' {
							times[e.n]++
						}
					}
					for i, n := range times {
						if n != 1 {
							t.Errorf("All yields what stays %d times: %d", n, i)
							return
						}
					}
				}
			})
			writers.Wait()
			done.Store(true)
			readers.Wait()
		})
	}
}

// Checks L1, L2, L3.

// A cell is put into the set once and taken out once.
func TestStressLinesTakenOnce(t *testing.T) {
	type token struct {
		key   string
		taken atomic.Int32
	}
	var p table.Lines[string, token]
	p.Init(func(string, uint64) uint64 { return 7 }, 0)
	var put, taken atomic.Int64
	take := func(e *token) {
		if e != nil {
			taken.Add(1)
			if n := e.taken.Add(1); n > 1 {
				t.Errorf("a cell was taken %d times", n)
			}
		}
	}
	k := table.Hashed[string]{Hash: 7, Key: "k"}
	fight(func() {
		put.Add(1)
		p.Compute(k, func(now *token) *token { take(now); return &token{key: k.Key} })
		if e := p.Load(k); e != nil && p.CompareAndDelete(k, e) {
			take(e)
		}
	})
	if e := p.Load(k); e != nil {
		taken.Add(1)
	}
	if put.Load() != taken.Load() {
		t.Errorf("%d cells were put in and %d taken out", put.Load(), taken.Load())
	}
}

// Checks L4, L5, L6.

// Nothing is lost of a set of many segments that grows and shrinks under its
// writers.
func TestStressLinesOfSegments(t *testing.T) {
	keys := table.NewKeys[string]()
	p := newParts(keys.Hash)
	const workers, each, stay = 4, 8_000, 100
	for i := range stay {
		p.add(p.new(fmt.Sprint("stays ", i), i))
	}
	var done atomic.Bool
	var writers, readers sync.WaitGroup
	for w := range workers {
		writers.Go(func() {
			mine := make([]*part, each)
			for i := range each {
				mine[i] = p.new(fmt.Sprint(w, "/", i), i)
				if !p.add(mine[i]) {
					t.Errorf("%s is there already", mine[i].key)
				}
			}
			for _, e := range mine {
				if p.load(e.key) != e || !p.remove(e) {
					t.Errorf("%s is missing", e.key)
				}
			}
		})
	}
	readers.Go(func() {
		for !done.Load() {
			for i := range stay {
				if e := p.load(fmt.Sprint("stays ", i)); e == nil || e.n != i {
					t.Errorf("what stays is %v", e)
					return
				}
			}
		}
	})
	readers.Go(func() {
		for !done.Load() {
			n := 0
			for e := range p.All() {
				if e.key[0] == 's' {
					n++
				}
			}
			if n != stay {
				t.Errorf("All yields %d that stay, want %d", n, stay)
				return
			}
		}
	})
	writers.Wait()
	done.Store(true)
	readers.Wait()
	if p.Len() != stay {
		t.Errorf("Len = %d, want %d", p.Len(), stay)
	}
}
