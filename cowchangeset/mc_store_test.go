//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What a tracker does with a store: every call of the store takes a step before
// its work, so that others come in between; see memory for what it must be told.

// stepping returns a tracker with a changeset, whose store takes a step in each
// call and may fail as m chooses.
func stepping(m *mc.M, config cowchangeset.Config[int], faults ...string) (*cowchangeset.Tracker[int], *memory, *cowchangeset.Changeset[int]) {
	if config.StoreTimeout == 0 {
		config.StoreTimeout = -1
	}
	tracker, store := kept(config)
	c, err := tracker.Start(context.Background())
	if err != nil {
		m.Failf("%v", err)
	}
	step(m, store, faults...)
	return tracker, store, c
}

// step makes the store take a step in each call, and fail as m chooses in those of
// the methods that are named.
func step(m *mc.M, store *memory, faults ...string) {
	var step atomics.Uint32
	store.faults(func(_ context.Context, method, _ string) error {
		step.Add(1)
		if slices.Contains(faults, method) && m.Choose(2) == 1 {
			return errDisk
		}
		return nil
	})
}

// wantNotified fails if the tracker has made a mistake, or if the store does not have
// what the tracker has when everything is flushed.
func wantNotified(m *mc.M, tracker *cowchangeset.Tracker[int], store *memory) {
	store.faults(nil)
	if ids := cowchangeset.Forgotten(tracker); ids != nil {
		m.Failf("nobody asks the store again for %v, of which it lacks something", ids)
	}
	if err := tracker.Flush(context.Background()); err != nil {
		m.Failf("Flush: %v", err)
	}
	for _, s := range store.blunders() {
		m.Failf("the tracker's mistake: %s, after %q", s, store.called())
	}
	ids, stored := tracker.IDs(), store.ids()
	if len(stored) == len(ids)+1 {
		stored = stored[:len(ids)] // its Start has failed, or was left: the next one would replace it
	}
	if !slices.Equal(ids, stored) {
		m.Failf("changesets %v, and %v in the store", ids, store.ids())
	}
	for r, e := range tracker.Trail().All() {
		if s := store.has(r.ChangesetID); !slices.Contains(s.Entries, item{Seq: r.Seq, Value: e}) {
			m.Failf("%v at %v is not in the store: %v", e, r, store.called())
		}
	}
}

