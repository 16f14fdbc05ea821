package fuzz

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/fuzz/internal/model"
	"github.com/latchfree/latchfree/oncecache"
)

// FuzzCacheOps reads two bytes for each operation: which one, and the key with
// what else the operation needs. Creations stay in flight, with other callers
// waiting for them and leaving, until an operation ends them; leases are held
// until one ends them. The two high bits of the first byte choose a cache that
// closes its values, and one that keeps creating.
func FuzzCacheOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return // longer ones find nothing that these do not
		}
		synctest.Test(t, func(t *testing.T) { cacheOps(t, ops) })
	})
}

const (
	cacheCloses = 0x80
	cacheKeeps  = 0x40
)

// cacheRun is one run of operations against the model.
type cacheRun struct {
	t        *testing.T
	c        *oncecache.Cache[int, int]
	m        *model.Owner
	calls    []*cacheCall
	open     []*cacheCall // creations in flight
	leases   []*cacheCall // calls whose lease is held
	grounded map[*model.Flight]bool
	unheard  bool // a panic that no caller got

	mu     sync.Mutex
	closed []int // by Config.Close
}

func newCacheRun(t *testing.T, first byte) *cacheRun {
	closes, keeps := first&cacheCloses != 0, first&cacheKeeps != 0
	r := &cacheRun{t: t, m: model.NewOwner(closes, keeps, oncecache.ErrClosed), grounded: map[*model.Flight]bool{}}
	config := oncecache.Config[int, int]{KeepCreating: keeps}
	if closes {
		config.Close = func(_, v int) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.closed = append(r.closed, v)
			return nil
		}
	}
	r.c = oncecache.MustNew(config)
	if first == 0 {
		r.c = new(oncecache.Cache[int, int])
	}
	return r
}

func cacheOps(t *testing.T, ops []byte) {
	if len(ops) == 0 {
		return
	}
	r := newCacheRun(t, ops[0])
	defer func() { // whatever happened, leave nobody behind
		for _, k := range r.open {
			close(k.end)
		}
		for _, k := range r.calls {
			k.leave()
		}
	}()
	for v := 1; len(ops) >= 2; v++ {
		r.do(ops[0]&^(cacheCloses|cacheKeeps)%14, v, int(ops[1])%3, int(ops[1])/3)
		ops = ops[2:]
		r.check()
	}
	for len(r.open) > 0 {
		r.end(0, endsInValue)
		r.check()
	}
	for len(r.leases) > 0 {
		r.release(0, false)
	}
	r.close()
	r.check()
	require.Zero(t, r.m.Pending)
}

// do does operation op, in which v is a new value.
func (r *cacheRun) do(op byte, v, key, rest int) {
	t, c, m := r.t, r.c, r.m
	switch op {
	case 0:
		r.call(asksPlainly, key, v)
	case 1: // a create function ends
		if len(r.open) > 0 {
			r.end(key%len(r.open), cacheEnding(rest)%cacheEndings)
		}
	case 2:
		got, ok := c.Get(key)
		want, wantOK := m.Get(key)
		require.Equal(t, wantOK, ok, "Get")
		require.Equal(t, want, got, "Get")
	case 3:
		old, replaced := c.Set(key, v)
		wantOld, wantReplaced := m.Set(key, v)
		require.Equal(t, wantReplaced, replaced, "Set")
		require.Equal(t, wantOld, old, "Set")
	case 4:
		require.Equal(t, m.SetIfAbsent(key, v), c.SetIfAbsent(key, v), "SetIfAbsent")
	case 5:
		old, deleted := c.Delete(key)
		wantOld, wantDeleted := m.Delete(key)
		require.Equal(t, wantDeleted, deleted, "Delete")
		require.Equal(t, wantOld, old, "Delete")
	case 6:
		old, _ := m.Get(key)
		old -= rest % 2 // the value that is there, or another
		require.Equal(t, m.CompareAndDelete(key, old), oncecache.CompareAndDelete(c, key, old), "CompareAndDelete")
	case 7:
		want, got := m.All(), map[int]int{}
		for k, v := range c.All() {
			require.NotContains(t, got, k, "All yields a key twice")
			got[k] = v
		}
		require.Equal(t, want, got, "All")
		require.Equal(t, len(want), c.Len(), "Len")
	case 8:
		r.call(asksWithContext, key, v)
	case 9:
		r.call(acquires, key, v)
	case 10:
		r.leave(key + 3*rest)
	case 11, 12: // Release, Discard
		if len(r.leases) > 0 {
			r.release((key+3*rest)%len(r.leases), op == 12)
		}
	case 13:
		r.close()
	}
}

