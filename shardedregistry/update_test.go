//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestCreateNeverOverwrites(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	version, err := r.Create("a", 1)
	if err != nil || version != 1 {
		t.Fatalf("Create = %d, %v; want 1, nil", version, err)
	}
	_, err = r.Create("a", 2)
	var exists *shardedregistry.ExistsError
	if !errors.Is(err, shardedregistry.ErrExists) || !errors.As(err, &exists) {
		t.Fatalf("second Create = %v, want an ExistsError", err)
	}
	if want := (shardedregistry.ExistsError{Given: "a", Stored: "a", Version: 1}); *exists != want {
		t.Errorf("second Create = %+v, want %+v", *exists, want)
	}
	if want := "shardedregistry: key exists: a at version 1"; err.Error() != want {
		t.Errorf("its text is %q, want %q", err, want)
	}
	wantValue(t, &r, "a", 1)
}

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

type op = shardedregistry.ComputeOp

// asks returns a function for Compute that always says the same.
func asks(v int, o op, err error) func(int, bool) (int, op, error) {
	return func(int, bool) (int, op, error) { return v, o, err }
}

func TestCompute(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	for i, tt := range []struct {
		v       int
		op      op
		err     error
		want    shardedregistry.Entry[string, int]
		present bool
	}{
		{1, shardedregistry.CancelOp, nil, shardedregistry.Entry[string, int]{}, false},
		{1, shardedregistry.DeleteOp, nil, shardedregistry.Entry[string, int]{}, false},
		{1, shardedregistry.UpdateOp, errTest, shardedregistry.Entry[string, int]{}, false},
		{1, shardedregistry.UpdateOp, nil, shardedregistry.Entry[string, int]{Key: "a", Value: 1, Version: 1}, true},
		{2, shardedregistry.UpdateOp, nil, shardedregistry.Entry[string, int]{Key: "a", Value: 2, Version: 2}, true},
		{3, shardedregistry.CancelOp, nil, shardedregistry.Entry[string, int]{Key: "a", Value: 2, Version: 2}, true},
		{3, shardedregistry.UpdateOp, errTest, shardedregistry.Entry[string, int]{}, false},
		{3, shardedregistry.DeleteOp, errTest, shardedregistry.Entry[string, int]{}, false},
		{3, shardedregistry.DeleteOp, nil, shardedregistry.Entry[string, int]{}, false},
		{4, shardedregistry.UpdateOp, nil, shardedregistry.Entry[string, int]{Key: "a", Value: 4, Version: 4}, true},
	} {
		before, was := r.Lookup("a")
		e, present, err := r.Compute("a", func(old int, exists bool) (int, op, error) {
			if old != before.Value || exists != was {
				t.Errorf("call %d: the function was given %d, %v; want %d, %v", i, old, exists, before.Value, was)
			}
			return tt.v, tt.op, tt.err
		})
		if e != tt.want || present != tt.present || err != tt.err {
			t.Errorf("call %d: Compute = %v, %v, %v; want %v, %v, %v", i, e, present, err, tt.want, tt.present, tt.err)
		}
		after, is := r.Lookup("a")
		if want := tt.err != nil || tt.op == shardedregistry.CancelOp; want && (after != before || is != was) {
			t.Errorf("call %d changed %v, %v to %v, %v", i, before, was, after, is)
		}
	}
	if r.Len() != 1 {
		t.Errorf("%d keys, want 1", r.Len())
	}
}

