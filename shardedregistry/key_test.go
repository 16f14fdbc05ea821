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

// wantInvalid fails the test unless every method treats k as no key.
func wantInvalid[K comparable](t *testing.T, r *shardedregistry.Registry[K, int], k K) {
	t.Helper()
	errs, found := everyMethod(keyed[K](r), k)
	for method, err := range errs {
		wantIs(t, method, err, shardedregistry.ErrInvalidKey)
	}
	for method, ok := range found {
		if ok {
			t.Errorf("%s finds an invalid key", method)
		}
	}
	if r.Len() != 0 || shardedregistry.Linked(r) != 0 {
		t.Errorf("an invalid key was stored")
	}
}

func TestNormalizedKeysAreStored(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	if _, err := r.Create(" Backup ", 1); err != nil {
		t.Fatal(err)
	}
	_, err := r.Create("BACKUP", 2)
	var exists *shardedregistry.ExistsError
	if !errors.As(err, &exists) || exists.Given != "BACKUP" || exists.Stored != " Backup " {
		t.Errorf("Create of another spelling = %v, want an error with both", err)
	}
	if want := "shardedregistry: key exists: BACKUP, created as  Backup , at version 1"; err.Error() != want {
		t.Errorf("its text is %q, want %q", err, want)
	}
	mustPut(t, r, "BACKUP", 3) // does not change how the key was created
	if _, err := r.Create("backup", 4); !errors.As(err, &exists) || exists.Stored != " Backup " || exists.Version != 2 {
		t.Errorf("Create after Put = %v", err)
	}
	for e := range r.Entries() {
		if e.Key != "backup" {
			t.Errorf("Entries yields the key %q", e.Key)
		}
	}
	if e, ok := r.Lookup("BackUp"); !ok || e.Key != "backup" {
		t.Errorf("Lookup = %v, %v", e, ok)
	}
}

// What is created over a deletion that a watcher has not come to has its own spelling.
func TestSpellingOfALaterLife(t *testing.T) {
	for _, again := range []string{"backup", "BACKUP"} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
		w := shardedregistry.Subscribe(r)
		mustPut(t, r, " Backup ", 1)
		w.Drain() // so that the key has a subscription
		r.Delete("backup")
		mustPut(t, r, again, 2)
		_, err := r.Create("Backup", 3)
		var exists *shardedregistry.ExistsError
		if !errors.As(err, &exists) || exists.Stored != again {
			t.Errorf("Create = %v, want an error that says that the key was created as %s", err, again)
		}
		w.Leave()
	}
}

func TestNormalizeRejects(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	wantInvalid(t, r, " ")
	_, err := r.Create(" ", 1)
	wantIs(t, "Create, the normaliser's own error", err, errBlank)
}

// A spelling that cannot be compared is fine if its normal form can.
// badError is an error with a method that panics where it is nil.
type badError struct{ text string }

func (e *badError) Error() string { return e.text }

// An error of Normalize that cannot be printed does not panic when the error of the
// operation is printed.
func TestNormalizeReturnsABadError(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Normalize: func(string) (string, error) { return "", (*badError)(nil) },
	})
	_, err := r.Put("a", 1)
	if text := err.Error(); !errors.Is(err, shardedregistry.ErrInvalidKey) || text != "shardedregistry: invalid key: <nil>" {
		t.Errorf("Put = %q", text)
	}
}

func TestNormalizeMakesComparable(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[any, int]{
		Normalize: func(k any) (any, error) {
			if list, ok := k.([]string); ok {
				return strings.Join(list, "/"), nil
			}
			return k, nil
		},
	})
	if _, err := r.Create([]string{"a", "b"}, 1); err != nil {
		t.Fatal(err)
	}
	wantValue[any](t, r, "a/b", 1)
	_, err := r.Create([]string{"a", "b"}, 2)
	if want := "shardedregistry: key exists: [a b] at version 1"; err == nil || err.Error() != want {
		t.Errorf("Create = %v, want %q", err, want)
	}
	wantInvalid(t, shardedregistry.MustNew(shardedregistry.Config[any, int]{
		Normalize: func(any) (any, error) { return []int{}, nil },
	}), "a")
}

// T12: keys that could never be found again.
func TestInvalidKeys(t *testing.T) {
	nan := math.NaN()
	wantInvalid(t, new(shardedregistry.Registry[float64, int]), nan)
	wantInvalid[any](t, new(shardedregistry.Registry[any, int]), nan)
	wantInvalid[any](t, new(shardedregistry.Registry[any, int]), []int{1})
	wantInvalid[any](t, new(shardedregistry.Registry[any, int]), struct{ f func() }{})
	compound := new(shardedregistry.Registry[compoundKey, int])
	wantInvalid(t, compound, compoundKey{numbers: [2]float32{1, float32(nan)}})
	wantInvalid(t, compound, compoundKey{dynamic: map[string]int{}})

	var r shardedregistry.Registry[any, int]
	wantInvalid[any](t, &r, []int{1})
	for i, k := range []any{nil, 1, "a", 1.5, compoundKey{dynamic: "b"}, &r} {
		mustPut[any](t, &r, k, i)
		wantValue[any](t, &r, k, i)
	}
}

