//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// picky is a store that keeps no negative numbers. Like a store that encodes what
// it keeps, it cannot append them either.
type picky struct{ *memory }

var errNegative = errors.New("negative")

func (picky) Validate(e int) error {
	if e < -100 {
		panic(errNegative)
	}
	if e < 0 {
		return errNegative
	}
	return nil
}

func (p picky) Append(ctx context.Context, id string, entries []item) error {
	for _, e := range entries {
		if e.Value < 0 {
			return errNegative
		}
	}
	return p.memory.Append(ctx, id, entries)
}

// wantRefused fails unless nothing but the error tells of what was recorded.
func wantRefused(t *testing.T, r cowchangeset.Receipt, err error, text string) {
	t.Helper()
	if !errors.Is(err, cowchangeset.ErrRefused) || !errors.Is(err, errNegative) || errors.Is(err, cowchangeset.ErrStore) || r != (cowchangeset.Receipt{}) {
		t.Errorf("%v, %v", r, err)
	}
	if err != nil && err.Error() != text {
		t.Errorf("%q, want %q", err, text)
	}
}

// An entry that the store would never take is the error of its own Record, and
// keeps no others out.
func TestValidatorRefusesOne(t *testing.T) {
	const refused = "cowchangeset: store refuses the entry: negative"
	for _, async := range []bool{false, true} {
		m := newMemory()
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: picky{m}, PruneUnapplied: true, Async: async, StoreTimeout: -1})
		c, err := tracker.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.mu.Lock() // so that what follows is in one round, if it is with Async
		if !async {
			m.mu.Unlock()
		}
		_, err1 := tracker.Record(1)
		r, err := tracker.Record(-1)
		wantRefused(t, r, err, refused)
		r, err = c.Record(-2)
		wantRefused(t, r, err, refused)
		r, err = tracker.RecordBatch([]int{5, 6, -3, -4})
		wantRefused(t, r, err, "cowchangeset: store refuses the entry at index 2 of a batch: negative")
		for _, record := range []func(){
			func() { tracker.Record(-101) },
			func() { c.Record(-101) },
			func() { tracker.RecordBatch([]int{7, -101}) },
		} {
			if p := panicOf(record); p != errNegative {
				t.Errorf("panics with %v", p)
			}
		}
		r, err2 := tracker.Record(2)
		if async {
			m.mu.Unlock()
		}
		if err1 != nil || err2 != nil || r.Seq != 1 {
			t.Error(err1, err2, r)
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if f, err := c.Seal(t.Context()); err != nil || !slices.Equal(values(t, f.All()), []int{1, 2}) {
			t.Error(f.Len(), err)
		}
		if r, err := tracker.Record(-1); !errors.Is(err, cowchangeset.ErrRefused) {
			t.Error(r, err)
		}
		if _, err := tracker.Start(t.Context()); err != nil {
			t.Error(err)
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if n := tracker.Prune(1); n != 1 {
			t.Errorf("forgot %d", n)
		}
		wantValues(t, m, m.ids()[0], 1, 2)
		m.check(t)
	}
}

// A tracker that was resumed asks its store as well.
func TestValidatorOfAResumedTracker(t *testing.T) {
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: picky{newMemory()}})
	if err != nil {
		t.Fatal(err)
	}
	tracker.Start(t.Context())
	if _, err := tracker.Record(-1); err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Error(err)
	}
}
