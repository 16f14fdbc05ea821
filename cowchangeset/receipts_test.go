//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
)

// What receipts promise across a crash: one whose Seq is below Durable is for good;
// any other is lost with its entry, and its place may be given to another.
func TestReceiptsAcrossACrash(t *testing.T) {
	for _, async := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{Async: async})
			c, err := tracker.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			given := map[cowchangeset.Receipt]int{}
			record := func(tracker *cowchangeset.Tracker[int], v int) cowchangeset.Receipt {
				r, err := tracker.Record(v)
				if err != nil && !errors.Is(err, cowchangeset.ErrStore) {
					t.Fatal(err)
				}
				return r
			}
			for v := range 3 {
				given[record(tracker, v)] = v
			}
			if err := tracker.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.faults(failing("Append")) // until the crash
			lost := record(tracker, 3)
			given[lost] = 3
			synctest.Wait()
			durable := c.Durable()
			if lost.Seq < durable {
				t.Error("what the store does not have is durable")
			}
			m.faults(nil)
			names := func(context.Context) (string, error) { return "later", nil }
			resume := func() (*cowchangeset.Tracker[int], *cowchangeset.Changeset[int]) {
				tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m, NewID: names})
				if err != nil {
					t.Fatal(err)
				}
				c, open := tracker.Current()
				if !open || c.Durable() != durable {
					t.Errorf("open %t, %d durable, were %d", open, c.Durable(), durable)
				}
				found := map[cowchangeset.Receipt]int{}
				for r, v := range tracker.Trail().All() {
					found[r] = v
				}
				for r, v := range given {
					if got, ok := found[r]; ok != (r.Seq < durable) || ok && got != v {
						t.Errorf("%v names %d, %t, was given for %d", r, got, ok, v)
					}
				}
				return tracker, c
			}
			// A tracker that seals it and starts another gives no receipt twice.
			tracker, c = resume()
			order := m.ids()
			if _, err := c.Seal(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
			for range 10 {
				if r := record(tracker, 9); given[r] != 0 || r.Ordinal != 2 {
					t.Errorf("%v is given again", r)
				}
			}
			m.check(t)
			// One that goes on with it may.
			synctest.Wait()
			m.mu.Lock()
			m.order, m.sets["1"].Sealed = order, false
			m.mu.Unlock()
			tracker, _ = resume()
			if r := record(tracker, 9); r != lost {
				t.Errorf("%v, and not %v again", r, lost)
			}
		})
	}
}

// A function has run, and the process ends before the store knows that: it runs
// again.
func TestApplyRunsAgainAfterACrash(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	tracker.Record(1)
	ran := 0
	fn := func(context.Context, final) error { ran++; return nil }
	m.faults(failing("Applied"))
	for range 2 {
		if err := c.Apply(t.Context(), fn); !errors.Is(err, errDisk) || ran != 1 {
			t.Error(err, ran)
		}
	}
	m.faults(nil)
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	for c := range tracker.Pending() {
		if err := c.Apply(t.Context(), fn); err != nil {
			t.Error(err)
		}
	}
	if ran != 2 || m.has("1").Applied != cowchangeset.AllApplied {
		t.Errorf("ran %d times", ran)
	}
	m.check(t)
}
