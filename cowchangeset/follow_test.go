//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// A Follow of a tracker goes on from changeset to changeset, and sleeps in between.
func TestTrackerFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
		ctx, cancel := context.WithCancel(t.Context())
		var got []int
		var places []cowchangeset.Receipt
		over := make(chan struct{})
		go func() {
			defer close(over)
			for r, v := range tracker.Follow(ctx, cowchangeset.Receipt{}) {
				got, places = append(got, v), append(places, r)
			}
		}()
		want := func(vs ...int) {
			t.Helper()
			synctest.Wait() // it sleeps
			if !slices.Equal(got, vs) {
				t.Errorf("seen %v, want %v", got, vs)
			}
		}
		var receipts []cowchangeset.Receipt
		record := func(v int) {
			r, err := tracker.Record(v)
			if err != nil {
				t.Fatal(err)
			}
			receipts = append(receipts, r)
		}
		want()
		start(t, tracker)
		want()
		record(1)
		want(1)
		start(t, tracker)
		record(2)
		want(1, 2)
		start(t, tracker)
		c := start(t, tracker)
		mustSeal(t, c)
		want(1, 2)
		tracker.Announce("5") // by a Start that stalls
		record(3)
		want(1, 2, 3)
		tracker.Prune(1)
		record(4)
		want(1, 2, 3, 4)
		if !slices.Equal(places, receipts) {
			t.Errorf("%v, want %v", places, receipts)
		}
		cancel()
		<-over
	})
}

// A Follow begins where it is told to, or where Prune has left the first.
func TestTrackerFollowFrom(t *testing.T) {
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
	for v := range 6 { // 0 1 | 2 3 | 4 5
		if v%2 == 0 {
			start(t, tracker)
		}
		tracker.Record(v)
	}
	from := func(ordinal, seq uint64, first int) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, v := range tracker.Follow(ctx, cowchangeset.Receipt{Ordinal: ordinal, Seq: seq}) {
			if v != first {
				t.Errorf("from %d, %d: begins with %d, want %d", ordinal, seq, v, first)
			}
			break
		}
	}
	from(0, 0, 0)
	from(0, 9, 0)
	from(1, 1, 1)
	from(1, 2, 2)
	from(2, 0, 2)
	from(3, 1, 5)
	tracker.Prune(2)
	from(0, 0, 2)
	from(1, 1, 2)
	synctest.Test(t, func(t *testing.T) {
		tracker := new(cowchangeset.Tracker[int])
		start(t, tracker)
		var starter sync.WaitGroup
		starter.Go(func() {
			for v := range 3 {
				start(t, tracker)
				tracker.Record(v)
				time.Sleep(time.Second)
			}
		})
		for r, v := range tracker.Follow(t.Context(), cowchangeset.Receipt{Ordinal: 3}) { // which is to come
			if r.Ordinal != 3 || v != 1 {
				t.Errorf("begins with %d at %v", v, r)
			}
			break
		}
		starter.Wait()
	})
	if p := panicOf(func() { tracker.Follow(noContext, cowchangeset.Receipt{}) }); p != "cowchangeset: Tracker.Follow called with a nil context" {
		t.Error(p)
	}
}

// A Follow does not sleep where an entry came while the loop body had the last one of a batch
// that fills several chunks.
func TestFollowBehindALargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := new(cowchangeset.Tracker[int])
		c := start(t, tracker)
		last := 3*cowchangeset.MaxChunk - 1
		tracker.RecordBatch(make([]int, last+1))
		for i, v := range c.Follow(t.Context(), 0) {
			switch {
			case int(i) == last:
				c.Record(1)
			case v == 1:
				return
			}
		}
	})
}

// A Follow does not sleep where an entry came while the loop body ran, behind the slot of a
// writer that stalls.
func TestFollowBehindAStalledWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, new(cowchangeset.Tracker[int]))
		c.Record(1)
		for _, v := range c.Follow(t.Context(), 0) {
			if v == 2 {
				return
			}
			if _, ok := c.Reserve(9); !ok {
				t.Fatal("no slot")
			}
			c.Record(2)
		}
	})
}

// What a Follow has seen does not wake it, nor does a batch that is not there yet; what comes behind that does.
func TestFollowBehindAStalledBatch(t *testing.T) {
	c := start(t, new(cowchangeset.Tracker[int]))
	for i := range 3 {
		c.Record(i)
	}
	cut := c.Cut()
	batch, _ := c.Reserve(4, 5)
	batch.Announce()
	if c.Grown(cut) {
		t.Error("nothing new is there")
	}
	c.Record(6)
	if !c.Grown(cut) {
		t.Error("an entry is not seen")
	}
}

// Follows see what a trail has in the end, and in its order, whoever starts, records
// and prunes meanwhile.
func TestStressTrackerFollow(t *testing.T) {
	const each = 2000
	tracker := new(cowchangeset.Tracker[int])
	var followers sync.WaitGroup
	seen := make([][]cowchangeset.Receipt, 3)
	for i := range seen {
		followers.Go(func() {
			for r := range tracker.Follow(t.Context(), cowchangeset.Receipt{}) {
				if seen[i] = append(seen[i], r); len(seen[i]) == 3*each {
					return
				}
			}
		})
	}
	start(t, tracker)
	together(4, func(g int) {
		for i := range each {
			switch {
			case g < 3:
				if _, err := tracker.Record(i); err != nil {
					t.Error(err)
				}
			case i%10 == 0:
				start(t, tracker)
			}
		}
	})
	followers.Wait()
	var want []cowchangeset.Receipt
	for r := range tracker.Trail().All() {
		want = append(want, r)
	}
	for _, got := range seen {
		if !slices.Equal(got, want) {
			t.Errorf("a Follow has seen %d of %d, or in another order", len(got), len(want))
		}
	}
}

// A Follow that waits for a Start ends with its context.
func TestFollowWaitsForAStartNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tracker cowchangeset.Tracker[int]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for r := range tracker.Follow(ctx, cowchangeset.Receipt{}) {
			t.Error(r)
		}
	})
}
