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

// waitOps is a root with the methods of Wait. It is a type of its own so that a program
// that does not call Wait does not link what they need.
type waitOps[K comparable] struct{ *root[K] }

// waker is a waitOps as tellers of changes see it.
type waker[K comparable] interface{ wake(k hkey[K]) }

// Wait returns what key holds as soon as its version is above since, and
// [ErrNotFound] as soon as key is absent, unless since is 0. So with 0 it waits
// until key is present; with the version that the caller knows, until key holds
// something else. An invalid key gives [ErrInvalidKey] at once. If ctx is done
// first, Wait returns its cause, see context.Cause. If it need not wait, it
// returns the result even if ctx is done.
//
// Wait looks at key when it is called and when key has changed. It may overlook
// what key holds only briefly, and never overlooks what key holds in the end.
//
// Wait does not poll: it sleeps until key changes. While calls wait for other
// keys, however many, a change of a key costs one look-up more.
//
// Wait panics if ctx is nil.
//
// Wait is blocking: it waits for key or ctx, and, if it has to, for the mutex
// of a hash bucket that it shares with other calls of Wait only. It takes
// effect when the key's record is read, or as that of Lookup if key is absent.
func (r *further[K, V]) Wait(ctx context.Context, key K, since Version) (Entry[K, V], error) {
	if ctx == nil {
		panic("shardedregistry: Wait called with a nil context")
	}
	t, err := r.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return wait[V](ctx, &t, since)
}

// wait runs Wait.
func wait[V any, K comparable](ctx context.Context, t *target[K], since Version) (Entry[K, V], error) {
	c, rec, err := waitOps[K]{t.root}.wait(ctx, t.key, since)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return entryOf[V](c.key, rec), nil
}

// wait returns the cell and the record of k that Wait returns, or its error.
func (w waitOps[K]) wait(ctx context.Context, k hkey[K], since Version) (c *cell[K], rec *record, err error) {
	c, rec, done, err := w.above(k, since)
	if done {
		return c, rec, err
	}
	w.install() // before subscribers sends tellers there
	w.changeSubscribers(func(s subscribers[K]) subscribers[K] { return s.waiting(w, 1) })
	defer w.changeSubscribers(func(s subscribers[K]) subscribers[K] { return s.waiting(w, -1) })
	for { // until the key has a version that satisfies the caller
		if c, rec, done, err = w.pause(ctx, k, since); done {
			return c, rec, err
		}
	}
}

// above returns what Wait returns if it is done now.
func (w waitOps[K]) above(k hkey[K], since Version) (c *cell[K], rec *record, done bool, err error) {
	// LP(Wait): the record is read, or none is found.
	c, rec = w.loadLive(k)
	switch {
	case rec == nil && since == 0:
		return nil, nil, false, nil
	case rec == nil:
		return nil, nil, true, ErrNotFound
	}
	return c, rec, rec.version() > since, nil
}

// pause waits until k may have changed. It enters the waitlist and then looks at the
// key; writers do it the other way round, so no change is overlooked.
func (w waitOps[K]) pause(ctx context.Context, k hkey[K], since Version) (c *cell[K], rec *record, done bool, err error) {
	in := w.join(k)
	defer w.leave(k, in)
	if c, rec, done, err = w.above(k, since); done {
		return c, rec, true, err
	}
	if in.waker.WaitContext(ctx) != nil {
		return nil, nil, true, context.Cause(ctx)
	}
	return nil, nil, false, nil
}

// join returns a waitlist of k whose waker has not fired, with one call more.
func (w waitOps[K]) join(k hkey[K]) *waitlist {
	fresh := &waitlist{waker: atomics.MakeEvent(), calls: 1}
	return w.waitlists.Load().Compute(k, func(now *waitlist) *waitlist {
		if now == nil || now.waker.Fired() {
			return fresh
		}
		now.calls++
		return now
	})
}

// leave undoes join.
func (w waitOps[K]) leave(k hkey[K], in *waitlist) {
	t := w.waitlists.Load()
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
func (w waitOps[K]) wake(k hkey[K]) {
	if in := w.waitlists.Load().Load(k); in != nil {
		in.waker.TryFire()
	}
}

// install makes the table of waitlists if there is none.
func (w waitOps[K]) install() {
	if w.waitlists.Load() == nil {
		w.waitlists.Install(table.New[hkey[K], waitlist](func(k hkey[K], _ uint64) uint64 { return k.Hash }, 0))
	}
}
