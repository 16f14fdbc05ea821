//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestGetOrCreate(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	v, created, err := r.GetOrCreate("a", answer(1, nil))
	if v != 1 || !created || err != nil {
		t.Errorf("GetOrCreate of an absent key = %v, %v, %v", v, created, err)
	}
	v, created, err = r.GetOrCreate("a", func() (int, error) {
		t.Error("the function ran though the key is present")
		return 2, nil
	})
	if v != 1 || created || err != nil {
		t.Errorf("GetOrCreate of a present key = %v, %v, %v", v, created, err)
	}
	if e, _ := r.Lookup("a"); e.Version != 1 {
		t.Errorf("GetOrCreate left %v", e)
	}
}

func TestGetOrCreateFails(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	v, created, err := r.GetOrCreate("a", answer(9, errTest))
	if v != 0 || created || err != errTest {
		t.Errorf("GetOrCreate = %v, %v, %v; want nothing but the function's error as it is", v, created, err)
	}
	for how, exit := range leave {
		p := left(t, func() {
			_, _, _ = r.GetOrCreate("a", func() (int, error) { exit(); return 9, nil })
		})
		if how == "panic" && p != "the caller's panic" {
			t.Errorf("the panic became %v", p)
		}
	}
	if r.Len() != 0 || shardedregistry.Linked(&r) != 0 {
		t.Errorf("%d keys are left, %d linked", r.Len(), shardedregistry.Linked(&r))
	}
	mustPut(t, &r, "a", 1)
	wantPanic(t, "GetOrCreate called with a nil function", func() { _, _, _ = r.GetOrCreate("a", nil) })
}

// What the function has returned is discarded when another creates first, the
// function itself included.
func TestGetOrCreateIsOvertaken(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	v, created, err := r.GetOrCreate("a", func() (int, error) { return 1, onlyError(r.Create("a", 2)) })
	if v != 2 || created || err != nil {
		t.Errorf("GetOrCreate = %v, %v, %v; want what its function has created, 2", v, created, err)
	}
	interleave(t, func(pause func()) {
		v, created, err := r.GetOrCreate("b", func() (int, error) { pause(); return 1, nil })
		if v != 3 || created || err != nil {
			t.Errorf("GetOrCreate = %v, %v, %v; want what another has created, 3", v, created, err)
		}
	}, func() {
		mustPut(t, &r, "b", 3)
	})
	if e, _ := r.Lookup("b"); e.Version != 1 {
		t.Errorf("b holds %v: it was stored twice", e)
	}
}

func onlyError(_ shardedregistry.Version, err error) error { return err }

// A key that is deleted while the function runs is created.
func TestGetOrCreateAfterADeletion(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	rest := shardedregistry.Kill(r, "a")
	v, created, err := r.GetOrCreate("a", answer(5, nil))
	rest()
	if v != 5 || !created || err != nil {
		t.Errorf("GetOrCreate over a dead key = %v, %v, %v", v, created, err)
	}
	if e, ok := r.Lookup("a"); !ok || e.Version != 3 {
		t.Errorf("it left %v, %v; want version 3", e, ok)
	}
}

// A key that GetOrCreate has created is known by the spelling that it was given.
func TestGetOrCreateSpelling(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	if _, created, err := r.GetOrCreate(" Backup ", answer(1, nil)); !created || err != nil {
		t.Fatalf("GetOrCreate = %v, %v", created, err)
	}
	if _, created, err := r.GetOrCreate("DRAIN", answer(1, nil)); !created || err != nil {
		t.Fatalf("GetOrCreate = %v, %v", created, err)
	}
	for given, stored := range map[string]string{"backup": " Backup ", "drain": "DRAIN"} {
		_, err := r.Create(given, 2)
		if exists, ok := err.(*shardedregistry.ExistsError); !ok || exists.Stored != stored {
			t.Errorf("Create(%s) = %v, want an error with the spelling %q", given, err, stored)
		}
	}
}

func TestGetOrCreateInvalid(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	_, _, err := r.GetOrCreate(" ", func() (int, error) { t.Error("the function ran"); return 0, nil })
	if !errors.Is(err, shardedregistry.ErrInvalidKey) || !errors.Is(err, errBlank) {
		t.Errorf("GetOrCreate of no key = %v", err)
	}
}

// T19: after a storm of GetOrCreate, Len is the number of keys that a loop
// yields, each was created once, and all callers have got the same value.
func TestT19_StressGetOrCreate(t *testing.T) {
	const workers = 6
	n := iterations(2000)
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	creations := make([]atomic.Int32, n)
	got := make([][workers]int, n)
	hammer(t, workers, func(worker int) {
		for i := range n {
			v, created, err := r.GetOrCreate(i, func() (int, error) {
				if i%16 == 0 {
					runtime.Gosched()
				}
				return 1 + worker, nil
			})
			if err != nil {
				t.Error(err)
			}
			if created {
				creations[i].Add(1)
				if v != 1+worker {
					t.Errorf("the creator of %d got %d", i, v)
				}
			}
			got[i][worker] = v
		}
	})
	for i := range n {
		if c := creations[i].Load(); c != 1 {
			t.Errorf("%d was created %d times", i, c)
		}
		for _, v := range got[i] {
			if v != got[i][0] {
				t.Fatalf("the callers for %d got %v", i, got[i])
			}
		}
	}
	loop := 0
	for range r.All() {
		loop++
	}
	if r.Len() != n || loop != n || shardedregistry.Linked(r) != n {
		t.Errorf("Len = %d, a loop yields %d, %d linked; want %d", r.Len(), loop, shardedregistry.Linked(r), n)
	}
}
