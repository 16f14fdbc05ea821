package oncecache_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// noContext is nil, for what refuses that.
var noContext context.Context

const memory = "sqlite://:memory:"

var errRefused = errors.New("connection refused")

// route is a key of several parts.
type route struct{ host, path string }

// result is how a call of GetOrCreate ended.
type result struct {
	value    int
	err      error
	panicked any
	exited   bool // by runtime.Goexit
}

// call makes one call on a goroutine of its own.
type call struct {
	result
	done chan struct{}
}

func start(c *oncecache.Cache[string, int], key string, create func() (int, error)) *call {
	return startCall(func() (int, error) { return c.GetOrCreate(key, create) })
}

func startCall(f func() (int, error)) *call {
	k := &call{done: make(chan struct{})}
	go func() {
		defer close(k.done)
		returned := false
		defer func() {
			if k.panicked = recover(); k.panicked == nil {
				k.exited = !returned
			}
		}()
		k.value, k.err = f()
		returned = true
	}()
	return k
}

// wait returns how the call ended.
func (k *call) wait(t *testing.T) result {
	t.Helper()
	select {
	case <-k.done:
		return k.result
	case <-t.Context().Done():
		t.Fatal("the call does not return")
		return result{}
	}
}

// creation is a call whose create function has begun and waits to be told how
// to end.
type creation struct {
	*call
	end chan func() (int, error)
}

func begin(t *testing.T, c *oncecache.Cache[string, int], key string) *creation {
	t.Helper()
	begun := make(chan struct{})
	k := &creation{end: make(chan func() (int, error))}
	k.call = start(c, key, func() (int, error) {
		close(begun)
		return (<-k.end)()
	})
	<-begun
	return k
}

// The ways to end.
func with(v int) func() (int, error)      { return func() (int, error) { return v, nil } }
func failing() (int, error)               { return 99, errRefused }
func exiting() (int, error)               { runtime.Goexit(); return 99, nil }
func panicking(v any) func() (int, error) { return func() (int, error) { panic(v) } }

var nan = math.NaN()

func diskFull() (int, error) { panic("disk full") }

// unexpected is a create function that must not be called.
func unexpected(t *testing.T) func() (int, error) {
	return func() (int, error) {
		t.Error("create called")
		return -1, nil
	}
}

func wantLen(t *testing.T, c *oncecache.Cache[string, int], want int) {
	t.Helper()
	if got := c.Len(); got != want {
		t.Errorf("Len() = %d, want %d", got, want)
	}
	n := 0
	for range c.All() {
		n++
	}
	if n != want {
		t.Errorf("All yields %d keys, want %d", n, want)
	}
	if creating, entries := oncecache.Creating(c); entries-creating != want {
		t.Errorf("%d entries, %d of them being created, want a difference of %d", entries, creating, want)
	}
}

func wantGet(t *testing.T, c *oncecache.Cache[string, int], key string, want int) {
	t.Helper()
	if v, ok := c.Get(key); v != want || !ok {
		t.Errorf("Get(%q) = %d, %t, want %d", key, v, ok, want)
	}
}

func wantAbsent(t *testing.T, c *oncecache.Cache[string, int], key string) {
	t.Helper()
	if v, ok := c.Get(key); v != 0 || ok {
		t.Errorf("Get(%q) = %d, %t, want nothing", key, v, ok)
	}
}

// together runs f(0) to f(n-1) at once, each on its own goroutine, which start
// when all are there, and returns when all are done.
func together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	var gate atomic.Bool
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			for !gate.Load() {
				runtime.Gosched()
			}
			f(i)
		})
	}
	ready.Wait()
	gate.Store(true)
	done.Wait()
}

// within fails the test if f does not return in time.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatal("hangs")
	}
}

// anew returns a function for Refresh that does not look at the old value.
func anew[K comparable, V any](create func(context.Context, K) (V, error)) func(context.Context, K, V, bool) (V, error) {
	return func(ctx context.Context, k K, _ V, _ bool) (V, error) { return create(ctx, k) }
}

// stored is whether SetIfAbsent has stored its value.
func stored[V any](_ V, ok bool) bool { return ok }