// Whoever has recorded finds the entry in the store, and the store is told of
// everything, once and in order, whatever fails.
func TestStoreProtocols(t *testing.T) {
	ctx := context.Background()
	type world struct {
		m       *mc.M
		async   bool
		seals   bool // a thread seals besides Start
		tracker *cowchangeset.Tracker[int]
		store   *memory
		first   *cowchangeset.Changeset[int]
	}
	recordInto := func(w world, e int) {
		r, err := w.tracker.Record(e)
		switch {
		case errors.Is(err, cowchangeset.ErrNoActive):
			if !w.seals {
				w.m.Failf("Record of %d found no changeset, though only a Start seals", e)
			}
		case err == nil && w.async:
		case err == nil:
			if s := w.store.has(r.ChangesetID); !slices.Contains(s.Entries, item{Seq: r.Seq, Value: e}) {
				w.m.Failf("Record of %d has returned, and the store has %v", e, s.Entries)
			}
		case !errors.Is(err, errDisk) || r.ChangesetID == "":
			w.m.Failf("Record returned %v, %v", r, err)
		}
	}
	records := func(es ...int) func(world) {
		return func(w world) {
			for _, e := range es {
				recordInto(w, e)
			}
		}
	}
	start := func(w world) {
		c, err := w.tracker.Start(ctx)
		if err != nil && !errors.Is(err, errDisk) {
			w.m.Failf("Start: %v", err)
		}
		if err == nil && !slices.Contains(w.store.ids(), c.ID()) {
			w.m.Failf("the store does not know %s", c.ID())
		}
	}
	sealFirst := func(w world) {
		if _, err := w.first.Seal(ctx); err == nil && !w.store.has("1").Sealed || err != nil && !errors.Is(err, errDisk) {
			w.m.Failf("Seal: %v, and the store has %+v", err, w.store.has("1"))
		}
	}
	abort := func(w world) {
		if err := w.first.Abort(ctx, errDisk); err == nil && !w.store.has("1").Aborted {
			w.m.Failf("the store does not know that 1 is aborted")
		}
	}
	apply := func(w world) {
		err := w.first.Apply(ctx, func(context.Context, cowchangeset.Final[int]) error {
			if s := w.store.has("1"); !s.Sealed || s.Aborted {
				w.m.Failf("applied, and the store has %+v", s)
			}
			return nil
		})
		if err == nil && w.store.has("1").Applied != cowchangeset.AllApplied {
			w.m.Failf("the store does not know that 1 is applied")
		}
	}
	prune := func(w world) { w.tracker.Prune(1) }
	few := mc.Config{Mode: mc.Bounded, Preemptions: 1}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		config  cowchangeset.Config[int]
		faults  []string
		threads []func(world)
	}{
		{"two recorders", mc.Config{}, cowchangeset.Config[int]{}, nil, []func(world){records(1), records(2)}},
		{"two recorders, and the store fails", few, cowchangeset.Config[int]{}, []string{"Append"}, []func(world){records(1), records(2)}},
		{"recorder and seal", few, cowchangeset.Config[int]{}, []string{"Append", "Seal"}, []func(world){records(1), sealFirst}},
		{"recorder and start", few, cowchangeset.Config[int]{}, []string{"Start"}, []func(world){records(1), start}},
		{"two starts", few, cowchangeset.Config[int]{}, []string{"Start"}, []func(world){start, start}},
		{"async recorder", mc.Config{}, cowchangeset.Config[int]{Async: true}, nil, []func(world){records(1, 2)}},
		{"async recorders", few, cowchangeset.Config[int]{Async: true}, nil, []func(world){records(1), records(2)}},
		{"async recorder and start", few, cowchangeset.Config[int]{Async: true}, nil, []func(world){records(1), start}},
		{"async recorder below the bound, and start", few, cowchangeset.Config[int]{Async: true, MaxBacklog: 4, RejectWhenFull: true}, nil, []func(world){records(1), start}},
		{"apply and abort", few, cowchangeset.Config[int]{Async: true}, []string{"Abort"}, []func(world){apply, abort}},
		{"two apply", few, cowchangeset.Config[int]{Async: true}, []string{"Applied"}, []func(world){apply, apply}},
		{"start and prune", few, cowchangeset.Config[int]{Async: true}, nil, []func(world){start, prune}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = fmt.Sprintf("%d threads: %s", len(tt.threads), tt.name)
			mc.Check(t, tt.cfg, func(m *mc.M) {
				w := world{m: m, async: tt.config.Async, seals: tt.name == "recorder and seal"}
				w.tracker, w.store, w.first = stepping(m, tt.config, tt.faults...)
				for _, do := range tt.threads {
					m.Go(func() { do(w) })
				}
				m.Final(func() {
					if tt.config.Async && len(tt.faults) == 0 && tt.name != "start and prune" {
						// Nobody waits, and yet the store has been told.
						for r, e := range w.tracker.Trail().All() {
							if s := w.store.has(r.ChangesetID); !slices.Contains(s.Entries, item{Seq: r.Seq, Value: e}) {
								m.Failf("the store was not told of %d", e)
							}
						}
						ids := w.tracker.IDs()
						for _, id := range ids[:len(ids)-1] {
							if !w.store.has(id).Sealed {
								m.Failf("the store was not told that %s is sealed", id)
							}
						}
					}
					if tt.name != "start and prune" {
						wantNotified(m, w.tracker, w.store)
					}
				})
			})
		})
	}
}

// Of several goroutines that want to apply or abort a changeset, one does.
func TestApplyProtocols(t *testing.T) {
	ctx := context.Background()
	for name, faults := range map[string][]mc.Fault{"Apply ∥ Apply ∥ Abort": {}, "Apply(1 or error or panic) ∥ Apply(…)": {mc.Error, mc.Panic}} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{Operations: name}
			if len(faults) == 0 {
				cfg.Mode, cfg.Preemptions = mc.Bounded, 3
			}
			mc.Check(t, cfg, func(m *mc.M) {
				tracker := new(cowchangeset.Tracker[int])
				c, _ := tracker.Start(ctx)
				tracker.Record(1)
				var running, succeeded, aborted mc.Tally
				apply := func() {
					defer func() { recover() }()
					err := c.Apply(ctx, func(context.Context, cowchangeset.Final[int]) error {
						if running.Add(1); running.Value() != 1 {
							m.Failf("two at a time")
						}
						defer running.Add(-1)
						var step atomics.Uint32
						step.Load()
						if len(faults) > 0 {
							if err := m.Fault(faults...); err != nil {
								return err
							}
						}
						succeeded.Add(1)
						return nil
					})
					if err == nil && succeeded.Value() != 1 {
						m.Failf("applied %d times", succeeded.Value())
					}
				}
				m.Go(apply)
				m.Go(apply)
				if len(faults) == 0 {
					m.Go(func() {
						if c.Abort(ctx, nil) == nil {
							aborted.Add(1)
						}
					})
				}
				m.Final(func() {
					if succeeded.Value()+aborted.Value() > 1 || len(faults) == 0 && succeeded.Value()+aborted.Value() != 1 {
						m.Failf("applied %d times, aborted %d times", succeeded.Value(), aborted.Value())
					}
				})
			})
		})
	}
}