// What a function decides about a value does not happen to another one.
func TestComputeIsOvertaken(t *testing.T) {
	type registry = shardedregistry.Registry[string, int]
	deleteOdd := func(old int, exists bool) (int, op, error) {
		switch {
		case !exists:
			return 100, shardedregistry.UpdateOp, nil
		case old%2 == 1:
			return 0, shardedregistry.DeleteOp, nil
		}
		return 0, shardedregistry.CancelOp, nil
	}
	for name, tt := range map[string]struct {
		first   int // 0: absent
		change  func(r *registry)
		want    int
		version shardedregistry.Version
	}{
		"a deletion by a Put":             {1, func(r *registry) { r.Put("a", 2) }, 2, 2},
		"a deletion by two Puts":          {1, func(r *registry) { r.Put("a", 2); r.Put("a", 3) }, 0, 0},
		"a deletion by a deletion":        {1, func(r *registry) { r.Delete("a") }, 100, 3},
		"a deletion by another life":      {1, func(r *registry) { r.Delete("a"); r.Put("a", 1) }, 0, 0},
		"nothing, by a Put":               {2, func(r *registry) { r.Put("a", 1) }, 1, 2},
		"a creation by a creation":        {0, func(r *registry) { r.Put("a", 4) }, 4, 1},
		"a creation by what was asked of": {0, func(r *registry) { r.Put("a", 5) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
			if tt.first != 0 {
				mustPut(t, r, "a", tt.first)
			}
			interleave(t, func(pause func()) {
				_, _, err := r.Compute("a", func(old int, exists bool) (int, op, error) {
					pause()
					return deleteOdd(old, exists)
				})
				if err != nil {
					t.Errorf("Compute = %v", err)
				}
			}, func() { tt.change(r) })
			e, ok := r.Lookup("a")
			if e.Value != tt.want || ok != (tt.want != 0) || tt.version != 0 && e.Version != tt.version || r.Len() != shardedregistry.Linked(r) {
				t.Errorf("the key holds %v, %v; want %d at version %d", e, ok, tt.want, tt.version)
			}
		})
	}
}

// A function that changes its own key each time ends in an error, whatever it asks
// for; its answer happens to nothing.
func TestComputeKeepsChangingItsKey(t *testing.T) {
	for _, o := range []op{shardedregistry.UpdateOp, shardedregistry.DeleteOp} {
		var r shardedregistry.Registry[string, int]
		mustPut(t, &r, "a", 0)
		runs := 0
		e, present, err := r.Compute("a", func(v int, _ bool) (int, op, error) {
			runs++
			mustPut(t, &r, "a", runs)
			return -1, o, nil
		})
		wantIs(t, "Compute", err, shardedregistry.ErrTooManyRetries)
		if runs != shardedregistry.MaxAttempts || present || e.Version != 0 {
			t.Errorf("%d: the function ran %d times, want %d; Compute returned %v, %v", o, runs, shardedregistry.MaxAttempts, e, present)
		}
		wantValue(t, &r, "a", runs)
	}
}

// A function that leaves, or asks for what there is not, changes nothing.
func TestComputeLeaves(t *testing.T) {
	for how, exit := range leave {
		for _, present := range []bool{false, true} {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
			if present {
				mustPut(t, r, "a", 1)
			}
			before, _ := r.Lookup("a")
			p := left(t, func() {
				_, _, _ = r.Compute("a", func(int, bool) (int, op, error) { exit(); return 9, shardedregistry.DeleteOp, nil })
			})
			if how == "panic" && p != "the caller's panic" {
				t.Errorf("the panic became %v", p)
			}
			for _, o := range []op{-1, 3} {
				wantPanic(t, "the function given to Compute returned ComputeOp ", func() { _, _, _ = r.Compute("a", asks(9, o, nil)) })
			}
			if after, ok := r.Lookup("a"); after != before || ok != present || r.Len() != shardedregistry.Linked(r) {
				t.Errorf("%s: left %v, %v", how, after, ok)
			}
			within(t, func() {
				for i := range 1000 {
					mustPut(t, r, key(i), i)
				}
			})
		}
	}
	var r shardedregistry.Registry[string, int]
	wantPanic(t, "Compute called with a nil function", func() { _, _, _ = r.Compute("a", nil) })
	_, _, err := new(shardedregistry.Registry[any, int]).Compute([]int{1}, asks(1, shardedregistry.UpdateOp, nil))
	wantIs(t, "Compute of no key", err, shardedregistry.ErrInvalidKey)
}

