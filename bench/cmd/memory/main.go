// Command memory measures what the structures of the four packages, and those that they
// are compared with, hold for each key, allocate for each operation, and hold after ten
// million keys have come and gone. It prints a table. See bench/README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A store is one structure with keys. Keys and values are integers, so that nothing but
// the structure is measured.
type store struct {
	add, read, change, drop func(key int)
}

// A subject is one implementation of a structure.
type subject struct {
	structure, impl string
	make            func() store
}

func plusOne(v int) (int, error) { return v + 1, nil }

var subjects = []subject{
	{"Registry", "latchfree", func() store {
		r := new(shardedregistry.Registry[int, int])
		return store{
			add:    func(k int) { r.Create(k, k) },
			read:   func(k int) { r.Get(k) },
			change: func(k int) { r.Update(k, plusOne) },
			drop:   func(k int) { r.Delete(k) },
		}
	}},
	{"Registry", "mutex", func() store {
		r := new(locked.MutexRegistry[int, int])
		return store{
			add:    func(k int) { r.Create(k, k) },
			read:   func(k int) { r.Get(k) },
			change: func(k int) { r.Update(k, plusOne) },
			drop:   func(k int) { r.Delete(k) },
		}
	}},
	{"Registry", "sync.Map", func() store {
		r := new(locked.SyncMapRegistry[int, int])
		return store{
			add:    func(k int) { r.Create(k, k) },
			read:   func(k int) { r.Get(k) },
			change: func(k int) { r.Update(k, plusOne) },
			drop:   func(k int) { r.Delete(k) },
		}
	}},
	{"Cache", "latchfree", func() store {
		c := new(oncecache.Cache[int, int])
		return store{
			add:    func(k int) { c.GetOrCreate(k, func() (int, error) { return k, nil }) },
			read:   func(k int) { c.Get(k) },
			change: func(k int) { c.Set(k, k) },
			drop:   func(k int) { c.Delete(k) },
		}
	}},
	{"Cache", "mutex", func() store {
		c := new(locked.MutexCache[int, int])
		return store{
			add:    func(k int) { c.GetOrCreate(k, func() (int, error) { return k, nil }) },
			read:   func(k int) { c.Get(k) },
			change: func(k int) { c.Set(k, k) },
			drop:   func(k int) { c.Delete(k) },
		}
	}},
	{"Cache", "sync.Map", func() store {
		c := new(locked.SyncMapCache[int, int])
		return store{
			add:    func(k int) { c.GetOrCreate(k, func() (int, error) { return k, nil }) },
			read:   func(k int) { c.Get(k) },
			change: func(k int) { c.Set(k, k) },
			drop:   func(k int) { c.Delete(k) },
		}
	}},
	{"Group", "latchfree", func() store {
		g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(math.MaxInt32)}})
		return store{
			add:    func(k int) { g.RecordFailure(k) },
			read:   func(k int) { g.Allow(k) },
			change: func(k int) { g.RecordFailure(k) },
			drop:   func(k int) { g.RecordSuccess(k) },
		}
	}},
	// It keeps a breaker for each key that it has seen, as most breakers in a map do.
	{"Group", "mutex", func() store {
		g := locked.NewMutexGroup[int](locked.BreakerConfig{Threshold: math.MaxInt32})
		return store{
			add:    func(k int) { g.Failure(k, 0) },
			read:   func(k int) { g.Allow(k) },
			change: func(k int) { g.Failure(k, 0) },
			drop:   func(k int) { g.Success(k, 0) },
		}
	}},
	{"Tracker", "latchfree", func() store {
		t := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
		t.Start(context.Background())
		return store{
			add:  func(k int) { t.Record(k) },
			read: func(int) { t.Current() },
			drop: func(k int) {
				if k%1000 == 999 { // as many changesets as keys are held otherwise
					t.Start(context.Background())
					t.Prune(held / 1000)
				}
			},
		}
	}},
	{"Tracker", "mutex", func() store {
		t := new(locked.Tracker[int])
		t.Start()
		return store{
			add:  func(k int) { t.Record(k) },
			read: func(int) { t.Current() },
			drop: func(k int) {
				if k%1000 == 999 {
					t.Start()
					t.Prune(held / 1000)
				}
			},
		}
	}},
}

// held is how many keys there are while others come and go.
const held = 100_000

func main() {
	keys := flag.Int("keys", 1_000_000, "the most keys that a structure holds")
	churn := flag.Int("churn", 10_000_000, "how many keys come and go")
	flag.Parse()
	if flag.NArg() > 0 || *keys < 100 || *churn < 0 {
		flag.Usage()
		os.Exit(2)
	}
	run(os.Stdout, os.Stderr, *keys, *churn)
}

// run writes the table, and to progress which part of it is under way.
func run(w, progress io.Writer, keys, churn int) {
	var sizes []int
	for n := 100; n <= keys; n *= 100 {
		sizes = append(sizes, n)
	}
	head, line := "| structure | |", "|---|---|"
	for _, n := range sizes {
		head += fmt.Sprintf(" bytes per key of %s |", thousands(n))
		line += "--:|"
	}
	fmt.Fprintf(w, "%s bytes allocated by a read | by a change | heap with %s keys, MB | after %s have come and gone |\n%s--:|--:|--:|--:|\n",
		head, thousands(held), thousands(churn), line)
	for _, s := range subjects {
		fmt.Fprintf(progress, "%s %s\n", s.structure, s.impl)
		fmt.Fprintf(w, "| %s | %s |", s.structure, s.impl)
		for _, n := range sizes {
			fmt.Fprintf(w, " %.0f |", s.bytesPerKey(n))
		}
		read, change := s.garbage()
		before, after := s.churned(churn)
		fmt.Fprintf(w, " %s | %s | %.1f | %.1f |\n", read, change, before/1e6, after/1e6)
	}
}

// bytesPerKey returns what the heap holds for each of n keys.
func (s subject) bytesPerKey(n int) float64 {
	copies := max(1, 20_000/n) // of small ones, so that what else the heap holds does not count
	stores := make([]store, copies)
	before := inUse()
	for i := range stores {
		stores[i] = s.make()
		for key := range n {
			stores[i].add(key)
		}
	}
	after := inUse()
	runtime.KeepAlive(stores)
	return (after - before) / float64(copies) / float64(n)
}

// garbage returns what a read and a change allocate, in bytes, as text.
func (s subject) garbage() (read, change string) {
	const keys, times = 1000, 200_000
	st := s.make()
	for key := range keys {
		st.add(key)
	}
	per := func(op func(int)) string {
		if op == nil {
			return "–"
		}
		for key := range keys {
			op(key)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range times {
			op(i % keys)
		}
		runtime.ReadMemStats(&after)
		return strconv.FormatFloat(math.Round(float64(after.TotalAlloc-before.TotalAlloc)/times), 'f', -1, 64)
	}
	if s.structure == "Tracker" {
		return per(st.read), per(st.add)
	}
	return per(st.read), per(st.change)
}

// churned returns what a store with some keys holds, in bytes, and what it holds after
// many others have come and gone.
func (s subject) churned(churn int) (before, after float64) {
	nothing := inUse()
	st := s.make()
	for key := range held {
		st.add(key)
		if s.structure == "Tracker" {
			st.drop(key)
		}
	}
	before = inUse() - nothing
	for key := held; key < held+churn; key++ {
		st.add(key)
		if s.structure == "Tracker" {
			st.drop(key)
		} else {
			st.drop(key - held)
		}
	}
	after = inUse() - nothing
	runtime.KeepAlive(st)
	return before, after
}

// inUse returns the bytes of the heap that are reachable.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what finalizers have freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
