//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

type threads = [][]call

// protocol explores what threads do to a tracker. In every execution, some
// sequential order explains the results, and every receipt is right.
func protocol(t *testing.T, cfg mc.Config, fresh, model func() recorder, threads threads, after ...call) {
	t.Helper()
	mc.Linearizable(t, cfg, mc.Program[recorder]{
		New:     fresh,
		Model:   model,
		Threads: threads,
		After:   append(after, trail, current, ids, audit),
	})
}

// Checks L6.

// What threads may do to a tracker and its first changeset. All but one of the
// bodies are explored in full, that one with few preemptions.
func TestTrackerProtocols(t *testing.T) {
	few := mc.Config{Mode: mc.Bounded, Preemptions: 2}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		threads threads
	}{
		{"two writers", mc.Config{}, threads{{record(1), record(2)}, {record(3), record(4)}}},
		{"three writers", mc.Config{}, threads{{record(1)}, {record(2)}, {record(3)}}},
		{"writers of batches", mc.Config{}, threads{{record(1, 2)}, {record(3), record(4, 5)}}},
		{"writers and a cut", mc.Config{}, threads{{record(1)}, {record(2)}, {entries}}},
		{"writer and cuts", mc.Config{}, threads{{record(1)}, {entries, size}, {entries}}},
		{"far writer and cuts", mc.Config{}, threads{{record(1), record(2), record(3)}, {entries, entries}}},
		{"batch and a cut", mc.Config{}, threads{{record(1, 2)}, {entries, entries}}},
		{"batch, writer and a cut", mc.Config{}, threads{{record(1, 2)}, {record(3)}, {entries}}},

		{"writer and seal", mc.Config{}, threads{{record(1), record(2)}, {seal, entries}}},
		{"batch and seal", mc.Config{}, threads{{record(1, 2, 3)}, {seal}}},
		{"writer, cut and seal", mc.Config{}, threads{{record(1)}, {entries}, {seal}}},
		{"writer and seals", mc.Config{}, threads{{record(1)}, {seal}, {seal}}},
		{"writers and seal", mc.Config{}, threads{{record(1, 2)}, {record(3)}, {seal}}},
		{"the sealed channel", mc.Config{}, threads{{seal}, {sealed, sealed}, {pinned(1)}}},

		{"writer and starts", mc.Config{}, threads{{record(1), record(2)}, {starts, starts}}},
		{"writer and two starters", few, threads{{record(1)}, {starts}, {starts}}},
		{"starters, one of whom writes", mc.Config{}, threads{{starts, record(1)}, {starts}}},
		{"starter that is late to help", mc.Config{}, threads{{starts, record(1), trail}, {starts}}},
		{"starter that is late to help, and looks", mc.Config{}, threads{{starts, record(1)}, {starts, trail}}},
		{"batch and start", mc.Config{}, threads{{record(1, 2)}, {starts, trail}}},
		{"pinned writer and start", mc.Config{}, threads{{pinned(1), record(2)}, {starts, entries}}},
		{"writer, start and seal", mc.Config{}, threads{{record(1)}, {starts}, {seal}}},
		{"writer, start and trail", mc.Config{}, threads{{record(1)}, {starts}, {trail}}},
		{"pinned writer, start and trail", mc.Config{}, threads{{pinned(1)}, {starts}, {trail}}},
		{"starters after the same", mc.Config{}, threads{{startAfter(1)}, {startAfter(1)}, {record(1)}}},
		{"starter after another, who looks", mc.Config{}, threads{{startAfter(1), record(1)}, {starts, ids}}},
		{"starter after another, and looks", mc.Config{}, threads{{startAfter(1), ids}, {starts, record(1)}}},
		{"start, seal and current", mc.Config{}, threads{{starts}, {seal}, {current}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			protocol(t, tt.cfg, withOne, modelWithOne, tt.threads, notified, entries, size, sealed, seal)
		})
	}
}