// A Follow sleeps while there is nothing, and misses neither an entry nor the seal.
func TestFollowProtocols(t *testing.T) {
	ctx := context.Background()
	type changeset = *cowchangeset.Changeset[int]
	follows := func(m *mc.M, c changeset) {
		var got []int
		for _, e := range c.Follow(ctx, 0) {
			got = append(got, e)
		}
		f, _ := c.Seal(ctx)
		if want := collect(f.All()); !slices.Equal(got, want) {
			m.Failf("a Follow has seen %v of %v", got, want)
		}
	}
	records := func(es ...int) func(*mc.M, changeset) {
		return func(_ *mc.M, c changeset) {
			for _, e := range es {
				c.Record(e)
			}
		}
	}
	sealing := func(_ *mc.M, c changeset) { c.Seal(ctx) }
	few := mc.Config{Mode: mc.Bounded, Preemptions: 2}
	for name, tt := range map[string]struct {
		cfg     mc.Config
		threads []func(*mc.M, changeset)
	}{
		"Follow ∥ Record, Seal":         {mc.Config{}, []func(*mc.M, changeset){follows, func(m *mc.M, c changeset) { records(1)(m, c); sealing(m, c) }}},
		"Follow ∥ Record, Record, Seal": {few, []func(*mc.M, changeset){follows, func(m *mc.M, c changeset) { records(1, 2)(m, c); sealing(m, c) }}},
		"Follow ∥ Record ∥ Seal":        {few, []func(*mc.M, changeset){follows, records(1), sealing}},
		"Follow ∥ Follow ∥ Seal":        {few, []func(*mc.M, changeset){follows, follows, sealing}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Operations = name
			mc.Check(t, tt.cfg, func(m *mc.M) {
				c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
				for _, do := range tt.threads {
					m.Go(func() { do(m, c) })
				}
			})
		})
	}
	t.Run("Follow ∥ RecordBatch", func(t *testing.T) { // after which nobody wakes it
		mc.Check(t, mc.Config{Operations: "Follow ∥ RecordBatch"}, func(m *mc.M) {
			tr := new(cowchangeset.Tracker[int])
			c, _ := tr.Start(ctx)
			m.Go(func() {
				for _, e := range c.Follow(ctx, 0) {
					if e == 2 {
						return
					}
				}
			})
			m.Go(func() { tr.RecordBatch([]int{1, 2}) })
		})
	})
	t.Run("Follow(ctx) ∥ cancel ∥ Record", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Follow(ctx) ∥ cancel ∥ Record"}, func(m *mc.M) {
			c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
			ended, end := atomics.WithCancel(ctx)
			m.Go(func() {
				for range c.Follow(ended, 0) {
				}
			})
			m.Go(func() { end() })
			m.Go(func() { c.Record(1) })
		})
	})
}

// Somebody has woken a Follow and stalls, before two others come to sleep: a Record
// wakes both.
func TestFollowsBehindAStalledWaker(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Follow ∥ Follow ∥ Record", Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
		ctx := context.Background()
		c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
		c.WakeSlowly()
		for range 2 {
			m.Go(func() {
				for range c.Follow(ctx, 0) {
					return
				}
			})
		}
		m.Go(func() { c.Record(1) })
	})
}

// A Follow asks whether there is more while the log ends before a slot that its writer has only reserved: it
// gets an answer.
func TestFollowAsksBesideAnEnd(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Record ∥ Seal ∥ a step of Follow", Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
		ctx := context.Background()
		c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
		cut := c.Cut()
		m.Go(func() { c.Record(1) })
		m.Go(func() { c.Seal(ctx) })
		m.Go(func() { c.Grown(cut) })
		m.Final(func() {
			if !c.Grown(cut) {
				m.Failf("it is sealed, and the Follow would sleep")
			}
		})
	})
}

// Checks L5, L7, L8, L10.

// Once a goroutine has seen the seal, no waiter sleeps any more, also where the sealer
// stalls before it has woken them.
func TestSealNotifiesAll(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Seal ∥ Record of a sleeping Follow"}, func(m *mc.M) {
		ctx := context.Background()
		c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
		c.Sealed()
		woken := c.Sleep()
		m.Go(func() { c.Seal(ctx) })
		m.Go(func() {
			if _, err := c.Record(1); err == cowchangeset.ErrSealed && !(woken() && c.Fired()) {
				m.Failf("it is sealed, and somebody sleeps")
			}
		})
	})
}

