package shardedregistry

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// room is where the calls of Wait for one key sleep. It is in the table of
// rooms while one of them does, and is replaced when its bell was rung.
type room struct {
	bell  atomics.Event // anybody who has changed the key rings
	calls int           // that are in it; touched under the mutex of the key's bucket
}

// lobby is a root to those who wait. It is a type of its own so that a program in
// which nobody waits has none of what its methods need.
type lobby[K comparable] struct{ *root[K] }

// ringer is a lobby to those who tell of changes.
type ringer[K comparable] interface{ ring(k hkey[K]) }

// Wait returns what key holds as soon as its version is above since, and
// [ErrNotFound] as soon as it is absent, unless since is 0. So with 0 it waits
// until key is present; with the version that the caller knows, until that is no
// longer what key holds. An invalid key gives [ErrInvalidKey] at once. If ctx is
// done first, Wait returns its cause, see context.Cause; what it need not wait
// for it returns even if ctx is done.
//
// Wait looks at key when it is called and when key has changed. What key holds
// only briefly it may overlook, and never what key holds in the end.
//
// It does not poll: it sleeps until key changes. A change of a key costs one
// look-up more while calls wait for other keys, however many they are.
//
// Wait panics if ctx is nil.
//
// Wait is blocking: it waits for key or ctx, and, if it has to, for the mutex of
// a hash bucket that it shares with other calls of Wait only. It takes effect
// when the key's record is read, or as that of Lookup if key is absent.
func (r *further[K, V]) Wait(ctx context.Context, key K, since Version) (Entry[K, V], error) {
	if ctx == nil {
		panic("shardedregistry: Wait with a nil context")
	}
	p, err := r.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return wait[V](ctx, &p, since)
}

// wait runs Wait.
func wait[V any, K comparable](ctx context.Context, p *place[K], since Version) (Entry[K, V], error) {
	c, rec, err := lobby[K]{p.root}.wait(ctx, p.key, since)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return entryOf[V](p.root, c.named(p.key.Hash), rec), nil
}

// wait returns the cell and the record of k that Wait returns, or its error.
func (o lobby[K]) wait(ctx context.Context, k hkey[K], since Version) (c *cell[K], rec *record, err error) {
	c, rec, done, err := o.above(k, since)
	if done {
		return c, rec, err
	}
	o.install() // before anybody is told to look there
	o.attend(func(a audience[K]) audience[K] { return a.waiting(o, 1) })
	defer o.attend(func(a audience[K]) audience[K] { return a.waiting(o, -1) })
	for { // until the key has a version that satisfies the caller
		if c, rec, done, err = o.pause(ctx, k, since); done {
			return c, rec, err
		}
	}
}

// above returns what Wait returns if it is done now.
func (o lobby[K]) above(k hkey[K], since Version) (c *cell[K], rec *record, done bool, err error) {
	// LP(Wait): the record is read, or none is found.
	c, rec = o.loadLive(k)
	switch {
	case rec == nil && since == 0:
		return nil, nil, false, nil
	case rec == nil:
		return nil, nil, true, ErrNotFound
	}
	return c, rec, rec.version() > since, nil
}

// pause waits until k may have changed. It enters the room and then looks at the
// key; writers do it the other way round, so no change is overlooked.
func (o lobby[K]) pause(ctx context.Context, k hkey[K], since Version) (c *cell[K], rec *record, done bool, err error) {
	in := o.enter(k)
	defer o.exit(k, in)
	if c, rec, done, err = o.above(k, since); done {
		return c, rec, true, err
	}
	if in.bell.WaitContext(ctx) != nil {
		return nil, nil, true, context.Cause(ctx)
	}
	return nil, nil, false, nil
}

// enter returns a room of k whose bell has not been rung, with one call more.
func (o lobby[K]) enter(k hkey[K]) *room {
	fresh := &room{bell: atomics.MakeEvent(), calls: 1}
	return o.rooms.Load().Compute(k, func(now *room) *room {
		if now == nil || now.bell.Fired() {
			return fresh
		}
		now.calls++
		return now
	})
}

// exit undoes enter.
func (o lobby[K]) exit(k hkey[K], in *room) {
	t := o.rooms.Load()
	if t.Load(k) != in {
		return // another one has taken its place, where the caller does not count
	}
	t.Compute(k, func(now *room) *room {
		if now != in {
			return now
		}
		if now.calls--; now.calls == 0 {
			return nil
		}
		return now
	})
}

// ring wakes the calls of Wait for k. Somebody waits, so there is a table.
func (o lobby[K]) ring(k hkey[K]) {
	if in := o.rooms.Load().Load(k); in != nil {
		ring(&in.bell)
	}
}

// install makes the table of rooms if there is none.
func (o lobby[K]) install() {
	if o.rooms.Load() == nil {
		o.rooms.CompareAndSwap(nil, table.New[hkey[K], room](
			func(k hkey[K], _ uint64) uint64 { return k.Hash }, 0))
	}
}
