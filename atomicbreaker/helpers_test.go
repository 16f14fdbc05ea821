package atomicbreaker_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// noContext is nil, for what refuses that.
var noContext context.Context

var errBoom = errors.New("boom")

// permit is what a Permit and a GroupPermit have in common.
type permit interface {
	Done(error) atomicbreaker.Verdict
	Success() atomicbreaker.Verdict
	Failure() atomicbreaker.Verdict
	Cancel() atomicbreaker.Verdict
	Report(atomicbreaker.Outcome) atomicbreaker.Verdict
	Trip(time.Duration) atomicbreaker.Verdict
	ProbeGeneration() (int, bool)
}

// allower is what Breaker and a key of a Group have in common.
type allower func() (permit, error)

// allow returns Allow of a Breaker.
func allow(b *atomicbreaker.Breaker) allower {
	return func() (permit, error) { return b.Allow() }
}

// keyed returns Allow of one key.
func keyed[K comparable](g *atomicbreaker.Group[K], k K) allower {
	return func() (permit, error) { return g.Allow(k) }
}

// admit fails the test unless a call is admitted.
func admit[P permit](t *testing.T, allow func() (P, error)) P {
	t.Helper()
	p, err := allow()
	if err != nil {
		t.Fatalf("Allow: %v, want a permit", err)
	}
	return p
}

// reject fails the test unless a call is rejected with want.
func reject[P permit](t *testing.T, allow func() (P, error), want error) {
	t.Helper()
	if _, err := allow(); !errors.Is(err, want) {
		t.Fatalf("Allow: %v, want %v", err, want)
	}
}

// fail makes n admitted calls fail, and returns the last verdict.
func fail[P permit](t *testing.T, allow func() (P, error), n int) (v atomicbreaker.Verdict) {
	t.Helper()
	for range n {
		v = admit(t, allow).Failure()
	}
	return v
}

func wantVerdict(t *testing.T, got, want atomicbreaker.Verdict) {
	t.Helper()
	if got != want {
		t.Fatalf("verdict %v, want %v", got, want)
	}
}

func wantState(t *testing.T, got, want atomicbreaker.State) {
	t.Helper()
	if got != want {
		t.Fatalf("state %v, want %v", got, want)
	}
}

// panics returns what f panics with, as a string, and fails the test if it
// does not start with prefix.
func panics(t *testing.T, prefix string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		var text string
		switch v := recover().(type) {
		case nil:
			t.Fatalf("no panic, want one that starts with %q", prefix)
		case error:
			text = v.Error()
		case string:
			text = v
		}
		if !strings.HasPrefix(text, prefix) {
			t.Fatalf("panic %q, want prefix %q", text, prefix)
		}
	}()
	f()
}

// goexit runs f, which may call runtime.Goexit, in a goroutine of its own.
func goexit(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// together runs f(0) … f(n-1) at once, behind a barrier, until all return.
func together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// rounds is how often a stress test repeats itself.
func rounds(n int) int {
	if testing.Short() || atomicbreaker.Modeled {
		n /= 10
	}
	if raced() {
		n /= 5
	}
	return max(n, 1)
}

// raced reports whether the tests were built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// jitter yields now and then, so that a single thread interleaves too.
func jitter(i int) {
	if i%7 == 0 {
		runtime.Gosched()
	}
}