// A loop over All yields what was there at one moment, while Prune takes the older ones away.
func TestAllBesidePrunes(t *testing.T) {
	ctx := context.Background()
	mc.Check(t, mc.Config{Operations: "Start, Prune(1), Start, Prune(1), Start ∥ All"}, func(m *mc.M) {
		tr := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true, NewID: func(context.Context) (string, error) { return "id", nil }})
		tr.Start(ctx)
		tr.Start(ctx)
		m.Go(func() {
			for range 2 {
				tr.Start(ctx)
				tr.Prune(1)
			}
			tr.Start(ctx)
		})
		m.Go(func() {
			var all []uint64
			for ordinal := range tr.All() {
				all = append(all, ordinal)
			}
			n := len(all)
			if n == 0 || !slices.Contains([][2]uint64{{1, 2}, {1, 3}, {3, 3}, {3, 4}, {4, 4}, {4, 5}}, [2]uint64{all[0], all[n-1]}) {
				m.Failf("%v are not there at one moment", all)
			}
		})
	})
}

// Pruning meets starts and readers.
func TestPruneProtocols(t *testing.T) {
	ctx := context.Background()
	type tracker = *cowchangeset.Tracker[int]
	prune := func(_ *mc.M, tr tracker) { tr.Prune(1) }
	start := func(_ *mc.M, tr tracker) { tr.Start(ctx); tr.Record(3) }
	looks := func(m *mc.M, tr tracker) {
		if n := len(tr.IDs()); n == 0 || n > 3 {
			m.Failf("%d changesets", n)
		}
		last := 0
		for r, e := range tr.Trail().All() {
			if int(r.Ordinal) != e || e <= last || last != 0 && e != last+1 {
				m.Failf("%d is at %v, after %d", e, r, last)
			}
			last = e
		}
		if last < 2 {
			m.Failf("a trail up to %d", last)
		}
	}
	counts := func(m *mc.M, tr tracker) {
		if n := len(tr.IDs()); n == 0 || n > 4 {
			m.Failf("%d changesets", n)
		}
	}
	// No more than two are there at a time.
	idsOfTwo := func(m *mc.M, tr tracker) {
		if n := len(tr.IDs()); n > 2 {
			m.Failf("%d changesets, and no more than 2 at one moment", n)
		}
	}
	trailOfTwo := func(m *mc.M, tr tracker) {
		if n := tr.Trail().Len(); n > 2 {
			m.Failf("%d entries, and no more than 2 at one moment", n)
		}
	}
	// What has nothing before it is the first.
	previous := func(m *mc.M, tr tracker) {
		c, _ := tr.Current()
		if c.Previous() == nil && len(tr.IDs()) > 1 {
			m.Failf("nothing is before number %d, and that is not the first", c.Ordinal())
		}
	}
	leavesOne := func(m *mc.M, tr tracker) {
		tr.Start(ctx)
		if prune(m, tr); len(tr.IDs()) != 1 {
			m.Failf("%d changesets are left", len(tr.IDs()))
		}
	}
	// A trail never changes.
	reads := func(m *mc.M, tr tracker) {
		trail := tr.Trail()
		n := trail.Len()
		for range trail.All() {
			n--
		}
		if n != 0 {
			m.Failf("a trail has not as many entries as a moment ago: %d too few", n)
		}
	}
	for name, threads := range map[string][]func(*mc.M, tracker){
		"Start, Start, Prune(1) ∥ IDs":                {func(m *mc.M, tr tracker) { tr.Start(ctx); tr.Start(ctx); prune(m, tr) }, counts},
		"Start, Prune(1), Record ∥ Trail, read twice": {func(m *mc.M, tr tracker) { tr.Start(ctx); prune(m, tr); tr.Record(3) }, reads},
		"Prune(1) ∥ Prune(1)":                         {prune, prune},
		"Prune(1) ∥ IDs, Trail":                       {prune, looks},
		"Prune(1) ∥ Start, Record":                    {prune, start},
		"Prune(1) ∥ Start, Record, Prune(1)":          {prune, func(m *mc.M, tr tracker) { start(m, tr); prune(m, tr) }},
		"Start, Record, Prune(1) ∥ IDs, Trail":        {func(m *mc.M, tr tracker) { start(m, tr); prune(m, tr) }, looks},
		"Prune(1), Start, Record ∥ IDs":               {func(m *mc.M, tr tracker) { prune(m, tr); start(m, tr) }, idsOfTwo},
		"Prune(1), Start, Record ∥ Trail":             {func(m *mc.M, tr tracker) { prune(m, tr); start(m, tr) }, trailOfTwo},
		"Prune(1) ∥ Previous, IDs":                    {prune, previous},
		"Start, Prune(1), IDs ∥ Prune(2)":             {leavesOne, func(_ *mc.M, tr tracker) { tr.Prune(2) }},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: name}, func(m *mc.M) {
				tr := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true, NewID: func(context.Context) (string, error) { return "id", nil }})
				for e := 1; e <= 2; e++ {
					tr.Start(ctx)
					tr.Record(e)
				}
				for _, do := range threads {
					m.Go(func() { do(m, tr) })
				}
				m.Final(func() {
					if c, open := tr.Current(); !open || tr.IDs() == nil || len(tr.IDs()) > int(c.Ordinal()) {
						m.Failf("%v", tr.IDs())
					}
				})
			})
		})
	}
	t.Run("Prune(1) ∥ Apply", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Prune(1) ∥ Apply"}, func(m *mc.M) {
			tr := new(cowchangeset.Tracker[int])
			first, _ := tr.Start(ctx)
			tr.Start(ctx)
			var ran atomics.Uint32
			m.Go(func() {
				first.Apply(ctx, func(context.Context, cowchangeset.Final[int]) error { ran.Store(1); return nil })
			})
			m.Go(func() {
				if n := tr.Prune(1); n == 1 && ran.Load() == 0 {
					m.Failf("it has forgotten what nobody has applied")
				}
			})
		})
	})
	t.Run("Prune(1) ∥ the first Start", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Prune(1) ∥ Start"}, func(m *mc.M) {
			tr := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
			m.Go(func() {
				if n := tr.Prune(1); n != 0 {
					m.Failf("forgot %d", n)
				}
			})
			m.Go(func() { tr.Start(ctx) })
		})
	})
}

