//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

type (
	tracker   = cowchangeset.Tracker[int]
	changeset = cowchangeset.Changeset[int]
	ints      = cowchangeset.Slice[int]
)

// started returns a tracker with a changeset of four entries, which a cut has
// seen.
func started() (*tracker, *changeset) {
	t := new(tracker)
	c, _ := t.Start(context.Background())
	for e := range 4 {
		t.Record(e)
	}
	t.Trail()
	return t, c
}

// of is what a tracker's user does.
func of(op func(*tracker, *changeset)) func() func(int) {
	return func() func(int) {
		t, c := started()
		return func(int) { op(t, c) }
	}
}

// ended is of, once the changeset is sealed and a Record has failed.
func ended(op func(*tracker, *changeset)) func() func(int) {
	return func() func(int) {
		t, c := started()
		c.Seal(context.Background())
		t.Record(4)
		return func(int) { op(t, c) }
	}
}

// with is what the user of a slice of one item does, which has room for more.
func with(op func(*ints)) func() func(int) {
	return func() func(int) {
		s := new(ints)
		s.Append(1)
		return func(int) { op(s) }
	}
}

// Costs of the operations, away from the ends of chunks and arrays.
func TestCosts(t *testing.T) {
	three := []int{1, 2, 3}
	mc.CheckCost(t, "Tracker.Record", of(func(tr *tracker, _ *changeset) { tr.Record(4) }), mc.Cost{Loads: 4, RMWs: 2}, 2.02, 2.09, 2.75)
	mc.CheckCost(t, "Tracker.RecordBatch of 3", of(func(tr *tracker, _ *changeset) { tr.RecordBatch(three) }), mc.Cost{Loads: 4, RMWs: 3}, 2.07, 2.55, 4.72)
	mc.CheckCost(t, "Tracker.Record, and Trail", of(func(tr *tracker, _ *changeset) { tr.Record(4); tr.Trail() }), mc.Cost{Loads: 10, RMWs: 3}, 4.52, 7.28, 19.40)
	mc.CheckCost(t, "Tracker.Record after a Seal", ended(func(tr *tracker, _ *changeset) { tr.Record(4) }), mc.Cost{Loads: 4}, 0)
	mc.CheckCost(t, "Tracker.Current", of(func(tr *tracker, _ *changeset) { tr.Current() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Tracker.IDs", of(func(tr *tracker, _ *changeset) { tr.IDs() }), mc.Cost{Loads: 4}, 0)
	mc.CheckCost(t, "Tracker.Trail with nothing new", of(func(tr *tracker, _ *changeset) { tr.Trail() }), mc.Cost{Loads: 5}, 0)

	mc.CheckCost(t, "Changeset.Record", of(func(_ *tracker, c *changeset) { c.Record(4) }), mc.Cost{Loads: 3, RMWs: 2}, 2.02, 2.09, 2.75)
	mc.CheckCost(t, "Changeset.Record, and Len, which cuts", of(func(_ *tracker, c *changeset) { c.Record(4); c.Len() }), mc.Cost{Loads: 6, RMWs: 3}, 4.52, 7.09, 19.42)
	mc.CheckCost(t, "Changeset.Record after a Seal", ended(func(_ *tracker, c *changeset) { c.Record(4) }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Changeset.Len with nothing new", of(func(_ *tracker, c *changeset) { c.Len() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Changeset.Len after a Seal", ended(func(_ *tracker, c *changeset) { c.Len() }), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "Changeset.Seal after a Seal", ended(func(_ *tracker, c *changeset) { c.Seal(context.Background()) }), mc.Cost{Loads: 2}, 0)

	mc.CheckCost(t, "Slice.Load", with(func(s *ints) { s.Load() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Slice.Snapshot", with(func(s *ints) { s.Snapshot() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Slice.Append", with(func(s *ints) { s.Append(2) }), mc.Cost{Loads: 2, RMWs: 2}, 4, 16.04, 128.12)
	mc.CheckCost(t, "Slice.Update", with(func(s *ints) { s.Update(func(old []int) []int { return old }) }), mc.Cost{Loads: 4, Stores: 1, RMWs: 2}, 4.17, 17.88, 136.97)
	mc.CheckCost(t, "Slice.Snapshot, and CompareAndSwap", with(func(s *ints) { s.CompareAndSwap(s.Snapshot(), three) }), mc.Cost{Loads: 4, Stores: 1, RMWs: 2}, 3.67, 4.15, 4.23)
}

// Costs of rare events: the beginning and the end of a chunk, an entry that somebody
// waits for, a cut that meets a writer which stalls, and the first Record that comes
// too late.
func TestCostsOfRareEvents(t *testing.T) {
	full := func() *changeset {
		_, c := started()
		for c.Reserved() < 1+2+4 { // the model's chunks
			c.Record(0)
		}
		return c
	}
	stalled := func(batch ...int) *changeset {
		_, c := started()
		if w, _ := c.Reserve(batch...); len(batch) > 1 {
			w.Announce()
		}
		return c
	}
	// Whoever waited for an entry has left, and the event is still there.
	watched := func() *changeset {
		_, c := started()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for seq := range c.Follow(ctx, 0) {
			if seq+1 == c.Reserved() {
				cancel()
			}
		}
		return c
	}
	var tr *tracker
	sealed := func() (c *changeset) {
		tr, c = started()
		c.Seal(t.Context())
		return c
	}
	empty := func() *changeset { c, _ := new(tracker).Start(t.Context()); return c }
	var c *changeset
	for _, tt := range []struct {
		name string
		with *changeset
		op   func()
		want mc.Cost
	}{
		// It makes the first chunk, and moves the tail there, so that the next one
		// need not.
		{"the first Record", empty(), func() { c.Record(1) }, mc.Cost{Loads: 5, RMWs: 4}},
		{"Record after that", nil, func() { c.Record(2) }, mc.Cost{Loads: 3, RMWs: 2}},
		{"Record that is too late", sealed(), func() { tr.Record(1) }, mc.Cost{Loads: 4}},
		// Sealed makes the event of the seal, and a Seal fires it.
		{"the first Sealed", empty(), func() { c.Sealed() }, mc.Cost{Loads: 2, RMWs: 1}},
		{"Sealed after that", nil, func() { c.Sealed() }, mc.Cost{Loads: 2}},
		{"Seal", nil, func() { c.Seal(t.Context()) }, mc.Cost{Loads: 7, Stores: 1, RMWs: 2, Blocking: 1}},
		{"Sealed after the Seal", nil, func() { c.Sealed() }, mc.Cost{Loads: 4}},
		// It follows the link to the next chunk, and moves the tail there, so
		// that the next one need not.
		{"Record in a new chunk", full(), func() { c.Record(1) }, mc.Cost{Loads: 5, RMWs: 3}},
		{"Record after that", nil, func() { c.Record(2) }, mc.Cost{Loads: 3, RMWs: 2}},
		// It takes the event away, so that the next one need not fire it again.
		{"Record that wakes", watched(), func() { c.Record(1) }, mc.Cost{Loads: 4, RMWs: 3, Blocking: 1}},
		{"Record after that", nil, func() { c.Record(2) }, mc.Cost{Loads: 3, RMWs: 2}},
		// It looks as often as a patient one does, and then kills the slot.
		{"Len", stalled(4), func() { c.Len() }, mc.Cost{Loads: 2 + 1 + 64 + 4, RMWs: 2}},
		{"Len after that", nil, func() { c.Len() }, mc.Cost{Loads: 2}},
		// A batch gets more time, and its slots are killed one by one.
		{"Len", stalled(4, 5, 6), func() { c.Len() }, mc.Cost{Loads: 2 + 1 + 64 + 4 + 3*4 + 2, RMWs: 4}},
		// What is below the mark is final, so each slot's word is loaded once.
		{"Entries", stalled(4, 5, 6), func() {
			for range c.Entries() {
			}
		}, mc.Cost{Loads: 2 + 1 + 64 + 4 + 3*4 + 2 + 4 + 3 + 3, RMWs: 4}},
	} {
		if tt.with != nil {
			c = tt.with
		}
		if got := mc.Measure(tt.op); got != tt.want {
			t.Errorf("%s costs %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Costs of what replaces a slice's array.
func TestCostsOfArrays(t *testing.T) {
	var s ints
	for _, tt := range []struct {
		name string
		op   func()
		want mc.Cost
	}{
		{"the first Append", func() { s.Append(1, 2, 3, 4) }, mc.Cost{Loads: 1, Stores: 1, RMWs: 1}},
		{"Append to a full one", func() { s.Append(5) }, mc.Cost{Loads: 2, Stores: 1, RMWs: 2}},
		// It looks as often as a patient one does, and then replaces the array.
		{"a claim, and Append", func() { s.AppendClaim(6); s.Append(7) }, mc.Cost{Loads: 2 + 2*(1+64+4), Stores: 1, RMWs: 1 + 2}},
	} {
		if got := mc.Measure(tt.op); got != tt.want {
			t.Errorf("%s costs %v, want %v", tt.name, got, tt.want)
		}
	}
}
