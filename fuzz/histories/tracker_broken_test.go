//go:build !modelcheck

package histories_test

import (
	"iter"
	"runtime"
	"testing"

	cc "github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

func TestBrokenTrackerHistories(t *testing.T) {
	for name, broken := range map[string]func() tracker{
		"a Record that looks first":      func() tracker { return looksForCurrent{newTracker()} },
		"a batch in pieces":              func() tracker { return batchInPieces{newTracker()} },
		"a trail changeset by changeset": func() tracker { return trailInPieces{newTracker()} },
		"a Seal that reads before":       func() tracker { return readsThenSeals{newTracker()} },
		"a pinned Record redirected":     func() tracker { return redirects{newTracker()} },
		"a StartAfter in two steps":      func() tracker { return tornStartAfter{newTracker()} },
	} {
		t.Run(name, func(t *testing.T) { history.Reject(t, trackerTrial(broken)) })
	}
}

// looksForCurrent is the tracker of the report that cowchangeset answers.
type looksForCurrent struct{ realTracker }

func (t looksForCurrent) Record(e int) (cc.Receipt, error) {
	c, _ := t.Current()
	if c == nil {
		return cc.Receipt{}, cc.ErrNoActive
	}
	runtime.Gosched()
	return c.Record(e)
}

type batchInPieces struct{ realTracker }

func (t batchInPieces) RecordBatch(es []int) (first cc.Receipt, err error) {
	for i, e := range es {
		r, err := t.Record(e)
		if err != nil {
			return r, err
		}
		if i == 0 {
			first = r
			runtime.Gosched()
		}
	}
	return first, nil
}

type trailInPieces struct{ realTracker }

func (t trailInPieces) Trail() (iter.Seq2[cc.Receipt, int], int) {
	var receipts []cc.Receipt
	var entries []int
	c, _ := t.Current()
	var sets []changeset
	for ; c != nil; c = c.Previous() {
		sets = append([]changeset{c}, sets...)
	}
	for len(sets) > 0 {
		c = sets[0]
		for seq, e := range c.Entries() {
			receipts = append(receipts, cc.Receipt{ChangesetID: c.ID(), Ordinal: c.Ordinal(), Seq: seq})
			entries = append(entries, e)
		}
		runtime.Gosched()
		if sets = sets[1:]; len(sets) == 0 {
			if next, _ := t.Current(); next != c {
				sets = append(sets, next)
			}
		}
	}
	return func(yield func(cc.Receipt, int) bool) {
		for i, e := range entries {
			if !yield(receipts[i], e) {
				return
			}
		}
	}, len(entries)
}

type readsThenSeals struct{ realTracker }

func (t readsThenSeals) Seal(c changeset) (iter.Seq2[uint64, int], int) {
	entries, n := c.Entries(), c.Len()
	early := map[uint64]int{}
	for seq, e := range entries {
		if len(early) < n {
			early[seq] = e
		}
	}
	runtime.Gosched()
	all, _ := t.realTracker.Seal(c)
	return func(yield func(uint64, int) bool) {
		for seq, e := range all {
			if _, ok := early[seq]; ok && !yield(seq, e) {
				return
			}
		}
	}, len(early)
}

type redirects struct{ realTracker }

func (t redirects) RecordIn(c changeset, e int) (cc.Receipt, error) {
	if r, err := c.Record(e); err == nil {
		return r, nil
	}
	return t.Record(e)
}

type tornStartAfter struct{ realTracker }

func (t tornStartAfter) StartAfter(prev changeset) (changeset, error) {
	if now, _ := t.Current(); now != prev {
		return nil, cc.ErrConflict
	}
	runtime.Gosched()
	return t.Start()
}
