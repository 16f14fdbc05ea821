package shardedregistry

import (
	"context"
	"iter"
	"slices"
)

// event returns e without its Space.
func (v View[K, V]) event(e Event[Scoped[K], V]) Event[K, V] {
	return Event[K, V]{e.Key.Key, e.Value, e.Version, e.Deleted, e.Expired}
}

// filtered returns what a loop with filters watches, which is asked when it begins: the
// namespace, or a part of it.
func (v View[K, V]) filtered(filters []Filter[K]) func(*root[Scoped[K]]) interest[Scoped[K]] {
	filters = slices.Clone(filters)
	return func(*root[Scoped[K]]) interest[Scoped[K]] {
		whole := map[group]grouping[Scoped[K]]{
			{v.space, ""}: {parts: func(k Scoped[K]) (string, string) { return k.Space, "" }, alone: ignoresSpaces[K]},
		}
		return domain[K, Scoped[K]]{
			whole: interest[Scoped[K]]{groups: whole},
			find:  func(key K) (hkey[Scoped[K]], error) { t, err := v.locate(key); return t.key, err },
			space: v.space,
			inner: func(k Scoped[K]) K { return k.Key },
			within: func(f Filter[K]) grouping[Scoped[K]] {
				return grouping[Scoped[K]]{length: f.within.length, parts: func(k Scoped[K]) (string, string) {
					_, text := f.within.parts(k.Key)
					return k.Space, text
				}}
			},
		}.interest(filters)
	}
}

// Watch is [Registry.Watch] of the namespace. A change in another namespace
// does not wake the loop, and the loop keeps nothing of it. While loops over
// Views run, however many, a change of any key costs a look-up of its namespace
// more.
//
// Watch is wait-free; the loop is blocking: it waits for changes or ctx, and,
// where a key was deleted, for the mutex of a hash bucket. It takes effect when
// the loop begins, and, for each change, when the key's record is read.
func (v View[K, V]) Watch(ctx context.Context, filters ...Filter[K]) iter.Seq[Event[K, V]] {
	whole := v.registry.watch(ctx, v.filtered(filters))
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
func (v View[K, V]) WatchSnapshot(ctx context.Context, filters ...Filter[K]) iter.Seq2[*Snapshot[K, V], Event[K, V]] {
	whole := v.registry.watchSnapshot(ctx, v.filtered(filters))
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
func (v View[K, V]) Stream(ctx context.Context, limit int, filters ...Filter[K]) iter.Seq2[Event[K, V], error] {
	whole := v.registry.stream(ctx, limit, v.filtered(filters))
	return func(yield func(Event[K, V], error) bool) {
		whole(func(e Event[Scoped[K], V], err error) bool { return yield(v.event(e), err) })
	}
}

// WatchFrom is [Registry.WatchFrom] of the namespace. The history is that of the
// registry: changes of all namespaces count, and wake the loop.
//
// WatchFrom is wait-free; the loop is blocking: it waits for changes or ctx. It
// takes effect when the loop begins, and, for each change, when the key's record
// is read.
func (v View[K, V]) WatchFrom(ctx context.Context, after Revision, filters ...Filter[K]) iter.Seq2[Change[K, V], error] {
	whole := v.registry.watchFrom(ctx, after, v.filtered(filters))
	return func(yield func(Change[K, V], error) bool) {
		whole(func(c Change[Scoped[K], V], err error) bool {
			return yield(Change[K, V]{v.event(c.Event), c.Revision}, err)
		})
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
