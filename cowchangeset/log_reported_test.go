//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// T12 boxcar #1: writers that reach the end of a chunk together make one more, and not
// one each.
func TestT12_StressChunksAreNotWasted(t *testing.T) {
	for range 20 {
		_, c := opened(t)
		together(16, func(int) {
			for i := range 200 {
				c.Record(i)
			}
		})
		slots, chunks := cowchangeset.FirstChunk, 1
		for n := slots; slots < int(c.Reserved()); chunks++ {
			n = min(2*n, cowchangeset.MaxChunk)
			slots += n
		}
		if got := c.Chunks(); got > chunks+1 {
			t.Fatalf("%d chunks for %d slots, %d would do", got, c.Reserved(), chunks)
		}
	}
}

// T13 append-only-vec #15, salsa #555: however many write, and on one processor,
// nobody spins for another one.
func TestT13_StressManyOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const writers = 10_000
	_, c := opened(t)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			c.Record(i)
			if i%1000 == 0 {
				c.Len()
			}
		})
	}
	all.Wait()
	got := values(t, c.Entries())
	slices.Sort(got)
	if len(got) != writers || got[0] != 0 || got[writers-1] != writers-1 {
		t.Errorf("%d of %d entries", len(got), writers)
	}
}

// T17 trusty-tools #7161, AgentHub #2154: the store sees entries in the order of
// their numbers, from one caller at a time, however many record.
func TestT17_StressStoreSeesTheOrder(t *testing.T) {
	for _, async := range []bool{false, true} {
		tracker, m := kept(cowchangeset.Config[int]{Async: async})
		var mu sync.Mutex
		receipts := map[int]cowchangeset.Receipt{}
		tracker.Start(t.Context())
		together(8, func(g int) {
			for i := range 100 {
				v := 1000*g + i
				r, err := tracker.Record(v)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				receipts[v] = r
				mu.Unlock()
				if g == 0 && i%20 == 0 {
					tracker.Start(t.Context())
				}
			}
		})
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		n := 0
		for _, id := range m.ids() {
			for _, e := range m.has(id).Entries {
				n++
				if r := receipts[e.Value]; r.ChangesetID != id || r.Seq != e.Seq {
					t.Errorf("%d is at %d of %s, its receipt says %v", e.Value, e.Seq, id, r)
				}
			}
		}
		if n != len(receipts) || n != 800 {
			t.Errorf("%d entries in the store, %d receipts", n, len(receipts))
		}
		m.check(t)
	}
}

// T20 Kubernetes #80916, #107417: a caller that tries again after a failure of its own
// does not conflict with itself.
func TestT20_RetriesDoNotConflict(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	first, _ := tracker.Start(t.Context())
	for _, fail := range []func(*memory, func(context.Context, string, string) error){(*memory).faults, (*memory).lateFaults} {
		fail(m, func(context.Context, string, string) error { return errDisk })
		if _, err := tracker.StartAfter(t.Context(), first); !errors.Is(err, errDisk) {
			t.Error(err)
		}
		fail(m, nil)
		next, err := tracker.StartAfter(t.Context(), first)
		if err != nil || next.Previous() != first {
			t.Fatal(err)
		}
		first = next
	}
	m.check(t)
}
