//go:build !modelcheck

package histories_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	cc "github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

type changeset = *cc.Changeset[int]

// tracker is what is used of a cc.Tracker and its changesets.
type tracker interface {
	Start() (changeset, error)
	StartAfter(prev changeset) (changeset, error)
	Record(e int) (cc.Receipt, error)
	RecordBatch(es []int) (cc.Receipt, error)
	RecordIn(c changeset, e int) (cc.Receipt, error)
	Seal(c changeset) (entries iter.Seq2[uint64, int], n int)
	Current() (changeset, bool)
	IDs() []string
	Trail() (all iter.Seq2[cc.Receipt, int], n int)
}

type realTracker struct{ *cc.Tracker[int] }

// newTracker returns a tracker whose IDs are numbers that take their time.
func newTracker() realTracker {
	var ids atomic.Int64
	return realTracker{cc.MustNew(cc.Config[int]{NewID: func(context.Context) (string, error) {
		runtime.Gosched()
		return strconv.Itoa(int(ids.Add(1))), nil
	}})}
}

func (t realTracker) Start() (changeset, error) { return t.Tracker.Start(context.Background()) }

func (t realTracker) StartAfter(prev changeset) (changeset, error) {
	return t.Tracker.StartAfter(context.Background(), prev)
}

func (t realTracker) RecordIn(c changeset, e int) (cc.Receipt, error) { return c.Record(e) }

func (t realTracker) Seal(c changeset) (iter.Seq2[uint64, int], int) {
	f, err := c.Seal(context.Background())
	if err != nil {
		panic(err)
	}
	return f.All(), f.Len()
}

func (t realTracker) Trail() (iter.Seq2[cc.Receipt, int], int) {
	trail := t.Tracker.Trail()
	return trail.All(), trail.Len()
}

// trackerTrial uses a tracker. Batches make its changesets' lists of chunks
// grow.
func trackerTrial(fresh func() tracker) func(*rand.Rand) history.Trial[track] {
	return func(*rand.Rand) history.Trial[track] {
		t := fresh()
		return history.Trial[track]{
			Clients: 4,
			Work: func(c *history.Client[track]) {
				w := &trackerClient{Client: c, tracker: t, made: 1000 * c.ID}
				for range 2 {
					w.Meet(1)
					for range 4 {
						w.operate()
						w.Pause()
					}
				}
			},
			After: func(c *history.Client[track]) {
				w := &trackerClient{Client: c, tracker: t}
				w.trail()
				w.ids()
			},
		}
	}
}

// trackerClient is a goroutine that uses a tracker.
type trackerClient struct {
	*history.Client[track]
	tracker tracker
	made    int       // entries, all different
	latest  changeset // that the client knows of, or nil
}

func (w *trackerClient) operate() {
	from := w.Now()
	switch w.IntN(16) {
	case 0, 1:
		c, err := w.tracker.Start()
		w.started(from, trackerEvent{op: "Start"}, c, err)
	case 2:
		e := trackerEvent{op: "StartAfter"}
		if w.latest != nil {
			e.on = int(w.latest.Ordinal())
		}
		c, err := w.tracker.StartAfter(w.latest)
		w.started(from, e, c, err)
	case 3, 4, 5:
		w.made++
		e := trackerEvent{op: "Record", entry: w.made, n: 1}
		r, err := w.tracker.Record(w.made)
		w.recorded(from, e, r, err)
	case 6, 7:
		e := trackerEvent{op: "RecordBatch", entry: w.made + 1, n: 1 + w.IntN(20)}
		batch := make([]int, e.n)
		for i := range batch {
			w.made++
			batch[i] = w.made
		}
		r, err := w.tracker.RecordBatch(batch)
		w.recorded(from, e, r, err)
	case 8:
		c, open := w.tracker.Current()
		e := trackerEvent{op: "Current", open: open}
		if c != nil {
			e.at.ordinal = int(c.Ordinal())
		}
		w.Add(0, from, e)
		w.latest = c
	case 9:
		w.ids()
	case 10:
		w.trail()
	default:
		if w.latest != nil {
			w.pinned(w.latest)
		}
	}
}

