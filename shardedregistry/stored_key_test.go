//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// twoZeros calls f with a key that is stored as 0 and was given as -0, in each way
// that yields the key.
func twoZeros(t *testing.T, f func(name string, got float64)) {
	same := func(float64, int) []string { return []string{"x"} }
	r := shardedregistry.MustNew(shardedregistry.Config[float64, int]{
		Indexes:       map[string]func(float64, int) []string{"all": same},
		UniqueIndexes: map[string]func(float64, int) []string{"one": same},
	})
	mustPut(t, r, 0, 1)
	given, ctx := math.Copysign(0, -1), t.Context()
	keep := func(v int) (int, error) { return v, nil }
	entry := func(name string, e shardedregistry.Entry[float64, int], err error) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f(name, e.Key)
	}

	e, _ := r.Lookup(given)
	entry("Lookup", e, nil)
	e, err := r.Update(given, keep)
	entry("Update", e, err)
	e, _, err = r.Compute(given, func(v int, _ bool) (int, shardedregistry.ComputeOp, error) { return v, shardedregistry.UpdateOp, nil })
	entry("Compute", e, err)
	e, _, err = r.Compute(given, func(int, bool) (int, shardedregistry.ComputeOp, error) { return 0, shardedregistry.CancelOp, nil })
	entry("Compute that leaves the key", e, err)
	e, err = r.Wait(ctx, given, 0)
	entry("Wait", e, err)
	e, _ = r.Snapshot().Lookup(given)
	entry("Snapshot.Lookup", e, nil)
	mustPut(t, r, given, 2)
	for e := range r.ByIndex("all", "x") {
		entry("ByIndex", e, nil)
	}
	e, _ = r.LookupBy("one", "x")
	entry("LookupBy", e, nil)

	ref := r.Ref(given)
	e, _ = ref.Lookup()
	entry("Ref.Lookup", e, nil)

	var exists *shardedregistry.ExistsError
	if _, err := r.Create(given, 1); !errors.As(err, &exists) || !math.Signbit(exists.Given.(float64)) {
		t.Errorf("Create = %v", err)
	} else {
		f("Create", exists.Stored.(float64))
	}
	var taken *shardedregistry.UniqueError
	if _, err := r.Create(5, 1); !errors.As(err, &taken) {
		t.Errorf("Create = %v", err)
	} else {
		f("a unique value", taken.Key.(float64))
	}
	e, _ = r.Delete(given)
	entry("Delete", e, nil)
}

// An entry's key is as it is stored, and not as it was given to find it.
func TestEntriesHaveTheStoredKey(t *testing.T) {
	twoZeros(t, func(name string, got float64) {
		if math.Signbit(got) {
			t.Errorf("%s shows the key as it was given", name)
		}
	})
}

// Who creates a key creates it as it was given, also after having found an earlier
// life of it.
func TestComputeCreatesTheGivenKey(t *testing.T) {
	var r shardedregistry.Registry[float64, int]
	negative := math.Copysign(0, -1)
	mustPut(t, &r, negative, 1)
	e, err := createOrUpdate(&r, 0, func(_ int, exists bool) (int, error) {
		if exists {
			r.Delete(0)
		}
		return 2, nil
	})
	if err != nil || e.Value != 2 || math.Signbit(e.Key) {
		t.Errorf("Compute = %v, %v", e, err)
	}
	if e, _ = r.Lookup(negative); math.Signbit(e.Key) {
		t.Errorf("stored is %v", e)
	}
}

// What loops yield has the key that is stored when they look.
func TestEventsHaveTheStoredKey(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[float64, int]{History: 1024})
	watch, stream := shardedregistry.Subscribe(r), shardedregistry.OpenFeed(r)
	negative := math.Copysign(0, -1)
	mustPut(t, r, 0, 1)
	mustPut(t, r, negative, 2)
	for _, e := range watch.Drain() {
		if math.Signbit(e.Key) {
			t.Errorf("Watch yields %v", e)
		}
	}
	events, _ := stream.Drain()
	for _, e := range events {
		if math.Signbit(e.Key) {
			t.Errorf("Stream yields %v", e)
		}
	}
	r.Delete(0)
	mustPut(t, r, negative, 3)
	for _, e := range watch.Drain() {
		if !math.Signbit(e.Key) {
			t.Errorf("Watch yields %v of a key that was created as -0", e)
		}
	}
	watch.Leave()
}

// fresh returns k in memory of its own, and reports whether that is in use.
func fresh(k string) (given string, used func() bool) {
	given = strings.Clone(strings.Repeat("x", 64) + k)[64:] // a part of something larger, as of a request
	p := weak.Make(unsafe.StringData(given))
	return given, func() bool {
		runtime.GC()
		return p.Value() != nil
	}
}

// Who finds or changes a key leaves nothing behind of the key that it has given,
// whatever is there to keep it: indexes, loops, errors.
func TestGivenKeysAreNotKept(t *testing.T) {
	type registry = shardedregistry.Registry[string, string]
	ways := map[string]func(r *registry, k string){
		"Get":    func(r *registry, k string) { r.Get(k) },
		"Lookup": func(r *registry, k string) { r.Lookup(k) },
		"Create": func(r *registry, k string) { r.Create(k, "b") },
		"Put":    func(r *registry, k string) { r.Put(k, "b") },
		"Update": func(r *registry, k string) { r.Update(k, func(string) (string, error) { return "b", nil }) },
		"UpdateIf": func(r *registry, k string) {
			e, _ := r.Lookup(k)
			r.UpdateIf(k, e.Version, "b")
		},
		"Compute": func(r *registry, k string) {
			createOrUpdate(r, k, func(string, bool) (string, error) { return "b", nil })
		},
		"GetOrCreate": func(r *registry, k string) {
			r.GetOrCreate(k, func() (string, error) { return "b", nil })
		},
		"Delete": func(r *registry, k string) { r.Delete(k) },
		"DeleteIf": func(r *registry, k string) {
			e, _ := r.Lookup(k)
			r.DeleteIf(k, e.Version)
		},
		"Ref": func(r *registry, k string) {
			ref := r.Ref(k)
			ref.Get()
			ref.Lookup()
		},
		"Wait": func(r *registry, k string) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			e, _ := r.Lookup(k)
			r.Wait(ctx, k, e.Version)
		},
	}
	value := func(_, v string) []string { return []string{v} }
	r := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		History:       1024,
		Indexes:       map[string]func(string, string) []string{"value": value},
		UniqueIndexes: map[string]func(string, string) []string{"unique": value},
	})
	watch, stream := shardedregistry.Subscribe(r), shardedregistry.OpenFeed(r)
	for name, way := range ways {
		mustPut(t, r, "key", "a")
		given, used := fresh("key")
		way(r, given)
		given = ""
		watch.Drain()
		stream.Drain()
		if used() {
			t.Errorf("after %s the key that it was given is kept", name)
		}
		r.Delete("key")
	}
	watch.Leave()
}

// A call of Wait that sleeps leaves nothing of its key behind either.
func TestWaitKeepsNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		given, used := fresh("key")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := r.Wait(ctx, given, 0)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v", err)
		}
		given = ""
		if used() {
			t.Error("the key is kept")
		}
		runtime.KeepAlive(fmt.Sprint(&r))
	})
}