// call begins a call of a kind.
func (r *cacheRun) call(kind cacheKind, key, v int) {
	k := &cacheCall{kind: kind, key: key, makes: v, end: make(chan cacheEnding)}
	k.ctx, k.leave = context.WithCancel(r.t.Context())
	r.calls = append(r.calls, k)
	r.join(k)
	go k.run(r.c)
}

// join lets k take part in what its key has.
func (r *cacheRun) join(k *cacheCall) {
	if k.flight, k.creates = r.m.Join(k.key, k.kind == acquires); k.creates {
		r.open = append(r.open, k)
	}
}

// leave ends the context of one of the callers who wait and can leave.
func (r *cacheRun) leave(n int) {
	waiting := slices.DeleteFunc(slices.Clone(r.calls), func(k *cacheCall) bool {
		return k.done || k.kind == asksPlainly
	})
	if len(waiting) == 0 {
		return
	}
	k := waiting[n%len(waiting)]
	k.left = true
	r.m.Leave(k.flight, k.kind == acquires)
	k.leave()
}

// end tells the i-th creation in flight how to end.
func (r *cacheRun) end(i int, how cacheEnding) {
	k := r.open[i]
	r.open = slices.Delete(r.open, i, i+1)
	k.ending, k.ended = how, true
	v, err, over := k.makes, how.err(), k.flight.Over
	if err != nil {
		v = 0
		if r.grounded[k.flight] {
			err = oncecache.ErrClosed
		}
	}
	heard := r.m.Finish(k.key, k.flight, v, err) && !r.grounded[k.flight]
	if how == endsInPanic && k.kind != asksPlainly && !heard {
		r.unheard = true
	}
	k.end <- how
	synctest.Wait()
	if !over && err != nil && r.m.CalledOff(k.flight) && !r.grounded[k.flight] {
		r.inherit(k.flight)
	}
}

// inherit lets the heirs of a flight that was called off and failed look
// again. If one of them has begun to create, it came first.
func (r *cacheRun) inherit(f *model.Flight) {
	var heirs []*cacheCall
	for _, k := range r.calls {
		if k.flight != f || k.left || k.ended {
			continue
		}
		if k.begun {
			heirs = slices.Insert(heirs, 0, k)
		} else {
			heirs = append(heirs, k)
		}
	}
	for _, k := range heirs {
		r.join(k)
	}
}

// release ends the i-th lease.
func (r *cacheRun) release(i int, discard bool) {
	k := r.leases[i]
	r.leases = slices.Delete(r.leases, i, i+1)
	if discard {
		if now, ok := r.m.Get(k.key); ok && now == k.value {
			r.m.Delete(k.key)
		}
		k.lease.Discard()
	} else {
		k.lease.Release()
	}
	r.m.Release(k.value)
	require.Panics(r.t, func() { k.lease.Value() })
	k.lease.Release() // changes nothing
}

// close closes the cache without waiting.
func (r *cacheRun) close() {
	now, cancel := context.WithCancel(r.t.Context())
	cancel()
	err := r.c.Close(now)
	r.m.Close()
	for _, k := range r.open {
		if k.kind != asksPlainly && !k.flight.Over {
			r.grounded[k.flight] = true // Delete has hidden it
		}
	}
	if r.m.Pending > 0 {
		require.ErrorIs(r.t, err, context.Canceled, "Close while %d are pending", r.m.Pending)
	} else {
		require.NotErrorIs(r.t, err, context.Canceled, "Close")
	}
	if r.unheard {
		require.ErrorIs(r.t, err, errPanicked, "Close")
	} else {
		require.NotErrorIs(r.t, err, errPanicked, "Close")
	}
}

// check compares everything with the model.
func (r *cacheRun) check() {
	synctest.Wait()
	for _, k := range r.calls {
		k.check(r.t)
		if k.lease != nil && !k.seen {
			k.seen = true
			r.leases = append(r.leases, k)
		}
	}
	slices.Sort(r.closed)
	require.Equal(r.t, slices.Sorted(maps.Keys(r.m.Closed)), r.closed, "closed")
	require.Equal(r.t, len(r.m.All()), r.c.Len(), "Len")
}