// The same where the first changeset has no chunk and nobody has asked for its seal:
// whoever comes first makes what is needed.
func TestNewChangesetProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		threads threads
	}{
		{"two writers", threads{{record(1), record(2)}, {record(3)}}},
		{"three writers", threads{{record(1)}, {record(2)}, {record(3)}}},
		{"writers of batches", threads{{record(1, 2)}, {record(3, 4)}}},
		{"writer and cuts", threads{{record(1)}, {entries, size}}},
		{"batch and cuts", threads{{record(1, 2)}, {entries, size}}},
		{"writer, cut and seal", threads{{record(1)}, {entries}, {seal}}},
		{"batch and seal", threads{{record(1, 2)}, {seal}}},
		{"late writers", threads{{seal}, {record(1)}, {record(2)}}},
		{"writer, start and trail", threads{{record(1)}, {starts}, {trail}}},
		{"the sealed channel", threads{{seal}, {sealed, sealed}, {pinned(1)}}},
		{"the sealed channel, for two", threads{{seal}, {sealed}, {sealed}}},
		{"the sealed channel, and a start", threads{{starts}, {sealed}, {pinned(1)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			protocol(t, mc.Config{}, withNew, modelWithOne, tt.threads, notified, entries, size, sealed, seal)
		})
	}
}

// The same where there is no changeset yet.
func TestFirstStartProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		threads threads
	}{
		{"writer", threads{{starts}, {record(1), record(2)}}},
		{"observer", threads{{starts, record(1)}, {current, ids, trail}}},
		{"starters", threads{{startAfter(0)}, {startAfter(0)}, {current}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			protocol(t, mc.Config{}, func() recorder { return none() }, modelOfNone, tt.threads)
		})
	}
}

// report is the service of the defect report, as naive in defect_report_test.go, with
// words that the checker knows: the store and the list are each safe to use.
type report struct {
	recorder
	mu    atomics.Mutex
	store [][]int
	list  []int
}

func (r *report) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *report) start() int {
	var id int
	r.locked(func() { r.store = append(r.store, nil); id = len(r.store) })
	r.locked(func() { r.list = append(r.list, id) })
	return id
}

func (r *report) record(es ...int) int {
	id := 0
	r.locked(func() {
		if n := len(r.list); n > 0 {
			id = r.list[n-1]
		}
	})
	if id > 0 {
		r.locked(func() { r.store[id-1] = append(r.store[id-1], es...) })
	}
	return id
}

func (r *report) entries() (es []int) {
	r.locked(func() { es = slices.Clone(r.store[0]) })
	return es
}

func (r *report) ids() (n int) {
	r.locked(func() { n = len(r.store) })
	return n
}

// The windows of the report: a change that is made while a changeset starts, is in the
// old one, and its writer sees the new one; and a change that is made while a changeset
// ends, and is not among those that were applied.
var reported = map[string]threads{
	"window of start":  {{starts}, {ids, record(1)}},
	"window of record": {{starts, entries}, {record(1)}},
}

func TestReport_NaiveMisplacesChanges(t *testing.T) {
	for name, threads := range reported {
		t.Run(name, func(t *testing.T) {
			mc.NotLinearizable(t, mc.Config{}, mc.Program[recorder]{
				New:     func() recorder { r := new(report); r.start(); return r },
				Model:   modelWithOne,
				Threads: threads,
				After:   []call{entries},
			})
		})
	}
}

// Reported bug 14, the defect report, systeminit: a change lands in another changeset.
func TestReport_TrackerMisplacesNothing(t *testing.T) {
	for name, threads := range reported {
		t.Run(name, func(t *testing.T) { protocol(t, mc.Config{}, withOne, modelWithOne, threads, entries) })
	}
}