// attempts is a tracker, with a store whose calls may be too slow for whoever
// waits, fail, or both; and what threads do to it.
type attempts struct {
	m       *mc.M
	tracker *cowchangeset.Tracker[int]
	store   *memory
	first   *cowchangeset.Changeset[int]
	started *mc.Tally // or nil
}

// fails reports whether err is one that a store can bring about.
func (a attempts) fails(what string, err error) bool {
	if err != nil && !errors.Is(err, cowchangeset.ErrStore) {
		a.m.Failf("%s: %v", what, err)
	}
	return err != nil
}

func (a attempts) record(e int) {
	r, err := a.tracker.Record(e)
	if !a.fails("Record", err) && !slices.Contains(a.store.has(r.ChangesetID).Entries, item{Seq: r.Seq, Value: e}) {
		a.m.Failf("%d was recorded, and the store has %+v", e, a.store.has(r.ChangesetID))
	}
}

func (a attempts) start() { a.startIn(context.Background()) }

func (a attempts) startIn(ctx context.Context) {
	c, err := a.tracker.Start(ctx)
	if err == context.Canceled {
		return // before the store was told
	}
	if a.fails("Start", err) {
		return
	}
	if !slices.Contains(a.store.ids(), c.ID()) {
		a.m.Failf("%s was started, and the store has %v", c.ID(), a.store.ids())
	}
	if a.started != nil {
		a.started.Add(1)
		if last, _ := a.tracker.Current(); last == nil || last.Ordinal() < c.Ordinal() {
			a.m.Failf("number %d was started, and is not there", c.Ordinal())
		}
	}
}

func (a attempts) leave() {
	ctx, end := atomics.WithCancel(context.Background())
	atomics.Go(end)
	a.startIn(ctx)
}

func (a attempts) flush() {
	n := a.first.Len()
	if !a.fails("Flush", a.tracker.Flush(context.Background())) && len(a.store.has("1").Entries) < n {
		a.m.Failf("flushed, and the store has %d entries of %d", len(a.store.has("1").Entries), n)
	}
}

func (a attempts) seal() {
	if _, err := a.first.Seal(context.Background()); !a.fails("Seal", err) && !a.store.has("1").Sealed {
		a.m.Failf("sealed, and the store has %+v", a.store.has("1"))
	}
}

func (a attempts) sealAndLeave() {
	ctx, end := atomics.WithCancel(context.Background())
	atomics.Go(end)
	f, err := a.first.Seal(ctx)
	if err == context.Canceled {
		return
	}
	if !a.fails("Seal", err) && !a.store.has("1").Sealed || f.Len() != a.first.Len() {
		a.m.Failf("sealed with %d entries, and the store has %+v", f.Len(), a.store.has("1"))
	}
}

func (a attempts) applyEach() {
	err := a.first.ApplyEach(context.Background(), func(context.Context, uint64, int) error {
		if s := a.store.has("1"); !s.Sealed || s.Aborted {
			a.m.Failf("applied, and the store has %+v", s)
		}
		return nil
	})
	switch err {
	case cowchangeset.ErrAborted, cowchangeset.ErrApplied, cowchangeset.ErrApplying:
		return
	}
	if !a.fails("ApplyEach", err) && a.store.has("1").Applied != cowchangeset.AllApplied {
		a.m.Failf("applied, and the store has %+v", a.store.has("1"))
	}
}

func (a attempts) applyAlone() {
	err := a.first.Apply(context.Background(), func(context.Context, cowchangeset.Final[int]) error { return nil })
	if err != cowchangeset.ErrAborted {
		a.fails("the only Apply", err)
	}
}

func (a attempts) abort() {
	switch err := a.first.Abort(context.Background(), errDisk); {
	case err == cowchangeset.ErrApplied || err == cowchangeset.ErrApplying:
	case a.fails("Abort", err):
	case !a.store.has("1").Aborted:
		a.m.Failf("aborted, and the store has %+v", a.store.has("1"))
	}
}

