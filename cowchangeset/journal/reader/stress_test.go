package reader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Readers beside a writer that rotates, prunes and compresses all the time: Follow sees each
// line once and in order if nothing is pruned that it has not seen, and says so if
// something is; Changesets fails never, and what it yields is whole.
func TestStressReaders(t *testing.T) {
	changesets := uint64(150)
	if testing.Short() {
		changesets = 50
	}
	path := newPath(t)
	j, err := journal.Open[int](path, journal.Options{Sync: journal.SyncNever, SegmentSize: 1000})
	must(t, err)
	r, err := reader.Open[int](path, reader.Options{PollInterval: 100 * time.Microsecond, Identity: j.Identity()})
	must(t, err)
	idOf := func(n uint64) string { return fmt.Sprint("changeset ", n) }
	var seen atomic.Uint64 // the ordinal of the last changeset whose end the follower has seen
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var wg, readers sync.WaitGroup

	wg.Go(func() { // the writer
		defer func() {
			if t.Failed() {
				cancel()
			}
		}()
		previous := ""
		for n := uint64(1); n <= changesets; n++ {
			id := idOf(n)
			must(t, j.Start(background, header{ID: id, Ordinal: n, Previous: previous}))
			for seq := range n % 5 {
				must(t, j.Append(background, id, journaltest.Entries(seq, int(n+seq))))
			}
			last := n%5 - 1
			if n%5 == 0 {
				last = 0
			}
			must(t, j.Seal(background, id, manifest(int(n%5), last)))
			must(t, j.Applied(background, id, cowchangeset.AllApplied))
			must(t, j.Prune(background, seen.Load()))
			previous = id
		}
	})
	readers.Go(func() {
		for ctx.Err() == nil {
			must(t, j.Compress(background))
		}
	})
	readers.Go(func() { // nothing is pruned before it
		line := 0
		for e, err := range r.Follow(ctx, 0) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("after line %d: %v", line, err)
				}
				return
			}
			if e.Line != line+1 {
				t.Errorf("line %d after line %d", e.Line, line)
			}
			line = e.Line
			if e.Kind == reader.Applied {
				seen.Store(e.Ordinal)
			}
			if e.Kind == reader.Applied && e.Ordinal == changesets {
				cancel()
			}
		}
	})
	readers.Go(func() { // it is slow
		last := journal.Anchor{}
		dropped, after := 0, 0
		for ctx.Err() == nil {
			for e, err := range r.Follow(ctx, after) {
				if errors.Is(err, journal.ErrDropped) {
					dropped++
					after = 0
					break
				}
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("after %v: %v", last, err)
					}
					break
				}
				if e.Line <= last.Line && after > 0 {
					t.Errorf("line %d after line %d", e.Line, last.Line)
				}
				last, after = e.Anchor(), e.Line
				if e.Line%50 == 0 {
					break // and begin again after it
				}
			}
		}
		t.Logf("%d times dropped", dropped)
	})
	passes := 0
	readers.Go(func() {
		for ctx.Err() == nil {
			before, last := uint64(0), ""
			for s, err := range r.Changesets(background) {
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				if before > 0 && s.Ordinal != before+1 || s.ID != idOf(s.Ordinal) || s.Sealed && len(s.Entries) != int(s.Ordinal%5) {
					t.Errorf("after %d: %+v", before, s)
				}
				for i, e := range s.Entries {
					if e.Value != int(s.Ordinal)+i {
						t.Errorf("%+v", s)
					}
				}
				before, last = s.Ordinal, s.ID
			}
			passes++
			if _, err := r.Changeset(background, last); err != nil && !errors.Is(err, journal.ErrNotFound) {
				t.Error(err)
			}
			if _, err := reader.Verify(path, journal.Anchor{}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	readers.Wait()
	t.Logf("%d passes", passes)
	must(t, j.Close())
}
