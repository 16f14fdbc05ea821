package journal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

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
