//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// floor is what the operations of a world do something to.
type floor struct {
	*cowchangeset.Tracker[int]
	c, later *cowchangeset.Changeset[int] // the first, and the second if there is one
}

type (
	floorOp = mc.Operation[*floor]
	numbers = *cowchangeset.Slice[int]
	sliceOp = mc.Operation[numbers]
)

var background = context.Background()

// begun returns how a floor is made with so many changesets, of which the first has so many entries.
func begun(changesets, entries int, c cowchangeset.Config[int], more ...func(f *floor)) func() *floor {
	return func() *floor {
		config := c
		var n mc.Tally
		config.NewID = func(context.Context) (string, error) { n.Add(1); return string(rune('a' + n.Value())), nil }
		f := &floor{Tracker: cowchangeset.MustNew(config)}
		for i := range changesets {
			c, err := f.Start(background)
			if err != nil {
				panic(err)
			}
			if i == 0 {
				f.c = c
				for e := range entries {
					f.Record(e)
				}
			} else {
				f.later = c
			}
		}
		for _, m := range more {
			m(f)
		}
		return f
	}
}
func does(name string, do func(f *floor)) floorOp { return floorOp{Name: name, Do: do} }

var errWhy = errors.New("why")

func drains[A, B any](loop func(yield func(A, B) bool)) { loop(func(A, B) bool { return true }) }

// Operations of a tracker, and of its first changeset.
var (
	opRecord     = does("Tracker.Record", func(f *floor) { f.Record(1) })
	opRecordCtx  = does("Tracker.RecordContext", func(f *floor) { f.RecordContext(background, 1) })
	opBatch      = does("Tracker.RecordBatch", func(f *floor) { f.RecordBatch([]int{2, 3}) })
	opBatchCtx   = does("Tracker.RecordBatchContext", func(f *floor) { f.RecordBatchContext(background, []int{2, 3}) })
	opStart      = does("Tracker.Start", func(f *floor) { f.Start(background) })
	opStartAfter = does("Tracker.StartAfter", func(f *floor) { f.StartAfter(background, f.c) })
	opTrail      = does("Tracker.Trail", func(f *floor) { f.Trail() })
	opIDs        = does("Tracker.IDs", func(f *floor) { f.IDs() })
	opAll        = does("Tracker.All", func(f *floor) { drains(f.All()) })
	opByID       = does("Tracker.ByID", func(f *floor) { f.ByID("b") })
	opByOrdinal  = does("Tracker.ByOrdinal", func(f *floor) { f.ByOrdinal(1) })
	opPending    = does("Tracker.Pending", func(f *floor) { f.Pending()(func(*cowchangeset.Changeset[int]) bool { return true }) })
	opCurrent    = does("Tracker.Current", func(f *floor) { f.Current() })
	opPrune      = does("Tracker.Prune", func(f *floor) { f.Prune(1) })
	opFlush      = does("Tracker.Flush", func(f *floor) { f.Flush(background) })
	opFollowAll  = does("Tracker.Follow", func(f *floor) {
		f.Tracker.Follow(background, cowchangeset.Receipt{})(func(cowchangeset.Receipt, int) bool { return false })
	})
	opRecordPinned = does("Changeset.Record", func(f *floor) { f.c.Record(4) })
	opRecordPinCtx = does("Changeset.RecordContext", func(f *floor) { f.c.RecordContext(background, 4) })
	opSeal         = does("Changeset.Seal", func(f *floor) { f.c.Seal(background) })
	opSealed       = does("Changeset.Sealed", func(f *floor) { f.c.Sealed() })
	opIsSealed     = does("Changeset.IsSealed", func(f *floor) { f.c.IsSealed() })
	opEntries      = does("Changeset.Entries", func(f *floor) { drains(f.c.Entries()) })
	opLen          = does("Changeset.Len", func(f *floor) { f.c.Len() })
	opNext         = does("Changeset.Next", func(f *floor) { f.c.Next() })
	opPrevious     = does("Changeset.Previous", func(f *floor) { f.c.Previous() })
	opAbort        = does("Changeset.Abort", func(f *floor) { f.c.Abort(background, errWhy) })
	opReason       = does("Changeset.Reason", func(f *floor) { f.c.Reason() })
	opApplied      = does("Changeset.Applied", func(f *floor) { f.c.Applied() })
	opDurable      = does("Changeset.Durable", func(f *floor) { f.c.Durable() })
	opID           = does("Changeset.ID", func(f *floor) { f.c.ID() })
	opOrdinal      = does("Changeset.Ordinal", func(f *floor) { f.c.Ordinal() })
	opApply        = does("Changeset.Apply", func(f *floor) {
		f.c.Apply(background, func(context.Context, cowchangeset.Final[int]) error { return nil })
	})
	opApplyEach = does("Changeset.ApplyEach", func(f *floor) {
		f.c.ApplyEach(background, func(context.Context, uint64, int) error { return nil })
	})
	opFollow = does("Changeset.Follow", func(f *floor) { f.c.Follow(background, 0)(func(uint64, int) bool { return false }) })
)

