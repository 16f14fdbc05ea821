//go:build modelcheck

package interleavings

import (
	"context"
	"errors"
	"fmt"
	"iter"

	cc "github.com/latchfree/latchfree/cowchangeset"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// What a Record returns in place of an ordinal.
const (
	noneYet = "none yet"
	sealed  = "sealed"
)

// recorded prints what a Record returned, and remembers the receipt.
func (t *sharedTracker) recorded(thread int, r cc.Receipt, err error, es ...int) any {
	switch {
	case errors.Is(err, cc.ErrSealed):
		return sealed
	case err == cc.ErrNoActive:
		return noneYet
	case err != nil:
		return err
	}
	for i, e := range es {
		t.receipts[thread][e] = cc.Receipt{ChangesetID: r.ChangesetID, Ordinal: r.Ordinal, Seq: r.Seq + uint64(i)}
	}
	return r.Ordinal
}

// record is Record on the model: entries go to the active changeset.
func record(s *model.Tracker, es ...int) any {
	c := s.Active()
	switch {
	case s.Latest() == nil:
		return noneYet
	case c == nil:
		return sealed
	}
	c.Record(es...)
	return c.Ordinal
}

func changesetRecord(e int) changesetOp {
	return changesetOp{Name: fmt.Sprintf("Record(%d)", e), Do: func(c *changesetCaller) {
		c.Once("Record", func() any {
			r, err := c.Real.Record(e)
			return c.Real.recorded(c.Thread, r, err, e)
		}, func(s *model.Tracker, _ int) any { return record(s, e) })
	}}
}

func changesetBatch(es []int) changesetOp {
	return changesetOp{Name: fmt.Sprintf("RecordBatch(%d)", es), Do: func(c *changesetCaller) {
		c.Once("RecordBatch", func() any {
			r, err := c.Real.RecordBatch(es)
			return c.Real.recorded(c.Thread, r, err, es...)
		}, func(s *model.Tracker, _ int) any {
			if len(es) == 0 {
				return 0
			}
			return record(s, es...)
		})
	}}
}

// changesetOn is an operation on a changeset that the thread knows, if it knows
// one. Want is given the model of that changeset.
func changesetOn(op string, back byte, do func(t *sharedTracker, thread int, set *cc.Changeset[int]) any, want func(set *model.Changeset) any) changesetOp {
	return changesetOp{Name: fmt.Sprintf("%s of %d back", op, back), Do: func(c *changesetCaller) {
		set := c.Real.pick(c.Thread, back)
		if set == nil {
			return
		}
		c.Once(op, func() any { return do(c.Real, c.Thread, set) },
			func(s *model.Tracker, _ int) any { return want(s.Sets[set.Ordinal()-1]) })
	}}
}

func changesetPinned(back byte, e int) changesetOp {
	return changesetOn("Changeset.Record", back, func(t *sharedTracker, thread int, set *cc.Changeset[int]) any {
		r, err := set.Record(e)
		return t.recorded(thread, r, err, e)
	}, func(set *model.Changeset) any {
		if set.Sealed {
			return sealed
		}
		set.Record(e)
		return set.Ordinal
	})
}

func changesetSeal(back byte) changesetOp {
	return changesetOn("Seal", back/2, func(t *sharedTracker, thread int, set *cc.Changeset[int]) any {
		if back%2 == 1 {
			_, err := set.Seal(cancelled())
			return err
		}
		final, err := set.Seal(context.Background())
		if err != nil {
			return err
		}
		t.finals[thread][set] = final
		return entriesOf(final.All())
	}, func(set *model.Changeset) any {
		if back%2 == 1 {
			return errInjected
		}
		return set.Seal()
	})
}

func changesetEntries(back byte) changesetOp {
	return changesetOn("Entries", back, func(_ *sharedTracker, _ int, set *cc.Changeset[int]) any {
		return entriesOf(set.Entries())
	}, func(set *model.Changeset) any { return set.Entries })
}

// changesetSealed looks at the channel. A receive from it is no step, and need not be
// one: the goroutine that made the channel has seen the seal.
func changesetSealed(back byte) changesetOp {
	return changesetOn("Sealed", back, func(_ *sharedTracker, _ int, set *cc.Changeset[int]) any {
		select {
		case <-set.Sealed():
			return true
		default:
			return false
		}
	}, func(set *model.Changeset) any { return set.Sealed })
}

// started prints what Start returned, and makes the changeset known.
func (t *sharedTracker) started(thread int, set *cc.Changeset[int], err error) any {
	if err != nil {
		return err
	}
	t.sets[thread] = append(t.sets[thread], set)
	return set.Ordinal()
}

func changesetStart(arg byte) changesetOp {
	return changesetOp{Name: fmt.Sprintf("Start %d", arg%8), Do: func(c *changesetCaller) {
		id := ""
		c.Once("Start", func() any {
			if arg%8 == 7 {
				set, err := c.Real.Start(cancelled())
				return c.Real.started(c.Thread, set, err)
			}
			set, err := c.Real.Start(context.Background())
			if err == nil {
				id = set.ID()
			}
			return c.Real.started(c.Thread, set, err)
		}, func(s *model.Tracker, _ int) any {
			if arg%8 == 7 {
				return errInjected
			}
			return s.Start(id).Ordinal
		})
	}}
}

// changesetStartAfter names a changeset that the thread knows, or none, or that
// of another tracker.
func changesetStartAfter(arg byte) changesetOp {
	return changesetOp{Name: fmt.Sprintf("StartAfter %d", arg), Do: func(c *changesetCaller) {
		var prev *cc.Changeset[int]
		ordinal, id := 0, ""
		switch set := c.Real.pick(c.Thread, arg/4); {
		case arg%4 == 3:
			prev, ordinal = c.Real.foreign, -1
		case arg%4 > 0 && set != nil:
			prev, ordinal = set, int(set.Ordinal())
		}
		c.Once("StartAfter", func() any {
			set, err := c.Real.StartAfter(context.Background(), prev)
			if err == nil {
				id = set.ID()
			}
			return c.Real.started(c.Thread, set, err)
		}, func(s *model.Tracker, _ int) any {
			if set := s.StartAfter(ordinal, id); set != nil {
				return set.Ordinal
			}
			return cc.ErrConflict
		})
	}}
}

var (
	changesetCurrent = changesetOp{Name: "Current", Do: func(c *changesetCaller) {
		c.Once("Current", func() any {
			set, open := c.Real.Current()
			if set == nil {
				return noneYet
			}
			c.Real.sets[c.Thread] = append(c.Real.sets[c.Thread], set)
			return fmt.Sprint(set.Ordinal(), " open: ", open)
		}, func(s *model.Tracker, _ int) any {
			if s.Latest() == nil {
				return noneYet
			}
			return fmt.Sprint(s.Latest().Ordinal, " open: ", s.Active() != nil)
		})
	}}
	changesetIDs = changesetOp{Name: "IDs", Do: func(c *changesetCaller) {
		c.Once("IDs", func() any { return c.Real.IDs() }, func(s *model.Tracker, _ int) any { return s.IDs() })
	}}
	changesetTrail = changesetOp{Name: "Trail", Do: func(c *changesetCaller) {
		c.Once("Trail", func() any {
			trail, n := c.Real.Trail(), 0
			sets := map[uint64][]int{}
			for r, e := range trail.All() {
				n++
				sets[r.Ordinal] = append(sets[r.Ordinal], e)
			}
			if trail.Len() != n {
				return "wrong length"
			}
			return sets
		}, func(s *model.Tracker, _ int) any { return s.Trail() })
	}}

	// changesetAudit compares all receipts with the trail, and all finals with
	// what sealing again returns.
	changesetAudit = changesetOp{Name: "audit", Do: func(c *changesetCaller) {
		c.Once("audit", func() any { return c.Real.audit() }, func(*model.Tracker, int) any { return nil })
	}}
)

func (t *sharedTracker) audit() error {
	receipts := map[int]cc.Receipt{}
	for _, of := range t.receipts {
		for e, r := range of {
			receipts[e] = r
		}
	}
	for r, e := range t.Trail().All() {
		if receipts[e] != r {
			return fmt.Errorf("%d is at %v, and its receipt says %v", e, r, receipts[e])
		}
		delete(receipts, e)
	}
	for e, r := range receipts {
		if r.Ordinal < t.oldest() {
			delete(receipts, e) // forgotten
		}
	}
	for _, of := range t.finals {
		for set, final := range of {
			if again, err := set.Seal(context.Background()); err != nil || again != final {
				return fmt.Errorf("two finals of %d", set.Ordinal())
			}
		}
	}
	if len(receipts) > 0 {
		return fmt.Errorf("receipts without entries: %v", receipts)
	}
	return nil
}

// oldest returns the ordinal of the first changeset that is not forgotten.
func (t *sharedTracker) oldest() uint64 {
	c, _ := t.Current()
	if c == nil {
		return 0
	}
	return c.Ordinal() + 1 - uint64(len(t.IDs()))
}

// entriesOf returns entries, whose numbers must increase.
func entriesOf(entries iter.Seq2[uint64, int]) any {
	es, next := []int{}, uint64(0)
	for seq, e := range entries {
		if seq < next {
			return "out of order"
		}
		next = seq + 1
		es = append(es, e)
	}
	return es
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInjected)
	return ctx
}
