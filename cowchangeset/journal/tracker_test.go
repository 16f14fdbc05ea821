package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/storetest"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A journal keeps what package storetest asks of a store.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := newPath(t)
		var open *journal.Journal[string]
		t.Cleanup(func() { open.Close() })
		return func() (cowchangeset.Loader[string], error) {
			if open != nil {
				must(t, open.Close())
			}
			j, err := journal.Open[string](path, journal.Options{Sync: journal.SyncNever})
			open = j
			return j, err
		}
	})
}

// What a tracker has recorded, from many goroutines, through starts, seals,
// batches, applications and aborts, is what a tracker that is resumed has; and
// that one goes on.
func TestTracker(t *testing.T) {
	path := newPath(t)
	for process := range 3 {
		j, err := journal.Open[string](path, journal.Options{Sync: journal.SyncNever})
		must(t, err)
		tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[string]{Store: j})
		must(t, err)
		if n := len(tracker.IDs()); n != process*8 {
			t.Errorf("process %d begins with %d changesets", process, n)
		}
		for range 8 {
			c, err := tracker.Start(t.Context())
			must(t, err)
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range 10 {
						if _, err := tracker.Record(fmt.Sprint("entry ", g, i)); err != nil {
							t.Error(err)
						}
						if _, err := tracker.RecordBatch([]string{"batch", fmt.Sprint(g), fmt.Sprint(i)}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			switch c.Ordinal() % 4 {
			case 1:
				must(t, c.Abort(t.Context(), errBoom))
			case 2:
				must(t, c.Apply(t.Context(), func(context.Context, cowchangeset.Final[string]) error { return nil }))
			case 3:
				n := 0
				err := c.ApplyEach(t.Context(), func(context.Context, uint64, string) error {
					if n++; n > 3 {
						return errBoom
					}
					return nil
				})
				if !errors.Is(err, errBoom) {
					t.Error(err)
				}
			}
		}
		var want []string
		for r, e := range tracker.Trail().All() {
			want = append(want, fmt.Sprint(r, e))
		}
		must(t, j.Close())

		j = open[string](t, path)
		again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[string]{Store: j})
		must(t, err)
		var got []string
		for r, e := range again.Trail().All() {
			got = append(got, fmt.Sprint(r, e))
		}
		equal(t, got, want)
		equal(t, again.IDs(), tracker.IDs())
		must(t, j.Close())
	}
}

// An entry that the journal would refuse is refused by its own Record, and nothing
// else notices.
func TestTrackerBadEntry(t *testing.T) {
	j, err := journal.Open[float64](newPath(t), journal.Options{})
	must(t, err)
	tracker, err := cowchangeset.New(cowchangeset.Config[float64]{Store: j})
	must(t, err)
	c, err := tracker.Start(t.Context())
	must(t, err)
	for _, v := range []float64{0, 1, math.NaN(), 2, math.Inf(1), 3} {
		_, err := tracker.Record(v)
		if (err != nil) != (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("%v: %v", v, err)
		}
		if _, err := tracker.RecordBatch([]float64{v, v}); (err != nil) != (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("%v: %v", v, err)
		}
	}
	must(t, tracker.Flush(t.Context()))
	if c.Len() != 12 || c.Durable() < 12 {
		t.Error(c.Len(), c.Durable())
	}
	_, err = c.Seal(t.Context())
	must(t, err)
	_, err = tracker.Start(t.Context())
	must(t, err)
	must(t, j.Close())
}

// A journal serves one tracker; what fails to become one gives it back.
func TestOneTracker(t *testing.T) {
	path := newPath(t)
	j := open[string](t, path)
	config := cowchangeset.Config[string]{Store: j}
	tracker, err := cowchangeset.Resume(t.Context(), config)
	must(t, err)
	if _, err := cowchangeset.Resume(t.Context(), config); !errors.Is(err, journal.ErrClaimed) {
		t.Error(err)
	}
	if _, err := cowchangeset.New(config); !errors.Is(err, journal.ErrClaimed) {
		t.Error(err)
	}
	_, err = tracker.Start(t.Context())
	must(t, err)
	_, err = tracker.Record("text")
	must(t, err)
	must(t, j.Close())
	wrong := open[int](t, path)
	var undecodable *journal.DecodeError
	for range 2 {
		if _, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: wrong}); !errors.As(err, &undecodable) || undecodable.Seq != 0 {
			t.Error(err)
		}
	}
	must(t, wrong.Close())
}

// A tracker that has used the journal keeps it, so that no second one is given its
// receipts.
func TestReleaseOfATracker(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	_, err := cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})
	must(t, err)
	j.Release() // it has not used it
	one, err := cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})
	must(t, err)
	must(t, journaltest.ErrorOf(one.Start(background)))
	must(t, journaltest.ErrorOf(one.Record("a")))
	j.Release()
	two, err := cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})
	if err == nil {
		first, _ := one.Record("of the first")
		again, err := two.Record("of the second")
		t.Errorf("two trackers have recorded at %v and %v: %v", first, again, err)
	} else if !errors.Is(err, journal.ErrClaimed) {
		t.Error(err)
	}
	must(t, j.Close())
	j = on(t, m)
	must(t, journaltest.ErrorOf(cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})))
}

// What a tracker has forgotten does not come back, and takes no room on the disk.
func TestTrackerPrunes(t *testing.T) {
	path := newPath(t)
	o := journal.Options{Sync: journal.SyncNever, SegmentSize: 4 << 10}
	j, err := journal.Open[string](path, o)
	must(t, err)
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[string]{Store: j})
	must(t, err)
	for n := range 300 {
		c, err := tracker.Start(t.Context())
		must(t, err)
		for i := range 10 {
			_, err := tracker.Record(fmt.Sprint(n, " ", i))
			must(t, err)
		}
		must(t, c.Apply(t.Context(), func(context.Context, cowchangeset.Final[string]) error { return nil }))
		tracker.Prune(3)
		if n%50 == 49 {
			want := tracker.IDs()
			must(t, tracker.Flush(t.Context()))
			must(t, j.Close())
			j, err = journal.Open[string](path, o)
			must(t, err)
			tracker, err = cowchangeset.Resume(t.Context(), cowchangeset.Config[string]{Store: j})
			must(t, err)
			equal(t, tracker.IDs(), want)
			c, ok := tracker.Current()
			if ok || c.Ordinal() != uint64(n+1) || c.Len() != 10 {
				t.Errorf("%d %v %d", c.Ordinal(), ok, c.Len())
			}
		}
	}
	report, err := verify(path)
	must(t, err)
	if report.Changesets != 3 || report.Bytes > 30_000 || report.Last.Line < 3000 {
		t.Errorf("%+v", report)
	}
	must(t, j.Close())
}
