//go:build modelcheck

package interleavings

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cc "github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/internal/atomics"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

type changesetMoment = interleave.Moment[*model.Tracker]

// refusedBy returns what Apply and Abort say when they are refused.
func refusedBy(err error) model.Fate {
	switch {
	case errors.Is(err, cc.ErrApplying):
		return model.Applying
	case errors.Is(err, cc.ErrApplied):
		return model.Applied
	case errors.Is(err, cc.ErrAborted):
		return model.Aborted
	}
	return ""
}

// sealsFirst is the seal that Apply and Abort begin with.
func sealsFirst(c *changesetCaller, op string, from interleave.Mark, ordinal uint64) *changesetMoment {
	return c.Add(&changesetMoment{Op: op + " seals", From: from, Explains: func(s *model.Tracker, _ int) bool {
		s.Sets[ordinal-1].Seal()
		return true
	}})
}

// changesetApply has a function that succeeds, or fails in one of several ways.
func changesetApply(arg byte) changesetOp {
	back, how := arg/4, arg%4
	return changesetOp{Name: fmt.Sprintf("Apply %d of %d back", how, back), Do: func(c *changesetCaller) {
		set := c.Real.pick(c.Thread, back)
		if set == nil {
			return
		}
		n := set.Ordinal()
		begins := &changesetMoment{Op: "Apply", From: c.Begin()}
		seals := sealsFirst(c, "Apply", begins.From, n)
		begins.Follows = seals
		var final any
		ran, ends := false, interleave.Mark{}
		var err error
		func() {
			defer func() { recover() }()
			err = set.Apply(context.Background(), func(_ context.Context, f cc.Final[int]) error {
				ran, final, begins.To = true, entriesOf(f.All()), c.End()
				defer func() { ends = c.Begin() }()
				switch how {
				case 1:
					return errInjected
				case 2:
					panic(errInjected)
				}
				return nil
			})
		}()
		returned := c.End()
		if !ran {
			begins.To = returned
		}
		seals.To = begins.To
		begins.Got = fmt.Sprint(refusedBy(err))
		if ran {
			begins.Got = fmt.Sprint("runs ", final)
		}
		refused, ok := refusedBy(err), how != 1 && how != 2
		begins.Explains = func(s *model.Tracker, _ int) bool {
			set := s.Sets[n-1]
			want := set.Apply()
			return ran == (want == "") && (!ran || fmt.Sprint(final) == fmt.Sprint(set.Entries)) && (ran || want == refused)
		}
		c.Add(begins)
		if !ran {
			return
		}
		ended := &changesetMoment{Op: "Apply ends", Got: fmt.Sprint(ok), From: ends, To: returned, Follows: begins,
			Explains: func(s *model.Tracker, _ int) bool { s.Sets[n-1].Applied(ok); return true }}
		if ok { // Applied says so before Apply lets others go on
			ended.Follows = c.Add(&changesetMoment{Op: "Apply is done", From: ends, To: returned, Follows: begins,
				Explains: func(s *model.Tracker, _ int) bool { s.Sets[n-1].Done = model.AllDone; return true }})
		}
		c.Add(ended)
	}}
}

func changesetAbort(arg byte) changesetOp {
	back := arg / 4
	return changesetOp{Name: fmt.Sprintf("Abort %d of %d back", arg%4, back), Do: func(c *changesetCaller) {
		set := c.Real.pick(c.Thread, back)
		switch {
		case set == nil:
			return
		case arg%4 == 3:
			c.Once("Abort", func() any { return set.Abort(cancelled(), nil) }, func(*model.Tracker, int) any { return errInjected })
			return
		}
		n := set.Ordinal()
		aborts := &changesetMoment{Op: "Abort", From: c.Begin()}
		aborts.Follows = sealsFirst(c, "Abort", aborts.From, n)
		refused := refusedBy(set.Abort(context.Background(), errInjected))
		aborts.To, aborts.Got = c.End(), fmt.Sprint(refused)
		aborts.Follows.To = aborts.To
		aborts.Explains = func(s *model.Tracker, _ int) bool { return s.Sets[n-1].Abort() == refused }
		c.Add(aborts)
	}}
}

func changesetReason(back byte) changesetOp {
	return changesetOn("Reason", back, func(_ *sharedTracker, _ int, set *cc.Changeset[int]) any {
		return set.Reason() != nil
	}, func(set *model.Changeset) any { return set.Fate == model.Aborted })
}

func changesetApplied(back byte) changesetOp {
	return changesetOn("Applied", back, func(_ *sharedTracker, _ int, set *cc.Changeset[int]) any {
		return set.Applied() == cc.AllApplied
	}, func(set *model.Changeset) any { return set.Done == model.AllDone })
}

// changesetFollow follows a changeset until it is sealed, or the context ends at
// some moment. What it yields is the beginning of what there is.
func changesetFollow(back byte) changesetOp {
	return changesetOp{Name: fmt.Sprintf("Follow of %d back", back), Do: func(c *changesetCaller) {
		set := c.Real.pick(c.Thread, back)
		if set == nil {
			return
		}
		ctx := cancelled()
		if c.Thread > 0 { // otherwise nobody would end it
			var cancel context.CancelFunc
			ctx, cancel = atomics.WithCancel(context.Background())
			atomics.Go(cancel)
		}
		m := &changesetMoment{Op: "Follow", From: c.Begin()}
		got := []int{}
		for _, e := range set.Follow(ctx, 0) {
			got = append(got, e)
		}
		all := ctx.Err() == nil
		m.To, m.Got = c.End(), fmt.Sprint(got, " all: ", all)
		m.Explains = func(s *model.Tracker, _ int) bool {
			set := s.Sets[set.Ordinal()-1]
			if all {
				return set.Sealed && slices.Equal(got, set.Entries)
			}
			return len(got) <= len(set.Entries) && slices.Equal(got, set.Entries[:len(got)])
		}
		c.Add(m)
	}}
}

// changesetPrune forgets what it finds when it counts.
func changesetPrune(arg byte) changesetOp {
	keep := 1 + int(arg%3)
	return changesetOp{Name: fmt.Sprintf("Prune(%d)", keep), Do: func(c *changesetCaller) {
		found := 0
		counts := c.Add(&changesetMoment{Op: "Prune counts", From: c.Begin(), Explains: func(s *model.Tracker, _ int) bool {
			found = len(s.Sets)
			return true
		}})
		n := c.Real.Prune(keep)
		counts.To = c.End()
		c.Add(&changesetMoment{Op: "Prune", Got: fmt.Sprint(n), From: counts.From, To: counts.To, Follows: counts,
			Explains: func(s *model.Tracker, _ int) bool { return s.Prune(keep, found) == n }})
	}}
}