// pinned is an operation of one changeset.
func (w *trackerClient) pinned(c changeset) {
	e := trackerEvent{on: int(c.Ordinal())}
	from := w.Now()
	switch w.IntN(5) {
	case 0:
		w.made++
		e.op, e.entry, e.n = "Record", w.made, 1
		r, err := w.tracker.RecordIn(c, w.made)
		w.recorded(from, e, r, err)
		return
	case 1:
		entries, n := w.tracker.Seal(c)
		to := w.Now()
		e.op, e.outcome, e.read = "Seal", "read", w.entries(c, entries)
		if e.read.len() != n {
			w.Errorf("Final.Len is %d with %v", n, e.read)
		}
		w.AddSpan(0, from, to, e)
		return
	case 2:
		e.op, e.outcome, e.read = "Entries", "read", w.entries(c, c.Entries())
	case 3:
		e.op, e.n = "Len", c.Len()
	case 4:
		e.op = "Sealed"
		select {
		case <-c.Sealed():
		default:
			e.open = true
		}
	}
	w.Add(0, from, e)
}

func (w *trackerClient) entries(c changeset, entries iter.Seq2[uint64, int]) (l log) {
	for seq, e := range entries {
		l = l.add(place{int(c.Ordinal()), int(seq), e})
	}
	return l
}

func (w *trackerClient) started(from int64, e trackerEvent, c changeset, err error) {
	switch err {
	case nil:
		e.outcome, e.at.ordinal, e.ids = "started", int(c.Ordinal()), idByte(c.ID())
		w.latest = c
	case cc.ErrConflict:
		e.outcome = "conflict"
	default:
		w.Errorf("%s: %v", e.op, err)
		return
	}
	w.Add(0, from, e)
}

func (w *trackerClient) recorded(from int64, e trackerEvent, r cc.Receipt, err error) {
	switch {
	case err == nil:
		e.outcome, e.at = "recorded", place{ordinal: int(r.Ordinal), seq: int(r.Seq)}
	case errors.Is(err, cc.ErrSealed):
		e.outcome = "sealed"
	case err == cc.ErrNoActive:
		e.outcome = "none"
	default:
		w.Errorf("%s: %v", e.op, err)
		return
	}
	w.Add(0, from, e)
}

func (w *trackerClient) ids() {
	e := trackerEvent{op: "IDs"}
	from := w.Now()
	for _, id := range w.tracker.IDs() {
		e.ids += idByte(id)
	}
	w.Add(0, from, e)
}

func idByte(id string) string {
	n, err := strconv.ParseUint(id, 10, 8)
	if err != nil {
		panic(err)
	}
	return string([]byte{byte(n)})
}

// trail reads a trail, which is of one moment though it is read later.
func (w *trackerClient) trail() {
	e := trackerEvent{op: "Trail", outcome: "read"}
	from := w.Now()
	all, n := w.tracker.Trail()
	to := w.Now()
	runtime.Gosched()
	for r, entry := range all {
		e.read = e.read.add(place{int(r.Ordinal), int(r.Seq), entry})
	}
	if e.read.len() != n {
		w.Errorf("Trail.Len is %d with %v", n, e.read)
	}
	w.AddSpan(0, from, to, e)
}

func TestTrackerHistories(t *testing.T) {
	history.Check(t, trackerTrial(func() tracker { return newTracker() }),
		"Start started", "StartAfter started", "StartAfter conflict",
		"Record recorded", "Record none", "Record sealed", "RecordBatch recorded", "RecordBatch none", "RecordBatch sealed",
		"Seal read", "Entries read", "Trail read", "Len ", "Sealed ", "Current ", "IDs ")
}
