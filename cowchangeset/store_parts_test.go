//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// claimed is a store for one tracker, which says what was called.
type claimed struct {
	*memory
	taken bool
	wait  bool // Claim waits for the end of its context
	bare  bool // and returns its error, not its cause
	calls []string
	load  func(yield func(saved, error) bool) // or nil
}

var errClaimed = errors.New("claimed by another")

func (c *claimed) Claim(ctx context.Context) error {
	c.calls = append(c.calls, "Claim")
	if c.wait {
		<-ctx.Done()
		if c.bare {
			return ctx.Err()
		}
		return context.Cause(ctx)
	}
	if c.taken {
		return errClaimed
	}
	c.taken = true
	return nil
}

func (c *claimed) Release() {
	c.calls = append(c.calls, "Release")
	c.taken = false
}

func (c *claimed) Load(ctx context.Context) iter.Seq2[saved, error] {
	c.calls = append(c.calls, "Load")
	if c.load != nil {
		return c.load
	}
	return c.memory.Load(ctx)
}

// A store serves one tracker: the second one hears of it, from New or Resume, and
// takes nothing away from the first.
func TestClaim(t *testing.T) {
	resume := func(config cowchangeset.Config[int]) (*cowchangeset.Tracker[int], error) {
		return cowchangeset.Resume(t.Context(), config)
	}
	type make = func(cowchangeset.Config[int]) (*cowchangeset.Tracker[int], error)
	for _, first := range []make{cowchangeset.New[int], resume} {
		for _, second := range []make{cowchangeset.New[int], resume} {
			store := &claimed{memory: newMemory()}
			config := cowchangeset.Config[int]{Store: store}
			tracker, err := first(config)
			if err != nil || store.calls[0] != "Claim" {
				t.Fatal(err, store.calls)
			}
			n := len(store.calls)
			other, err := second(config)
			if other != nil || !errors.Is(err, errClaimed) || err.Error() != "cowchangeset: Config.Store: claimed by another" {
				t.Error(other, err)
			}
			if !store.taken || !slices.Equal(store.calls[n:], []string{"Claim"}) {
				t.Errorf("the second one has called %v", store.calls[n:])
			}
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// A Resume that fails releases the store, however it fails. A config that cannot be
// served claims nothing.
func TestResumeReleases(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, load := range map[string]func(func(saved, error) bool){
		"error":       func(yield func(saved, error) bool) { yield(saved{}, errDisk) },
		"what is bad": func(yield func(saved, error) bool) { yield(saved{}, nil) },
		"panic":       func(func(saved, error) bool) { panic(errDisk) },
		"Goexit":      func(func(saved, error) bool) { runtime.Goexit() },
		"context":     func(func(saved, error) bool) {},
	} {
		store := &claimed{memory: newMemory(), load: load}
		ctx := t.Context()
		if name == "context" {
			ctx = ended
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer func() { recover() }()
			if _, err := cowchangeset.Resume(ctx, cowchangeset.Config[int]{Store: store}); err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
		<-over
		if store.taken || !slices.Equal(store.calls, []string{"Claim", "Load", "Release"}) {
			t.Errorf("%s: it has called %v", name, store.calls)
		}
		store.load = nil
		if _, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: store}); err != nil || !store.taken {
			t.Errorf("%s, and then %v", name, err)
		}
	}
}

// A Claim that does not return by itself ends with the context of Resume, or after
// Config.StoreTimeout, in New too.
func TestClaimIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &claimed{memory: newMemory(), wait: true}
		began := time.Now()
		_, err := cowchangeset.New(cowchangeset.Config[int]{Store: store})
		if !errors.Is(err, cowchangeset.ErrStoreTimeout) || time.Since(began) != time.Minute {
			t.Error(err, time.Since(began))
		}
		store.bare = true
		_, err = cowchangeset.New(cowchangeset.Config[int]{Store: store})
		if !errors.Is(err, cowchangeset.ErrStoreTimeout) || errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		store.bare = false
		began = time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnded) })
		_, err = cowchangeset.Resume(ctx, cowchangeset.Config[int]{Store: store, StoreTimeout: -1})
		if !errors.Is(err, errEnded) || time.Since(began) != time.Second {
			t.Error(err, time.Since(began))
		}
		if !slices.Equal(store.calls, []string{"Claim", "Claim", "Claim"}) {
			t.Error(store.calls)
		}
	})
}

// late is a store whose Claim returns what it says when its time is up.
type late struct {
	*memory
	says func(ctx context.Context) error
}

func (l late) Claim(ctx context.Context) error { <-ctx.Done(); return l.says(ctx) }
func (late) Release()                          {}

// A Claim that is late counts, and an error that says that it was late stays as it is.
func TestClaimIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, want := range map[string]error{"claimed": nil, "says so": errClaimed} {
			store := late{newMemory(), func(ctx context.Context) error {
				if want == nil {
					return nil
				}
				return errors.Join(want, context.Cause(ctx))
			}}
			_, err := cowchangeset.New(cowchangeset.Config[int]{Store: store})
			if !errors.Is(err, want) || want != nil && !errors.Is(err, cowchangeset.ErrStoreTimeout) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

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

// refused returns a tracker of three changesets with an entry each, and its store,
// which knows all of them but what it has refused: a method of the second.
func refused(t *testing.T, refuses string) (*cowchangeset.Tracker[int], *memory) {
	tracker, m := kept(cowchangeset.Config[int]{Async: true})
	m.faults(func(_ context.Context, method, id string) error {
		if method == refuses && id == "2" {
			return errDisk
		}
		return nil
	})
	for v := range 3 {
		tracker.Start(t.Context())
		tracker.Record(v)
		synctest.Wait()
	}
	if err := tracker.Flush(t.Context()); !errors.Is(err, errDisk) || m.has("2").Sealed || !m.has("1").Sealed {
		t.Fatal("nothing was refused", err)
	}
	m.faults(nil)
	return tracker, m
}

// Resume tells the store what that missed, of any changeset, and knows what it
// has.
func TestResumeTellsWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := refused(t, "Seal")
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what Resume begins has not run when it returns
		tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
		if err != nil {
			t.Fatal(err)
		}
		for c, _ := tracker.Current(); c != nil; c = c.Previous() {
			if c.Durable() != 1 {
				t.Errorf("%d entries of %s are durable, want 1", c.Durable(), c.ID())
			}
		}
		synctest.Wait()
		if !m.has("2").Sealed {
			t.Error("the store does not know of the second seal")
		}
		m.check(t)
	})
}

// A Prune asks for what the changeset lacks at which it stops, also when it has
// forgotten others.
func TestPruneAsksWhereItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := refused(t, "Append")
		if n := tracker.Prune(1); n != 1 {
			t.Fatalf("forgot %d, want the first", n)
		}
		synctest.Wait()
		wantValues(t, m, "2", 1)
		m.check(t)
	})
}
