//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/mc"
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
	mc.CheckCost(t, "Changeset.Record after a Seal", ended(func(_ *tracker, c *changeset) { c.Record(4) }), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "Changeset.Len with nothing new", of(func(_ *tracker, c *changeset) { c.Len() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Changeset.Len after a Seal", ended(func(_ *tracker, c *changeset) { c.Len() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Changeset.Seal after a Seal", ended(func(_ *tracker, c *changeset) { c.Seal(context.Background()) }), mc.Cost{Loads: 3}, 0)

	mc.CheckCost(t, "Slice.Load", with(func(s *ints) { s.Load() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Slice.Snapshot", with(func(s *ints) { s.Snapshot() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Slice.Append", with(func(s *ints) { s.Append(2) }), mc.Cost{Loads: 2, RMWs: 2}, 4, 16.04, 128.12)
	mc.CheckCost(t, "Slice.Update", with(func(s *ints) { s.Update(func(old []int) []int { return old }) }), mc.Cost{Loads: 4, Stores: 1, RMWs: 2}, 4.17, 17.88, 136.97)
	mc.CheckCost(t, "Slice.Snapshot, and CompareAndSwap", with(func(s *ints) { s.CompareAndSwap(s.Snapshot(), three) }), mc.Cost{Loads: 4, Stores: 1, RMWs: 2}, 3.67, 4.15, 4.23)
}