// T9: a hash that says little costs time, never answers.
func TestBadHashes(t *testing.T) {
	for name, hash := range map[string]func(string) uint64{
		"constant 0":    func(string) uint64 { return 0 },
		"constant ones": func(string) uint64 { return math.MaxUint64 },
		"4 low bits":    func(k string) uint64 { return uint64(k[len(k)-1]) & 15 },
		"4 top bits":    func(k string) uint64 { return uint64(k[len(k)-1]) << 60 },
	} {
		t.Run(name, func(t *testing.T) {
			var r shardedregistry.Registry[string, int]
			shardedregistry.SetHash(&r, hash)
			const keys = 400
			for i := range keys {
				if _, err := r.Create(key(i), i); err != nil {
					t.Fatal(err)
				}
			}
			for i := range keys {
				wantValue(t, &r, key(i), i)
				if i%2 == 0 {
					r.Delete(key(i))
				}
			}
			if r.Len() != keys/2 || shardedregistry.Linked(&r) != keys/2 {
				t.Errorf("Len = %d, %d linked; want %d", r.Len(), shardedregistry.Linked(&r), keys/2)
			}
			for i := range keys {
				if _, ok := r.Get(key(i)); ok != (i%2 == 1) {
					t.Errorf("Get(%s) finds it: %v", key(i), ok)
				}
			}
		})
	}
}

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
	watch, feed := shardedregistry.Subscribe(r), shardedregistry.OpenFeed(r)
	negative := math.Copysign(0, -1)
	mustPut(t, r, 0, 1)
	mustPut(t, r, negative, 2)
	for _, e := range watch.Drain() {
		if math.Signbit(e.Key) {
			t.Errorf("Watch yields %v", e)
		}
	}
	events, _ := feed.Drain()
	for _, e := range events {
		if math.Signbit(e.Key) {
			t.Errorf("WatchFrom yields %v", e)
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
	watch, feed := shardedregistry.Subscribe(r), shardedregistry.OpenFeed(r)
	for name, way := range ways {
		mustPut(t, r, "key", "a")
		given, used := fresh("key")
		way(r, given)
		given = ""
		watch.Drain()
		feed.Drain()
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

// Errors of Check come back as they are, also those that this package has made
// elsewhere: in a registry with other keys, in one with the same, or in this one.
func TestErrorsOfCheckComeBackAsTheyAre(t *testing.T) {
	var names shardedregistry.Registry[string, int]
	var others shardedregistry.Registry[compoundKey, int]
	whole := compoundKey{scoped: scoped{"elsewhere", "k"}}
	mustPut(t, &names, "taken", 1)
	mustPut(t, &others, whole, 1)
	_, ofNames := names.Create("taken", 2)
	_, ofOthers := others.Create(whole, 2)
	var theirs error
	r := shardedregistry.MustNew(shardedregistry.Config[compoundKey, int]{Check: func(compoundKey, int) error { return theirs }})
	mustPut(t, r, compoundKey{scoped: scoped{"space", "mine"}}, 1)
	_, ofThis := r.Create(compoundKey{scoped: scoped{"space", "mine"}}, 1)
	for _, theirs = range []error{
		ofNames, ofOthers, ofThis,
		&shardedregistry.UniqueError{Index: "i", Value: "v", Key: whole},
		fmt.Errorf("wrapped: %w", ofOthers),
	} {
		before := theirs.Error()
		k := compoundKey{scoped: scoped{"space", "new"}}
		for name, err := range map[string]error{
			"Create": second(r.Create(k, 1)),
			"Put":    second(r.Put(k, 1)),
			"UpdateIf": func() error {
				e, _ := r.Lookup(compoundKey{scoped: scoped{"space", "mine"}})
				return second(r.UpdateIf(e.Key, e.Version, 2))
			}(),
		} {
			if err != theirs {
				t.Errorf("%s = %v, want the very error of Check: %v", name, err, theirs)
			}
		}
		var failed *shardedregistry.KeyError
		both := func(yield func(compoundKey, int) bool) {
			_ = yield(compoundKey{scoped: scoped{"space", "mine"}}, 1) && yield(k, 1)
		}
		if err := r.Replace(both, func(a, b int) bool { return a == b }); !errors.As(err, &failed) || failed.Err != theirs {
			t.Errorf("Replace = %v, want a KeyError with the very error of Check: %v", err, theirs)
		}
		if theirs.Error() != before {
			t.Errorf("the error has become %v, and was %s", theirs, before)
		}
	}
	if r.Len() != 1 {
		t.Errorf("%d keys were created", r.Len()-1)
	}
}

func second[T any](_ T, err error) error { return err }
