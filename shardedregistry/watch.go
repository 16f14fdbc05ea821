package shardedregistry

import (
	"context"
	"iter"
	"slices"
)

// Event is a change of a key and what the key holds after it.
type Event[K comparable, V any] struct {
	Key     K // as it is stored: normalised
	Value   V // the last one if Deleted
	Version Version
	Deleted bool
	Expired bool // Deleted because its time to live was over: see Config.TTL
}

// Watch returns an iterator over the keys that change; [Registry.WatchFrom] yields
// every single change. A loop over it begins to watch when it begins, and
// sleeps while there is nothing to yield. It ends when its body leaves it, or
// when ctx is done. Each loop watches anew.
//
// A change that takes effect after a loop has begun is yielded, unless the key
// has changed again by the time the loop gets to it. Then the later change is
// yielded in its place. So a loop may skip what a key held in between, and
// never misses what it holds in the end, or that it was deleted. The versions
// that it yields for a key increase. Changes of different keys come in no
// particular order. A change from before the loop began is yielded only if the
// call that made it had not returned by then.
//
// No operation waits for a watcher, however long its body takes. What waits for
// the loop is bounded by the number of keys that have changed, and not by the
// number of changes: some 180 bytes for a key, and, while a deletion waits,
// what the registry keeps for one entity. Until the loop ends it keeps as much
// for each key that has changed and is present, and for up to as many, or 64,
// that were deleted. To tell a loop of a change allocates 24 bytes, or nothing
// if its key is already queued, and, the first time that its key changes, what
// the loop keeps for it.
//
// A change takes time in proportion to the number of loops that are told of it;
// other loops, and how many there are, do not matter. To begin or end a loop takes
// as many steps as the logarithm of the number of loops with the same filter.
//
// The body runs outside every lock and may use the registry. Wherever it panics
// or calls runtime.Goexit, the loop ends and leaves nothing behind; there is no
// goroutine.
//
// With filters, the loop is told of the keys alone that one of them accepts. It is
// not woken for other keys and keeps nothing of them, unless a filter is a
// [Matching].
//
// Watch panics if ctx is nil.
//
// Watch is wait-free; the loop is blocking: it waits for changes or ctx, and,
// where a key was deleted, for the mutex of a hash bucket. It takes effect when
// the loop begins, and, for each change, when the key's record is read.
func (r *Registry[K, V]) Watch(ctx context.Context, filters ...Filter[K]) iter.Seq[Event[K, V]] {
	if ctx == nil {
		panic("shardedregistry: Watch called with a nil context")
	}
	filters = slices.Clone(filters)
	return func(yield func(Event[K, V]) bool) {
		rt := r.install()
		w := newWatcher(rt, interestOf(rt, filters))
		defer w.close()
		run(ctx, w, yield)
	}
}

// WatchSnapshot returns an iterator over what the registry holds and its
// changes from then on. A loop over it yields a snapshot first, with no event,
// also if the snapshot is empty; and then events, each with a nil snapshot. No
// change is missed in between, and no event repeats what the snapshot contains.
// So a caller that starts with the snapshot and applies the events has what
// each key held at some moment, and, when nothing changes any more, what it
// holds.
//
// The events are those of Watch, without deletions of keys that the loop has
// not shown. All else that Watch says holds here too. The loop keeps the keys
// of the snapshot and their versions, and not the values. With filters, the
// snapshot has only the keys that they accept; to take it still looks at every
// entity.
//
//	for state, event := range plans.WatchSnapshot(ctx) {
//		if state != nil {
//			view = maps.Collect(state.All())
//		} else if event.Deleted {
//			delete(view, event.Key)
//		} else {
//			view[event.Key] = event.Value
//		}
//	}
//
// WatchSnapshot is wait-free; the loop is blocking as those over Watch are, and
// takes a Snapshot. It takes effect when the snapshot's cut is made, and, for
// each change, when the key's record is read.
func (r *Registry[K, V]) WatchSnapshot(ctx context.Context, filters ...Filter[K]) iter.Seq2[*Snapshot[K, V], Event[K, V]] {
	if ctx == nil {
		panic("shardedregistry: WatchSnapshot called with a nil context")
	}
	filters = slices.Clone(filters)
	return func(yield func(*Snapshot[K, V], Event[K, V]) bool) {
		rt := r.install()
		w := newWatcher(rt, interestOf(rt, filters))
		defer w.close()
		if ctx.Err() != nil {
			return
		}
		s := snapshot(w.root) // LP(WatchSnapshot): its cut is made
		if !w.interest.hasAll() {
			s.keep(w.interest.has)
		}
		w.baseline = newBaseline(&s.contents)
		if yield(s, Event[K, V]{}) {
			run(ctx, w, func(e Event[K, V]) bool { return yield(nil, e) })
		}
	}
}

// run yields events until ctx is done or yield returns false.
func run[K comparable, V any](ctx context.Context, w *watcher[K, V], yield func(Event[K, V]) bool) {
	for ctx.Err() == nil {
		n := w.next()
		if n == nil {
			w.sleep(ctx)
			continue
		}
		if k, rec := w.look(n); rec != nil && !yield(rec.event(k)) {
			return
		}
	}
}

// event returns what to tell of r, which k holds or held.
func (r *record[K, V]) event(k hkey[K]) Event[K, V] {
	return Event[K, V]{Key: k.Key, Value: r.value, Version: r.version(), Deleted: r.dead(), Expired: r.expired()}
}
