package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Many changesets at once, with calls that are withdrawn at any moment and told
// again, while others read.
func TestStressGroups(t *testing.T) {
	const goroutines = 16
	attempts := 60
	if testing.Short() {
		attempts = 15
	}
	path := newPath(t)
	j, err := journal.Open[int](path, journal.Options{Sync: journal.SyncNever})
	must(t, err)
	var wg sync.WaitGroup
	begun := make(chan string, goroutines)
	for g := range goroutines {
		id, previous := fmt.Sprint(g+1), ""
		if g > 0 {
			previous = fmt.Sprint(g)
		}
		must(t, j.Start(background, header{ID: id, Ordinal: uint64(g + 1), Previous: previous}))
		begun <- id
	}
	close(begun)
	for id := range begun {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(len(id))<<8+uint64(id[0])))
			insist := func(f func(context.Context) error) {
				for {
					ctx, cancel := context.WithTimeout(background, time.Duration(r.IntN(200))*time.Microsecond)
					err := f(ctx)
					cancel()
					if err == nil {
						return
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
						return
					}
				}
			}
			seq := uint64(0)
			for range attempts {
				batch := journaltest.Entries(seq, make([]int, 1+r.IntN(4))...)
				for i := range batch {
					batch[i].Value = int(batch[i].Seq) * 3
				}
				seq += uint64(len(batch))
				insist(func(ctx context.Context) error { return j.Append(ctx, id, batch) })
			}
			insist(func(ctx context.Context) error {
				return j.Seal(ctx, id, cowchangeset.Manifest{Len: int(seq), Last: seq - 1})
			})
		})
	}
	wg.Go(func() {
		before := make([]int, goroutines)
		for range 20 {
			for i, s := range load(t, j) {
				if len(s.Entries) < before[i] {
					t.Errorf("%s had %d entries, and has %d", s.ID, before[i], len(s.Entries))
				}
				before[i] = len(s.Entries)
			}
			must(t, j.Sync(background))
		}
	})
	wg.Wait()
	must(t, j.Close())
	j = open[int](t, path)
	for _, s := range load(t, j) {
		if !s.Sealed || slices.ContainsFunc(s.Entries, func(e cowchangeset.Entry[int]) bool { return e.Value != int(e.Seq)*3 }) {
			t.Errorf("%+v", s)
		}
	}
	must(t, j.Close())
}
