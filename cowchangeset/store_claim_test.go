//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
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
