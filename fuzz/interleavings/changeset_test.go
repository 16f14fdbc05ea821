//go:build modelcheck

package interleavings

import (
	"context"
	"fmt"
	"testing"

	cc "github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// FuzzChangesetInterleavings runs threads on a Tracker in every order.
func FuzzChangesetInterleavings(f *testing.F) {
	fuzzInterleavings(f, changesetProgram(newTracker))
}

func newTracker(c cc.Config[int]) tracker { return cc.MustNew(c) }

// tracker is what a Tracker does.
type tracker interface {
	Start(context.Context) (*cc.Changeset[int], error)
	StartAfter(context.Context, *cc.Changeset[int]) (*cc.Changeset[int], error)
	Record(int) (cc.Receipt, error)
	RecordBatch([]int) (cc.Receipt, error)
	Current() (*cc.Changeset[int], bool)
	IDs() []string
	Trail() cc.Trail[int]
	Prune(int) int
}

// sharedTracker is a tracker, and what each thread has from it.
type sharedTracker struct {
	tracker
	ids      mc.Tally
	foreign  *cc.Changeset[int]
	sets     [4][]*cc.Changeset[int]
	finals   [4]map[*cc.Changeset[int]]cc.Final[int]
	receipts [4]map[int]cc.Receipt // by entry
}

// newSharedTracker gives changesets numbers for IDs, in the order in which they
// are asked for.
func newSharedTracker(fresh func(cc.Config[int]) tracker) *sharedTracker {
	t := &sharedTracker{foreign: foreignChangeset()}
	t.tracker = fresh(cc.Config[int]{PruneUnapplied: true, NewID: func(context.Context) (string, error) {
		t.ids.Add(1)
		return fmt.Sprint("id-", t.ids.Value()), nil
	}})
	for i := range t.finals {
		t.finals[i], t.receipts[i] = map[*cc.Changeset[int]]cc.Final[int]{}, map[int]cc.Receipt{}
	}
	return t
}

func foreignChangeset() *cc.Changeset[int] {
	c, _ := cc.MustNew(cc.Config[int]{NewID: func(context.Context) (string, error) { return "foreign", nil }}).Start(context.Background())
	return c
}

// pick returns one of the changesets that a thread knows, the latest for 0, or
// nil if there is none. What the prelude knows, all know.
func (t *sharedTracker) pick(thread int, back byte) *cc.Changeset[int] {
	known := t.sets[0]
	if thread > 0 {
		known = append(known[:len(known):len(known)], t.sets[thread]...)
	}
	if len(known) == 0 {
		return nil
	}
	return known[len(known)-1-int(back)%len(known)]
}

type (
	changesetCaller = interleave.Caller[*sharedTracker, *model.Tracker]
	changesetOp     = interleave.Op[*sharedTracker, *model.Tracker]
)

func changesetProgram(fresh func(cc.Config[int]) tracker) decoder[*sharedTracker, *model.Tracker] {
	return func(program []byte) (interleave.Program[*sharedTracker, *model.Tracker], bool) {
		p, ok := interleave.Decode(program, decodeChangeset)
		p.New = func() *sharedTracker { return newSharedTracker(fresh) }
		p.Model = func() *model.Tracker { return &model.Tracker{PruneUnapplied: true} }
		p.After = []changesetOp{changesetCurrent, changesetIDs, changesetTrail, changesetAudit,
			changesetRecord(98), changesetStart(0), changesetRecord(99), changesetTrail}
		return p, ok
	}
}

func decodeChangeset(code interleave.Code, id int, _ func() (changesetOp, bool)) changesetOp {
	switch code.Op % 20 {
	case 0, 1, 2:
		return changesetRecord(id)
	case 3, 4:
		es := make([]int, code.Arg%4)
		for i := range es {
			es[i] = 100*(i+1) + id
		}
		return changesetBatch(es)
	case 5:
		return changesetPinned(code.Arg, id)
	case 6, 7, 8:
		return changesetStart(code.Arg)
	case 9:
		return changesetStartAfter(code.Arg)
	case 10, 11:
		return changesetSeal(code.Arg)
	case 12:
		return changesetCurrent
	case 13:
		return changesetEntries(code.Arg)
	case 14:
		return changesetSealed(code.Arg)
	case 16:
		return changesetApply(code.Arg)
	case 17:
		return changesetAbort(code.Arg)
	case 18:
		return changesetFollow(code.Arg)
	case 19:
		return changesetPrune(code.Arg)
	default:
		return [...]changesetOp{changesetIDs, changesetTrail, changesetReason(code.Arg / 4), changesetApplied(code.Arg / 4)}[code.Arg%4]
	}
}
