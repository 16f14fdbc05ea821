package registry

import (
	"context"
	"errors"
	"iter"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Snapshot is what the mirror held at one instant. It is a view of a
// [shardedregistry.Snapshot].
//
// While the mirror catches up with the bucket it may hold a later change of one key
// without an earlier one of another, and so may a snapshot.
type Snapshot[K ~string, V any] struct {
	of *shardedregistry.Snapshot[K, held[V]]
}

// Get returns the value of key in the snapshot, and whether key is present there.
func (s *Snapshot[K, V]) Get(key K) (value V, ok bool) {
	h, ok := s.of.Get(key)
	return h.Value, ok
}

// Lookup returns what key holds in the snapshot, and whether key is present there.
func (s *Snapshot[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	e, ok := s.of.Lookup(key)
	return shownEntry(e), ok
}

// Len returns the number of keys.
func (s *Snapshot[K, V]) Len() int { return s.of.Len() }

// Entries returns an iterator over what the keys hold, in no particular order.
func (s *Snapshot[K, V]) Entries() iter.Seq[Entry[K, V]] { return shown(s.of.Entries()) }

// All returns an iterator over the keys and their values, in no particular order.
func (s *Snapshot[K, V]) All() iter.Seq2[K, V] { return pairs(s.of.Entries()) }

// Snapshot returns what the mirror holds at one instant during the call. It is local, as
// [shardedregistry.Registry.Snapshot].
func (r *Registry[K, V]) Snapshot() *Snapshot[K, V] { return &Snapshot[K, V]{r.inner.Snapshot()} }

// Watch returns an iterator over the keys that change in the mirror. It is
// [shardedregistry.Registry.Watch], and ends with the registry, too. The Version of a
// deletion is the revision from which on the key is absent, or 0 if the loop comes to
// it so late that this is forgotten.
//
// Watch panics if ctx is nil.
func (r *Registry[K, V]) Watch(ctx context.Context, filters ...Filter[K]) iter.Seq[Event[K, V]] {
	needContext(ctx, "Watch")
	return func(yield func(Event[K, V]) bool) {
		ctx, cancel := r.while(ctx)
		defer cancel()
		for e := range r.inner.Watch(ctx, filters...) {
			if !yield(r.event(e)) {
				return
			}
		}
	}
}

// WatchSnapshot is Watch that yields first a snapshot, with a zero Event, and then, with a nil
// snapshot, the keys that have changed since. It is
// [shardedregistry.Registry.WatchSnapshot].
//
// WatchSnapshot panics if ctx is nil.
func (r *Registry[K, V]) WatchSnapshot(ctx context.Context, filters ...Filter[K]) iter.Seq2[*Snapshot[K, V], Event[K, V]] {
	needContext(ctx, "WatchSnapshot")
	return func(yield func(*Snapshot[K, V], Event[K, V]) bool) {
		ctx, cancel := r.while(ctx)
		defer cancel()
		for s, e := range r.inner.WatchSnapshot(ctx, filters...) {
			if s != nil {
				if !yield(&Snapshot[K, V]{s}, Event[K, V]{}) {
					return
				}
			} else if !yield(nil, r.event(e)) {
				return
			}
		}
	}
}

// event returns an event of the mirror as callers see it.
func (r *Registry[K, V]) event(e Event[K, held[V]]) Event[K, V] {
	if !e.Deleted {
		return Event[K, V]{Key: e.Key, Value: e.Value.Value, Version: e.Value.Version}
	}
	b, _ := r.tombs.get(e.Key)
	return Event[K, V]{Key: e.Key, Version: Version(b.revision), Deleted: true, Expired: b.expired}
}

// while returns a context that ends with ctx and with the registry.
func (r *Registry[K, V]) while(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(context.Cause(r.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Wait returns what key holds as soon as its version is above since, and [ErrNotFound] as soon as
// key is absent, unless since is 0. So with 0 it waits until key is present; with the version
// that the caller knows, until key holds something else. An invalid key gives [ErrInvalidKey] at once. If ctx
// ends first, Wait returns its cause, and [ErrClosed] if the registry ends.
//
// Wait looks at the mirror alone, unless that shows a version below since. Then the mirror is behind, or the
// bucket was restored or made anew: Wait proves which, as [Registry.Sync] does, and returns the lower version if
// the bucket has gone back. A call that begins after that, with a revision that the bucket has given
// again, cannot tell the two values apart.
//
// Wait panics if ctx is nil.
func (r *Registry[K, V]) Wait(ctx context.Context, key K, since Version) (Entry[K, V], error) {
	needContext(ctx, "Wait")
	norm, err := r.normalized(key)
	if err == nil {
		_, err = encodeKey(string(norm))
	}
	if err != nil {
		return Entry[K, V]{}, err
	}
	ctx, cancel := r.while(ctx)
	defer cancel()
	var stamp int64 // of the message with version since; 0 if none was seen
	for proved := false; ; {
		e, ok := r.inner.Lookup(key)
		h := e.Value
		switch {
		case ok && (h.Version > since || h.Version < since && proved || h.Version == since && stamp != 0 && h.Stamp != stamp):
			return shownEntry(e), nil
		case !ok && since != 0:
			return Entry[K, V]{}, ErrNotFound
		case ok && h.Version < since:
			proved, err = r.waitOrProve(ctx, key, e.Version)
		default:
			stamp = h.Stamp
			// The mirror counts versions by itself: any other than this one will do.
			_, err = r.inner.Wait(ctx, key, e.Version)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Entry[K, V]{}, err
		}
	}
}

// waitOrProve waits until key has another version in the mirror than a given one, or the mirror shows all
// that was stored before the call. It reports whether that is so.
func (r *Registry[K, V]) waitOrProve(ctx context.Context, key K, version Version) (proved bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	synced := make(chan error, 1)
	go func() {
		err := r.Sync(ctx)
		synced <- err
		cancel(err) // an ErrClosed comes here before ctx has it
	}()
	_, err = r.inner.Wait(ctx, key, version)
	cancel(nil)
	if <-synced == nil {
		return true, nil
	}
	return false, err
}