func (a attempts) prune() { a.tracker.Prune(1) }

// A store that hangs or fails, the calls that wait for it, and the calls that come
// next.
func TestStoreHangProtocols(t *testing.T) {
	type do = func(attempts)
	few := func(n int) mc.Config { return mc.Config{Mode: mc.Bounded, Preemptions: n} }
	slow, async := cowchangeset.Config[int]{StoreTimeout: 1}, cowchangeset.Config[int]{Async: true}
	slowly := cowchangeset.Config[int]{Async: true, StoreTimeout: 1}
	for operations, tt := range map[string]struct {
		cfg     mc.Config
		config  cowchangeset.Config[int]
		faults  []string
		threads []do
	}{
		"Record":                     {few(2), slow, nil, []do{func(a attempts) { a.record(1) }}},
		"Record, Record":             {few(0), slow, []string{"Append"}, []do{func(a attempts) { a.record(1); a.record(2) }}},
		"Record ∥ Record":            {few(1), slow, nil, []do{func(a attempts) { a.record(1) }, func(a attempts) { a.record(2) }}},
		"Start":                      {few(2), slow, []string{"Start"}, []do{attempts.start}},
		"Start, Start":               {few(0), slow, nil, []do{func(a attempts) { a.start(); a.start() }}},
		"Seal(ctx), cancel ∥ Record": {few(1), async, []string{"Append"}, []do{attempts.sealAndLeave, func(a attempts) { a.tracker.Record(1) }}},
		"Seal(ctx), cancel ∥ Record, and the store has all": {few(1), async, nil, []do{attempts.sealAndLeave, func(a attempts) { a.tracker.Record(1) }}},
		"Seal":                                 {few(2), slowly, []string{"Seal"}, []do{attempts.seal}},
		"Record, Flush ∥ Record (async)":       {few(1), async, []string{"Append"}, []do{func(a attempts) { a.tracker.Record(1); a.flush() }, func(a attempts) { a.tracker.Record(2) }}},
		"Record, Seal ∥ Flush (async)":         {few(1), async, []string{"Seal"}, []do{func(a attempts) { a.tracker.Record(1); a.seal() }, attempts.flush}},
		"Record, ApplyEach ∥ Abort (async)":    {few(1), async, []string{"Applied"}, []do{func(a attempts) { a.tracker.Record(1); a.applyEach() }, attempts.abort}},
		"Apply ∥ Abort (async)":                {few(1), async, []string{"Seal"}, []do{attempts.applyAlone, attempts.abort}},
		"ApplyEach ∥ ApplyEach (async)":        {few(1), async, []string{"Applied"}, []do{attempts.applyEach, attempts.applyEach}},
		"Record, Start, Prune ∥ Flush (async)": {few(1), async, []string{"Append"}, []do{func(a attempts) { a.tracker.Record(1); a.start(); a.prune() }, attempts.flush}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				a := attempts{m: m}
				a.tracker, a.store, a.first = stepping(m, tt.config, tt.faults...)
				for _, do := range tt.threads {
					m.Go(func() { do(a) })
				}
				m.Final(func() {
					for _, s := range a.store.blunders() {
						m.Failf("the tracker's mistake: %s, after %q", s, a.store.called())
					}
					if _, open := a.tracker.Current(); strings.HasSuffix(operations, "told") && !open && !a.store.has("1").Sealed {
						m.Failf("nobody waits, and the store was not told of the seal")
					}
					a.tracker.Unbounded()
					if !strings.Contains(operations, "Prune") { // the store has what the tracker has forgotten
						wantNotified(m, a.tracker, a.store)
					}
				})
			})
		})
	}
}

// One Start at a time has the turn to tell the store, also if another one leaves
// the line between the two.
func TestTicketProtocols(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the first one ends ∥ one leaves the line ∥ one comes"}, func(m *mc.M) {
		ctx := context.Background()
		tracker, _, _ := stepping(m, cowchangeset.Config[int]{})
		pass, _ := tracker.Enqueue(ctx)
		var passed mc.Tally
		m.Go(func() { passed.Add(1); pass() })
		m.Go(func() {
			ended, end := context.WithCancel(ctx)
			end()
			if pass, err := tracker.Enqueue(ended); err == nil {
				pass()
			}
		})
		m.Go(func() {
			pass, err := tracker.Enqueue(ctx)
			if err != nil || passed.Value() == 0 {
				m.Failf("it is its turn beside another: %v", err)
			}
			pass()
		})
	})
}

// Checks K1, K2, K3, K4, K5.

