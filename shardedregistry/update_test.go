//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestUpdate(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	e, err := r.Update("a", func(v int) (int, error) { return v + 10, nil })
	if want := (shardedregistry.Entry[string, int]{Key: "a", Value: 11, Version: 2}); err != nil || e != want {
		t.Errorf("Update = %v, %v; want %v", e, err, want)
	}
	e, err = r.Update("a", func(int) (int, error) { return 99, errTest })
	if err != errTest || e.Version != 0 {
		t.Errorf("Update with an error = %v, %v; want the error as it is", e, err)
	}
	wantValue(t, &r, "a", 11)
}

func TestUpdateIf(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	version := mustPut(t, &r, "a", 1)
	next, err := r.UpdateIf("a", version, 2)
	if err != nil || next != version+1 {
		t.Fatalf("UpdateIf = %d, %v; want %d, nil", next, err, version+1)
	}
	none, err := r.UpdateIf("a", version, 3)
	if wantConflict(t, err, version+1, version); none != 0 {
		t.Errorf("UpdateIf returned version %d beside a conflict", none)
	}
	wantConflict(t, r.DeleteIf("a", version), version+1, version)
	wantValue(t, &r, "a", 2)
	if err := r.DeleteIf("a", next); err != nil {
		t.Fatalf("DeleteIf = %v", err)
	}
	_, err = r.UpdateIf("a", next, 4)
	wantIs(t, "UpdateIf of a deleted key", err, shardedregistry.ErrNotFound)
}

// An UpdateIf whose key changes while Check looks at the value has lost: it says
// to what, or that the key is gone, and stores nothing.
func TestUpdateIfIsOvertaken(t *testing.T) {
	for name, tt := range map[string]struct {
		overtake func(*shardedregistry.Registry[string, int])
		want     error
	}{
		"changed":      {func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "a", 7) }, &shardedregistry.ConflictError{Have: 2, Want: 1}},
		"deleted":      {func(r *shardedregistry.Registry[string, int]) { _, _ = r.Delete("a") }, shardedregistry.ErrNotFound},
		"not accepted": {func(*shardedregistry.Registry[string, int]) {}, errTest},
	} {
		var r *shardedregistry.Registry[string, int]
		r = shardedregistry.MustNew(shardedregistry.Config[string, int]{Check: func(_ string, v int) error {
			if v == 9 {
				tt.overtake(r)
				if tt.want == errTest {
					return errTest
				}
			}
			return nil
		}})
		mustPut(t, r, "a", 1)
		version, err := r.UpdateIf("a", 1, 9)
		if version != 0 || fmt.Sprint(err) != fmt.Sprint(tt.want) {
			t.Errorf("%s: UpdateIf = %v, %v; want %v", name, version, err, tt.want)
		}
		if v, _ := r.Get("a"); v == 9 {
			t.Errorf("%s: the value is stored", name)
		}
	}
}

func TestComputeOfAbsentAndPresent(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	add := func(old int, exists bool) (int, error) {
		if !exists && old != 0 {
			t.Errorf("an absent key has value %d", old)
		}
		if exists {
			return old + 1, nil
		}
		return 100, nil
	}
	for i, want := range []int{100, 101, 102} {
		e, err := createOrUpdate(&r, "a", add)
		if err != nil || e.Key != "a" || e.Value != want || e.Version != shardedregistry.Version(i+1) {
			t.Fatalf("Compute = %v, %v; want value %d at version %d", e, err, want, i+1)
		}
	}
	for _, k := range []string{"a", "b"} {
		if _, err := createOrUpdate(&r, k, func(int, bool) (int, error) { return 0, errTest }); err != errTest {
			t.Errorf("Compute(%s) = %v, want the function's error as it is", k, err)
		}
	}
	wantValue(t, &r, "a", 102)
	if _, ok := r.Get("b"); ok {
		t.Error("a failed Compute has created its key")
	}
}