// Whoever is refused is told what was decided, and not what was the case before.
func TestAbortProtocols(t *testing.T) {
	ctx := context.Background()
	type world struct {
		m        *mc.M
		c        *cowchangeset.Changeset[int]
		appliers int
		applied  mc.Tally
	}
	apply := func(result error) func(*world) {
		return func(w *world) {
			err := w.c.Apply(ctx, func(context.Context, cowchangeset.Final[int]) error { return result })
			switch {
			case err == result:
				if w.applied.Add(1); result == nil && w.c.Reason() != nil {
					w.m.Failf("applied, and aborted")
				}
			case err == cowchangeset.ErrAborted && w.c.Reason() != nil:
			case (err == cowchangeset.ErrApplying || err == cowchangeset.ErrApplied) && w.appliers > 1:
			default:
				w.m.Failf("Apply: %v", err)
			}
		}
	}
	abort := func(w *world) {
		switch err := w.c.Abort(ctx, errDisk); {
		case err == nil && w.c.Reason() == errDisk:
		case err == cowchangeset.ErrApplying && w.appliers > 0:
		case err == cowchangeset.ErrApplied && w.appliers > 0 && w.c.Applied() == cowchangeset.AllApplied:
		default:
			w.m.Failf("Abort: %v, because of %v", err, w.c.Reason())
		}
	}
	for operations, tt := range map[string]struct {
		cfg      mc.Config
		appliers int
		threads  []func(*world)
	}{
		"Apply ∥ Abort":                {mc.Config{}, 1, []func(*world){apply(nil), abort}},
		"Apply(error) ∥ Abort":         {mc.Config{}, 1, []func(*world){apply(errDisk), abort}},
		"Abort ∥ Abort":                {mc.Config{}, 0, []func(*world){abort, abort}},
		"Apply(error) ∥ Abort ∥ Abort": {mc.Config{}, 1, []func(*world){apply(errDisk), abort, abort}},
		"Apply ∥ Apply(error) ∥ Abort": {mc.Config{}, 2, []func(*world){apply(nil), apply(errDisk), abort}},
		"Apply(error), Apply ∥ Abort":  {mc.Config{}, 1, []func(*world){func(w *world) { apply(errDisk)(w); apply(nil)(w) }, abort}},
		"Apply(error), Abort ∥ Apply":  {mc.Config{}, 2, []func(*world){func(w *world) { apply(errDisk)(w); abort(w) }, apply(nil)}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				w := &world{m: m, appliers: tt.appliers}
				w.c, _ = new(cowchangeset.Tracker[int]).Start(ctx)
				w.c.Seal(ctx) // that is explored elsewhere
				for _, do := range tt.threads {
					m.Go(func() { do(w) })
				}
			})
		})
	}
	t.Run("Abort ∥ Reason, Record", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Abort ∥ Reason, Record"}, func(m *mc.M) {
			c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
			m.Go(func() { c.Abort(ctx, errDisk) })
			m.Go(func() {
				switch why := c.Reason(); why {
				case nil:
				case errDisk:
					if _, err := c.Record(1); err != cowchangeset.ErrSealed {
						m.Failf("recorded into what is aborted")
					}
				default:
					m.Failf("aborted because of %v", why)
				}
			})
		})
	})
}

// A cut has all that was reserved before, unless it is the final one, which ends where nothing more will come.
func TestCutBesideTheFinalOne(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "a cut ∥ Seal, after reservations of two writers that have stalled"}, func(m *mc.M) {
		var tracker cowchangeset.Tracker[int]
		c, _ := tracker.Start(context.Background())
		c.Reserve(1, 2)
		c.Reserve(3)
		m.Go(func() {
			if !c.CutsAll() {
				m.Failf("a cut that is not final lacks what was reserved before")
			}
		})
		m.Go(func() { c.Seal(context.Background()) })
	})
}

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
		{"Seal again", func(s *state) { s.c.Seal(context.Background()) }, mc.Cost{Loads: 2}},
		{"Trail after the Seal", func(s *state) { s.tr.Trail() }, mc.Cost{Loads: 4}},
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