// A Start that its caller leaves, at whatever moment, has come into being or has
// not, for all to see, and the others have their turns.
func TestStartsThatAreLeft(t *testing.T) {
	start, leave := attempts.start, attempts.leave
	for operations, tt := range map[string]struct {
		cfg     mc.Config
		faults  []string
		threads []func(attempts)
	}{
		"Start(ctx), cancel":                 {mc.Config{Mode: mc.Bounded, Preemptions: 3}, []string{"Start"}, []func(attempts){leave}},
		"Start ∥ Start(ctx), cancel":         {mc.Config{Mode: mc.Bounded, Preemptions: 1}, []string{"Start"}, []func(attempts){start, leave}},
		"Start ∥ Start(ctx), cancel ∥ Start": {mc.Config{Mode: mc.PCT, Runs: 10_000}, nil, []func(attempts){start, leave, start}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				a := attempts{m: m, started: new(mc.Tally)}
				a.tracker, a.store = kept(cowchangeset.Config[int]{StoreTimeout: -1})
				if len(tt.faults) > 0 {
					step(m, a.store, tt.faults...)
				}
				for _, do := range tt.threads {
					m.Go(func() { do(a) })
				}
				m.Final(func() {
					if n := len(a.tracker.IDs()); n != a.started.Value() {
						m.Failf("%d changesets, and %d Starts have succeeded", n, a.started.Value())
					}
					wantNotified(m, a.tracker, a.store)
				})
			})
		})
	}
}

// A caller that leaves its Start when the store has answered may take the last step when
// others have gone on. It brings nothing back that was forgotten since.
func TestStartThatIsLeftTooLate(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the end of a Start ∥ the same, Start, Prune(1)"}, func(m *mc.M) {
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
		end := tracker.Settled("1")
		m.Go(end)
		m.Go(func() {
			end()
			tracker.Start(context.Background())
			tracker.Prune(1)
		})
		m.Final(func() {
			if first := tracker.FirstOrdinal(); first != 2 {
				m.Failf("the first one is number %d", first)
			}
		})
	})
}

// A Start that panics where it waits for the store leaves nobody without a turn,
// whether the store has answered by then or not.
func TestStartPanicsInTime(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Start(ctx that panics), Start"}, func(m *mc.M) {
		tracker, store, _ := stepping(m, cowchangeset.Config[int]{})
		m.Go(func() {
			func() {
				defer func() { recover() }()
				tracker.Start(panicContext{context.Background(), new(atomics.Uint32)})
			}()
			if _, err := tracker.Start(context.Background()); err != nil {
				m.Failf("the next Start: %v", err)
			}
		})
		m.Final(func() { wantNotified(m, tracker, store) })
	})
}

// panicContext takes a step where it is waited for, and panics.
type panicContext struct {
	context.Context
	step *atomics.Uint32
}

func (c panicContext) Done() <-chan struct{} {
	c.step.Add(1)
	panic("evil")
}

// A store that is a Pruner is told of all that was forgotten, in order and although
// nobody waits for it; with failures, when somebody tries again.
func TestPrunerProtocols(t *testing.T) {
	ctx := context.Background()
	type world struct {
		m       *mc.M
		tracker *cowchangeset.Tracker[int]
		store   *forgetful
	}
	prune := func(w world) { w.tracker.Prune(1) }
	pruneOne := func(w world) { w.tracker.Prune(2) }
	start := func(w world) {
		if _, err := w.tracker.Start(ctx); err != nil {
			w.m.Failf("Start: %v", err)
		}
	}
	flush := func(w world) {
		first := w.tracker.FirstOrdinal()
		err := w.tracker.Flush(ctx)
		if err != nil && !errors.Is(err, errDisk) {
			w.m.Failf("Flush: %v", err)
		}
		if w.store.mu.Lock(); err == nil && first > 1 && w.store.before < first {
			w.m.Failf("flushed, and the store has forgotten what is before %d, not %d", w.store.before, first)
		}
		w.store.mu.Unlock()
	}
	few := func(n int) mc.Config { return mc.Config{Mode: mc.Bounded, Preemptions: n} }
	for operations, tt := range map[string]struct {
		cfg     mc.Config
		faults  []string
		threads []func(world)
	}{
		"Prune(1) ∥ Prune(2)":                         {mc.Config{}, nil, []func(world){prune, pruneOne}},
		"Prune(2), Prune(1) ∥ Prune(1)":               {few(1), nil, []func(world){func(w world) { pruneOne(w); prune(w) }, prune}},
		"Prune(1) ∥ Start, Prune(1)":                  {few(0), nil, []func(world){prune, func(w world) { start(w); prune(w) }}},
		"Prune(1), Flush ∥ Prune(2)":                  {mc.Config{}, nil, []func(world){func(w world) { prune(w); flush(w) }, pruneOne}},
		"Prune(2) ∥ Prune(1), Flush; the store fails": {few(1), []string{"Prune"}, []func(world){pruneOne, func(w world) { prune(w); flush(w) }}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				w := world{m: m}
				w.tracker, w.store = forgetting(cowchangeset.Config[int]{StoreTimeout: -1})
				for range 3 {
					start(w)
				}
				if err := w.tracker.Flush(ctx); err != nil {
					m.Failf("%v", err)
				}
				step(m, w.store.memory, tt.faults...)
				for _, do := range tt.threads {
					m.Go(func() { do(w) })
				}
				m.Final(func() {
					if len(tt.faults) > 0 {
						w.store.faults(nil)
						flush(w)
					}
					if first := w.tracker.FirstOrdinal(); first == 1 || w.store.before != first {
						m.Failf("the first one is number %d, and the store has forgotten what is before %d", first, w.store.before)
					}
					for _, s := range w.store.blunders() {
						m.Failf("the tracker's mistake: %s, after %q", s, w.store.called())
					}
				})
			})
		})
	}
}

