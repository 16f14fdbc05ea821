package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// noContext is nil, for what refuses that.
var noContext context.Context

// scoped is a key of several parts.
type scoped struct{ Space, Key string }

// compoundKey is a key of all that makes keys special. Each type of keys more takes
// seconds to compile.
type compoundKey struct {
	scoped
	numbers [2]float32
	dynamic any
}

var (
	errTest  = errors.New("an error of the caller")
	errBlank = errors.New("a name must not be blank")
)

// key returns the i-th key of a test.
func key(i int) string { return fmt.Sprintf("action-%05d", i) }

// normalize trims and lowers a name, and rejects a blank one.
func normalize(name string) (string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return "", errBlank
	}
	return name, nil
}

// answer returns a function for GetOrCreate that always says the same.
func answer(v int, err error) func() (int, error) {
	return func() (int, error) { return v, err }
}

// mustPut stores value for k and returns the version.
func mustPut[K comparable, V any](t testing.TB, r *shardedregistry.Registry[K, V], k K, value V) shardedregistry.Version {
	t.Helper()
	version, err := r.Put(k, value)
	if err != nil {
		t.Fatalf("Put(%v) = %v", k, err)
	}
	return version
}

// wantValue fails the test unless k holds value.
func wantValue[K, V comparable](t testing.TB, r *shardedregistry.Registry[K, V], k K, value V) {
	t.Helper()
	if got, ok := r.Get(k); !ok || got != value {
		t.Fatalf("Get(%v) = %v, %v; want %v, true", k, got, ok, value)
	}
}

// hammer runs n copies of f at once, lets them start together, and waits for
// them. It fails the test if that takes unreasonably long.
func hammer(t testing.TB, n int, f func(i int)) {
	t.Helper()
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
	within(t, done.Wait)
}

// createOrUpdate stores what fn makes of the value of k, or of none.
func createOrUpdate[K comparable, V any](r computer[K, V], k K, fn func(old V, exists bool) (V, error)) (shardedregistry.Entry[K, V], error) {
	e, _, err := r.Compute(k, func(old V, exists bool) (V, shardedregistry.ComputeOp, error) {
		value, err := fn(old, exists)
		return value, shardedregistry.UpdateOp, err
	})
	return e, err
}

type computer[K comparable, V any] interface {
	Compute(K, func(V, bool) (V, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[K, V], bool, error)
}

// within fails the test if f does not return in reasonable time.
func within(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	await(t, done)
}

// await waits for c to be closed, or fails the test.
func await(t testing.TB, c <-chan struct{}) {
	t.Helper()
	watchdog := time.NewTimer(time.Minute)
	defer watchdog.Stop()
	select {
	case <-c:
	case <-watchdog.C:
		t.Fatal("stuck")
	}
}
