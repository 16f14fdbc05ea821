//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"math"
	"strings"
	"testing"

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