// What was left in the store may be read by several at once, and is kept once: they have the
// same Final, and loops yield what that has.
func TestFetchProtocols(t *testing.T) {
	ctx := context.Background()
	for operations, loops := range map[string]int{"Seal ∥ Seal": 0, "Seal ∥ Entries": 1} {
		t.Run(operations, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: operations}, func(m *mc.M) {
				tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[*int]{Store: leaving{}, StoreTimeout: -1})
				if err != nil {
					m.Failf("Resume: %v", err)
				}
				c, _ := tracker.Current()
				finals := make([]cowchangeset.Final[*int], 2-loops)
				for i := range finals {
					m.Go(func() {
						f, err := c.Seal(ctx)
						if err != nil {
							m.Failf("Seal: %v", err)
						}
						finals[i] = f
					})
				}
				for range loops {
					m.Go(func() {
						if n := len(collect(c.Entries())); n != 2 {
							m.Failf("%d entries", n)
						}
					})
				}
				m.Final(func() {
					for _, f := range finals {
						if f != finals[0] {
							m.Failf("Finals that are not equal")
						}
						if !slices.Equal(collect(c.Entries()), collect(f.All())) {
							m.Failf("the entries are kept twice")
						}
					}
				})
			})
		})
	}
}

// leaving is a store of one changeset, whose entries are left out, and new each time that they are read.
type leaving struct {
	cowchangeset.Store[*int] // is not called
}

func (leaving) Applied(context.Context, string, uint64) error { return nil }

func (leaving) Load(context.Context) iter.Seq2[cowchangeset.Saved[*int], error] {
	return func(yield func(cowchangeset.Saved[*int], error) bool) {
		yield(cowchangeset.Saved[*int]{
			Header:   cowchangeset.Header{ID: "1", Ordinal: 1},
			Manifest: cowchangeset.Manifest{Len: 2, Last: 1},
			Sealed:   true,
			Applied:  cowchangeset.AllApplied,
		}, nil)
	}
}

func (leaving) LoadEntries(context.Context, string) iter.Seq2[cowchangeset.Entry[*int], error] {
	return func(yield func(cowchangeset.Entry[*int], error) bool) {
		_ = yield(cowchangeset.Entry[*int]{Seq: 0, Value: new(int)}, nil) && yield(cowchangeset.Entry[*int]{Seq: 1, Value: new(int)}, nil)
	}
}

// A store that gives up because its context has ended has taken too long, whatever it returns.
func TestStoreThatGivesUp(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Record; the store gives up when it has no more time", Mode: mc.Bounded, Preemptions: 1}, func(m *mc.M) {
		tracker, store, _ := stepping(m, cowchangeset.Config[int]{StoreTimeout: 1})
		never := atomics.MakeEvent()
		store.faults(func(ctx context.Context, _, _ string) error {
			never.WaitContext(ctx)
			return errDisk
		})
		m.Go(func() {
			if _, err := tracker.Record(1); !errors.Is(err, cowchangeset.ErrStoreTimeout) {
				m.Failf("Record: %v", err)
			}
		})
	})
}

// A changeset of which the store lacks something is asked for again, though another one has just been, and nothing else
// was lacking.
func TestOlderChangesetsAreNotForgotten(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Start, whose Seal fails, Prune(9) ∥ Start, whose Seal fails", Mode: mc.Bounded, Preemptions: 1}, func(m *mc.M) {
		tracker, store, _ := stepping(m, cowchangeset.Config[int]{Async: true})
		failed := map[string]bool{}
		store.faults(func(_ context.Context, method, id string) error {
			if method == "Seal" && !failed[id] {
				failed[id] = true
				return errDisk
			}
			return nil
		})
		start := func() {
			if _, err := tracker.Start(context.Background()); err != nil {
				m.Failf("Start: %v", err)
			}
		}
		m.Go(func() { start(); tracker.Prune(9) })
		m.Go(start)
		m.Final(func() { wantNotified(m, tracker, store) })
	})
}