// What Compute changes, and nothing else, is yielded by WatchFrom, found by an index,
// and in snapshots from then on.
func TestComputeNotifies(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		History: 64,
		Indexes: map[string]func(string, int) []string{"parity": func(_ string, v int) []string { return []string{key(v % 2)} }},
	})
	s := shardedregistry.OpenFeed(r)
	found := func(parity int) (n int) {
		for range r.ByIndex("parity", key(parity)) {
			n++
		}
		return n
	}
	before := r.Snapshot()
	for _, step := range []struct {
		v         int
		op        op
		err       error
		want      []event
		even, odd int
	}{
		{0, shardedregistry.CancelOp, nil, nil, 0, 0},
		{0, shardedregistry.DeleteOp, nil, nil, 0, 0},
		{1, shardedregistry.UpdateOp, nil, []event{{"a", 1, 1, false, false}}, 0, 1},
		{2, shardedregistry.UpdateOp, nil, []event{{"a", 2, 2, false, false}}, 1, 0},
		{3, shardedregistry.CancelOp, nil, nil, 1, 0},
		{3, shardedregistry.UpdateOp, errTest, nil, 1, 0},
		{4, shardedregistry.DeleteOp, nil, []event{{"a", 2, 3, true, false}}, 0, 0},
	} {
		_, _, err := r.Compute("a", asks(step.v, step.op, step.err))
		if err != step.err || found(0) != step.even || found(1) != step.odd {
			t.Errorf("%v: %v, %d even and %d odd", step, err, found(0), found(1))
		}
		events, _ := s.Drain()
		wantEvents(t, events, step.want...)
	}
	if before.Len() != 0 || r.Snapshot().Len() != 0 {
		t.Error("a snapshot has a key")
	}
}

// Workers that count up to a limit and then delete lose no count.
func TestStressCompute(t *testing.T) {
	const workers, limit = 4, 5
	n := iterations(20000)
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 1})
	var deleted [workers]int
	hammer(t, workers, func(worker int) {
		for range n {
			full := false
			_, present, err := r.Compute(0, func(old int, _ bool) (int, op, error) {
				if full = old == limit-1; full {
					return 0, shardedregistry.DeleteOp, nil
				}
				return old + 1, shardedregistry.UpdateOp, nil
			})
			if err != nil || present == full {
				t.Errorf("Compute = %v, %v", present, err)
			}
			if full {
				deleted[worker]++
			}
		}
	})
	sum := 0
	for _, d := range deleted {
		sum += d
	}
	last, _ := r.Get(0)
	if got := sum*limit + last; got != workers*n || r.Len() != shardedregistry.Linked(r) {
		t.Errorf("%d counts, want %d; %d keys, %d linked", got, workers*n, r.Len(), shardedregistry.Linked(r))
	}
}

// What a function has asked for in a run that came to nothing does not count.
func TestComputeChangesItsMind(t *testing.T) {
	for name, tt := range map[string]struct {
		then    shardedregistry.ComputeOp
		present bool
	}{
		"leaves it":  {shardedregistry.CancelOp, true},
		"deletes it": {shardedregistry.DeleteOp, false},
	} {
		var r shardedregistry.Registry[string, int]
		mustPut(t, &r, "a", 1)
		runs := 0
		e, present, err := r.Compute("a", func(old int, exists bool) (int, shardedregistry.ComputeOp, error) {
			if runs++; runs == 1 {
				mustPut(t, &r, "a", 7)
				return 9, shardedregistry.UpdateOp, nil
			}
			return 0, tt.then, nil
		})
		now, there := r.Lookup("a")
		if runs != 2 || err != nil || present != tt.present || there != tt.present || e != now || present && e.Value != 7 {
			t.Errorf("a function that %s has run %d times: %v, %v, %v, and the key holds %v, %v", name, runs, e, present, err, now, there)
		}
	}
}
