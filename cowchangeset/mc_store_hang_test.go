//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
)

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
		"Seal(ctx), cancel ∥ Record, and all is told": {few(1), async, nil, []do{attempts.sealAndLeave, func(a attempts) { a.tracker.Record(1) }}},
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
						wantTold(m, a.tracker, a.store)
					}
				})
			})
		})
	}
}
