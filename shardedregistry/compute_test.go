//go:build !modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
func TestComputeIsToldOf(t *testing.T) {
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
