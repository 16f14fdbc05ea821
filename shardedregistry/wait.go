package shardedregistry

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// waitlist is where the calls of Wait for one key sleep. It is in the table of
// waitlists while one of them does, and is replaced when its waker has fired.
type waitlist struct {
	waker atomics.Event // a teller of a change of the key fires it
	calls int           // that are in it; touched under the mutex of the key's bucket
}

// Wait waits until key changes. With the version that the caller knows, it returns what key holds
// once that has a higher version, or [ErrNotFound] once key is absent. With 0 it waits until key is
// present. If ctx is done while it waits, Wait returns context.Cause.
//
// Wait may miss what key holds only briefly.
//
// Wait panics if ctx is nil.
//
// Wait is blocking: it waits for key or ctx, and, if it has to, for a hash bucket that it shares
// with other calls of Wait only. It takes effect when key is read.
func (r *Registry[K, V]) Wait(ctx context.Context, key K, since Version) (Entry[K, V], error) {
	if ctx == nil {
		panic("shardedregistry: Wait called with a nil context")
	}
	t, err := r.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	c, rec, err := t.root.wait(ctx, t.key, since)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return rec.entry(c.key), nil
}

// wait returns the cell and the record of k that Wait returns, or its error.
func (rt *root[K, V]) wait(ctx context.Context, k hkey[K], since Version) (c *cell[K, V], rec *record[K, V], err error) {
	c, rec, done, err := rt.above(k, since)
	if done {
		return c, rec, err
	}
	rt.installWaitlists() // before subscribers sends tellers there
	rt.changeSubscribers(func(s *subscribers[K, V]) { s.waiters++ })
	defer rt.changeSubscribers(func(s *subscribers[K, V]) { s.waiters-- })
	for { // until the key has a version that satisfies the caller
		if c, rec, done, err = rt.sleep(ctx, k, since); done {
			return c, rec, err
		}
	}
}

// above returns what Wait returns if it is done now.
func (rt *root[K, V]) above(k hkey[K], since Version) (c *cell[K, V], rec *record[K, V], done bool, err error) {
	// LP(Wait): the record is read, or none is found.
	c, rec = rt.loadLive(k)
	switch {
	case rec == nil && since == 0:
		return nil, nil, false, nil
	case rec == nil:
		return nil, nil, true, ErrNotFound
	}
	return c, rec, rec.version() > since, nil
}

// sleep waits until k may have changed. It enters the waitlist and then looks at the
// key; writers do it the other way round, so no change is overlooked.
func (rt *root[K, V]) sleep(ctx context.Context, k hkey[K], since Version) (c *cell[K, V], rec *record[K, V], done bool, err error) {
	in := rt.enter(k)
	defer rt.exit(k, in)
	if c, rec, done, err = rt.above(k, since); done {
		return c, rec, true, err
	}
	if in.waker.WaitContext(ctx) != nil {
		return nil, nil, true, context.Cause(ctx)
	}
	return nil, nil, false, nil
}

// enter returns a waitlist of k whose waker has not fired, with one call more.
func (rt *root[K, V]) enter(k hkey[K]) *waitlist {
	fresh := &waitlist{waker: atomics.MakeEvent(), calls: 1}
	return rt.waitlists.Load().Compute(k, func(now *waitlist) *waitlist {
		if now == nil || now.waker.Fired() {
			return fresh
		}
		now.calls++
		return now
	})
}

// exit undoes enter.
func (rt *root[K, V]) exit(k hkey[K], in *waitlist) {
	t := rt.waitlists.Load()
	if t.Load(k) != in {
		return // another one has taken its place, where the caller does not count
	}
	t.Compute(k, func(now *waitlist) *waitlist {
		if now != in {
			return now
		}
		if now.calls--; now.calls == 0 {
			return nil
		}
		return now
	})
}

// wake wakes the calls of Wait for k. It is called while a call waits, so there is a
// table.
func (rt *root[K, V]) wake(k hkey[K]) {
	if in := rt.waitlists.Load().Load(k); in != nil {
		in.waker.TryFire()
	}
}

// installWaitlists makes the table of waitlists if there is none.
func (rt *root[K, V]) installWaitlists() {
	if rt.waitlists.Load() == nil {
		rt.waitlists.Install(table.New[hkey[K], waitlist](func(k hkey[K], _ uint64) uint64 { return k.Hash }, 0))
	}
}