// Every operation progresses as its documentation says, whoever stops for ever.
func TestProgress(t *testing.T) {
	const event, mutex = mc.Event, mc.Mutex
	slice := func(name string, do func(s numbers)) sliceOp { return sliceOp{Name: "Slice." + name, Do: do} }
	mc.CheckProgress(t, excused,
		mc.World[*floor]{Name: "entries", New: begun(1, 1, cowchangeset.Config[int]{}), Operations: []floorOp{
			opRecord.Free(), opRecordCtx.Free(), opBatch.Free(), opBatchCtx.Free(), opRecordPinned.Free(), opRecordPinCtx.Free(),
			opSeal.Free(), opSealed.Free(), opIsSealed.Free(), opEntries.Free(), opLen.Free(),
			opTrail.Free(), opCurrent.Free(), opAbort.Free(), opStart.Free(),
			opApplied.Bounded(1), opReason.Bounded(1), opID.Bounded(0), opOrdinal.Bounded(0), opDurable.Bounded(0),
		}},
		mc.World[*floor]{Name: "changesets", New: begun(2, 1, cowchangeset.Config[int]{PruneUnapplied: true}), Operations: []floorOp{
			opStart.Free(), opStartAfter.Free(), opRecord.Free(),
			opTrail.Free(), opIDs.Free(), opAll.Free(), opByID.Free(), opByOrdinal.Free(), opPending.Free(), opCurrent.Free(),
			opPrune.Free(), opNext.Free(), opPrevious.Bounded(1), opLen.Free(),
		}},
		mc.World[*floor]{Name: "nothing yet", New: begun(0, 0, cowchangeset.Config[int]{}), Operations: []floorOp{
			opStart.Free(), opRecord.Free(), opTrail.Free(), opCurrent.Free(), opIDs.Free(), opPrune.Free(),
		}},
		mc.World[*floor]{Name: "followers", New: begun(1, 0, cowchangeset.Config[int]{}), Operations: []floorOp{
			opFollow.Waits(event), opFollowAll.Waits(event), opRecord.Free(), opBatch.Free(), opSeal.Free(), opStart.Free(), opTrail.Free(),
		}},
		mc.World[*floor]{Name: "applied", New: begun(1, 2, cowchangeset.Config[int]{}, func(f *floor) { f.c.Seal(background) }), Operations: []floorOp{
			opApply, opApplyEach, opApplied.Bounded(1), opReason.Bounded(1), opAbort.Free(), opEntries.Free(), opPending.Free(),
		}},
		mc.World[*floor]{Name: "a store", Pairs: true, New: stored(cowchangeset.Config[int]{}), Operations: []floorOp{
			opRecordCtx.Waits(event), opBatchCtx.Waits(event), opRecordPinned.Waits(event), opRecordPinCtx.Waits(event), opStartAfter, opAbort.Waits(event),
			opRecord.Waits(event), opBatch.Waits(event), opSeal.Waits(event), opStart, opFlush.Waits(event),
			opTrail.Free(), opDurable.Bounded(1), opLen.Free(),
		}},
		mc.World[*floor]{Name: "a store that is told later", Pairs: true, New: stored(cowchangeset.Config[int]{Async: true}), Operations: []floorOp{
			opRecord.Free(), opBatch.Free(), opSeal.Waits(event), opFlush.Waits(event), opTrail.Free(), opDurable.Bounded(1),
		}},
		mc.World[numbers]{Name: "a slice", New: func() numbers {
			s := new(cowchangeset.Slice[int])
			s.Append(1, 2, 3)
			return s
		}, Operations: []sliceOp{
			slice("Load", func(s numbers) { s.Load() }).Bounded(2),
			slice("Len", func(s numbers) { s.Len() }).Bounded(2),
			slice("Snapshot", func(s numbers) { s.Snapshot() }).Bounded(2),
			slice("All", func(s numbers) { drains(s.All()) }).Bounded(2),
			slice("Append", func(s numbers) { s.Append(4) }).Free(),
			slice("Append more", func(s numbers) { s.Append(5, 6, 7) }).Free(),
			slice("Update", func(s numbers) { s.Update(func(old []int) []int { return []int{old[0], 8} }) }).Free(),
			slice("CompareAndSwap", func(s numbers) { s.CompareAndSwap(s.Snapshot(), []int{7, 8, 9}) }).Free(),
			slice("Set", func(s numbers) { s.Set(0, 2) }).Free(),
			slice("Delete", func(s numbers) { s.Append(0); s.Delete(0) }).Free(),
		}},
	)
}

// stored returns how a floor is made whose store takes a step in each call.
func stored(c cowchangeset.Config[int]) func() *floor {
	return func() *floor {
		c := c
		c.StoreTimeout = -1
		tracker, store := kept(c)
		set, err := tracker.Start(background)
		if err != nil {
			panic(err)
		}
		step(nil, store)
		return &floor{Tracker: tracker, c: set}
	}
}

// excused says why a promise has no operation.
var excused = map[string]string{
	"Changeset.Apply":             "it waits for its function and for the store, as Flush does",
	"Changeset.ApplyEach":         "it waits for its function and for the store, as Flush does",
	"Tracker.Start blocking":      "a goroutine of its own calls the store, and that one goes on",
	"Tracker.StartAfter blocking": "a goroutine of its own calls the store, and that one goes on",
	"Changeset.Entries blocking":  "it reads from a store what was loaded from one",
}
