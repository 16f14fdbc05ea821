package shardedregistry

import (
	"context"
	"iter"
)

// event returns e without its Space.
func (v View[K, V]) event(e Event[Scoped[K], V]) Event[K, V] {
	return Event[K, V]{e.Key.Key, e.Value, e.Version, e.Deleted}
}

// Watch is [Registry.Watch] of the namespace. A change in another namespace
// does not wake the loop, and the loop keeps nothing of it. Every change of a
// key asks each loop over each View whether it concerns that loop, which takes
// some 30 ns each.
//
// Watch is wait-free; the loop is blocking: it waits for changes or ctx, and,
// where a key was deleted, for the mutex of a hash bucket. It takes effect when
// the loop begins, and, for each change, when the key's record is read.
func (v View[K, V]) Watch(ctx context.Context) iter.Seq[Event[K, V]] {
	whole := v.registry.watch(ctx, v.has)
	return func(yield func(Event[K, V]) bool) {
		whole(func(e Event[Scoped[K], V]) bool { return yield(v.event(e)) })
	}
}

// WatchSnapshot is [Registry.WatchSnapshot] of the namespace. What [View.Watch]
// says of loops holds here too.
//
// WatchSnapshot is wait-free; the loop is blocking as those over Watch are, and
// takes a Snapshot. It takes effect when the snapshot's cut is made, and, for
// each change, when the key's record is read.
func (v View[K, V]) WatchSnapshot(ctx context.Context) iter.Seq2[*Snapshot[K, V], Event[K, V]] {
	whole := v.registry.watchSnapshot(ctx, v.has)
	return func(yield func(*Snapshot[K, V], Event[K, V]) bool) {
		whole(func(s *Snapshot[Scoped[K], V], e Event[Scoped[K], V]) bool {
			if s != nil {
				return yield(v.snapshot(s), Event[K, V]{})
			}
			return yield(nil, v.event(e))
		})
	}
}

// Stream is [Registry.Stream] of the namespace. What [View.Watch] says of loops
// holds here too. Limit counts the changes of this namespace alone.
//
// Stream is wait-free; the loop is blocking: it waits for changes or ctx, and,
// where a key was deleted, for the mutex of a hash bucket. It takes effect when
// the loop begins; each change has taken effect before it is yielded.
func (v View[K, V]) Stream(ctx context.Context, limit int) iter.Seq2[Event[K, V], error] {
	whole := v.registry.stream(ctx, limit, v.has)
	return func(yield func(Event[K, V], error) bool) {
		whole(func(e Event[Scoped[K], V], err error) bool { return yield(v.event(e), err) })
	}
}

// Wait is [Registry.Wait] within the namespace.
//
// Wait is blocking: it waits for key or ctx, and, if it has to, for the mutex of
// a hash bucket that it shares with other calls of Wait only. It takes effect
// when the key's record is read, or as that of Lookup if key is absent.
func (v View[K, V]) Wait(ctx context.Context, key K, since Version) (Entry[K, V], error) {
	if ctx == nil {
		panic("shardedregistry: Wait called with a nil context")
	}
	t, err := v.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	e, err := wait[V](ctx, &t, since)
	return v.entry(e), err
}
