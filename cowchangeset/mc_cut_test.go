//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/mc"
)

// What a cut costs does not depend on how much there is: it looks at what was
// reserved since the last one, and takes as many steps with ten entries as with
// ten million. Only one that begins in another chunk than the last cut takes one
// more, to find that.
func TestCutsCostTheSame(t *testing.T) {
	type (
		none     = struct{} // so that ten million take no more than their slots
		tracker  = cowchangeset.Tracker[none]
		sequence = func(func(uint64, none) bool)
	)
	begin := func(entries sequence) {
		for range entries {
			break
		}
	}
	sizes := []int{10, 10_000_000}
	if testing.Short() {
		sizes[1] = 100_000
	}
	type state struct {
		tr    *tracker
		c     *cowchangeset.Changeset[none]
		final cowchangeset.Final[none]
	}
	ops := []struct {
		name string
		op   func(*state)
		cost mc.Cost
	}{
		{"the first Trail", func(s *state) { s.tr.Trail() }, mc.Cost{Loads: 10, RMWs: 1}},
		{"Trail with nothing new", func(s *state) { s.tr.Trail() }, mc.Cost{Loads: 5}},
		{"Len of a Trail", func(s *state) { s.tr.Trail().Len() }, mc.Cost{Loads: 5}},
		{"Entries, the first", func(s *state) { begin(s.c.Entries()) }, mc.Cost{Loads: 4}},
		{"Len", func(s *state) { s.c.Len() }, mc.Cost{Loads: 2}},
		{"Follow, the first", func(s *state) { begin(s.c.Follow(context.Background(), 0)) }, mc.Cost{Loads: 4}},
		{"Record", func(s *state) { s.tr.Record(none{}) }, mc.Cost{Loads: 4, RMWs: 2}},
		{"a Trail with one new entry", func(s *state) { s.tr.Trail() }, mc.Cost{Loads: 6, RMWs: 1}},
		{"Record, Trail", func(s *state) { s.tr.Record(none{}); s.tr.Trail() }, mc.Cost{Loads: 10, RMWs: 3}},
		{"Seal", func(s *state) { s.final, _ = s.c.Seal(context.Background()) }, mc.Cost{Loads: 7, Stores: 1, RMWs: 2}},
		{"Final.Len", func(s *state) { s.final.Len() }, mc.Cost{}},
		{"Final.All, the first", func(s *state) { begin(s.final.All()) }, mc.Cost{Loads: 1}},
		{"Seal again", func(s *state) { s.c.Seal(context.Background()) }, mc.Cost{Loads: 3}},
		{"Trail after the Seal", func(s *state) { s.tr.Trail() }, mc.Cost{Loads: 5}},
	}
	for _, n := range sizes {
		s := &state{tr: new(tracker)}
		mc.Measure(func() { // with the limits of a normal build
			s.c, _ = s.tr.Start(context.Background())
			s.tr.RecordBatch(make([]none, n-1))
			s.tr.Record(none{})
		})
		for _, x := range ops {
			want := x.cost
			if x.name == "the first Trail" && n > 16 {
				want.Loads++ // of tail
			}
			if got := mc.Measure(func() { x.op(s) }); got != want {
				t.Errorf("%d entries, %s: %v, want %v", n, x.name, got, want)
			}
		}
	}
}
