package shardedregistry

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Stream returns an iterator over all changes of the registry, which must have
// been made with Config.Transitions. Where a loop over Watch skips what a key
// held only for a while, a loop over Stream yields it. It subscribes when it
// begins, and sleeps while there is nothing to yield. It ends when its body
// leaves it, or when ctx is done. Each loop subscribes anew.
//
// Every change that takes effect after a loop has begun is yielded once, with a
// nil error. Changes of one key come in the order of their versions, which are
// consecutive from its creation to its deletion. Changes of different keys come
// in no particular order. A change from before the loop began is yielded only
// if the call that made it had not returned by then.
//
// No operation waits for a loop, however long its body takes. Instead, what
// waits for the loop is bounded. When there are more than limit changes that it
// has not yielded, it yields a zero Event with a [*LaggedError], which matches
// [ErrLagged], and ends. The changes that waited are not yielded. A caller that
// needs to go on begins again, with what the registry holds then. The change
// that the body is working on does not count. A change whose call has not
// returned may not be counted yet. Changes under way when the loop begins may
// count, so limit should be well above the number of goroutines that change the
// registry.
//
// Besides what it yields, a loop keeps at most limit changes and those of calls
// in progress. Until it ends it also keeps one more record for each key that
// has changed since it began and is present, and some 200 bytes for each of
// these keys, and for up to as many, or 64, that were deleted. A loop that has
// lagged and whose body never returns keeps no more than that, also when keys
// change again. To tell a loop of a change allocates 24 bytes, or nothing if
// its key is already queued, and, the
// first time that its key changes, what the loop keeps for it.
//
// The body runs outside every lock and may use the registry. Wherever it panics
// or calls runtime.Goexit, the loop ends and leaves nothing behind; there is no
// goroutine.
//
// With filters, the loop is told of the keys alone that one of them accepts, and
// other keys neither count nor keep anything for it, unless a filter is a
// [Matching].
//
// Stream panics if ctx is nil, limit is below 1, or the registry is without
// Config.Transitions.
//
// Stream is wait-free; the loop is blocking: it waits for changes or ctx, and,
// where a key was deleted, for the mutex of a hash bucket. It takes effect when
// the loop begins; each change has taken effect before it is yielded.
func (r *further[K, V]) Stream(ctx context.Context, limit int, filters ...Filter[K]) iter.Seq2[Event[K, V], error] {
	rt := r.root.Load()
	switch {
	case ctx == nil:
		panic("shardedregistry: Stream called with a nil context")
	case limit < 1:
		panic(fmt.Sprintf("shardedregistry: Stream with limit %d, which must be at least 1", limit))
	case rt == nil || rt.transitions == nil:
		panic("shardedregistry: Stream without Config.Transitions")
	}
	filters = slices.Clone(filters)
	return func(yield func(Event[K, V], error) bool) {
		sr := streamReader[K, V]{watcher: newWatcher(rt, interestOf(rt, filters), &streaming{limit: int64(limit)})}
		defer sr.close()
		sr.pour(ctx, yield)
	}
}

// streamReader is a loop over Stream with what it has taken. It belongs to the loop's
// goroutine. It has copies of records and no record, so that it keeps no chain
// while its body runs.
type streamReader[K comparable, V any] struct {
	*watcher[K]
	key     hkey[K]
	pending []boxed[record, V] // of key, oldest first, not yet yielded
	buffer  []boxed[record, V] // for pending, as long as that is short
}

// spare is how long a buffer a loop keeps: that of most looks, which find one
// change or a few.
const spare = 16

// pour yields changes until ctx is done, the loop has lagged, or yield returns
// false.
func (sr *streamReader[K, V]) pour(ctx context.Context, yield func(Event[K, V], error) bool) {
	for ctx.Err() == nil {
		switch {
		case sr.lagged():
			sr.pending, sr.buffer = nil, nil // the body may never return
			yield(Event[K, V]{}, &LaggedError{int(sr.stream.limit)})
			return
		case len(sr.pending) > 0:
			if !yield(sr.pop(), nil) {
				return
			}
		case !sr.fill():
			sr.sleep(ctx)
		}
	}
}

// fill takes a notification and looks at its key, and reports whether there was one. It
// drops what the loop does not show.
func (sr *streamReader[K, V]) fill() bool {
	n := sr.next()
	if n == nil {
		return false
	}
	sr.gather(n, sr.copies)
	if len(sr.pending) > 0 && !sr.shows(sr.key.Key) {
		sr.stream.backlog.Add(-int64(len(sr.pending)))
		clear(sr.pending) // which may be in buffer
		sr.pending = nil
	}
	return true
}

// copies makes what is pending copies of rec, a record of k, and those in its chain
// that are newer than since, and returns how many. Few of them are put into buffer.
func (sr *streamReader[K, V]) copies(k hkey[K], rec *record, since Version) int {
	rt, n := sr.streams(), 0
	for r := rec; r != nil && r.version() > since; r = rt.history(r).prev.Load() {
		n++
	}
	into := sr.buffer
	if n > len(into) {
		into = make([]boxed[record, V], n)
		if n <= spare {
			sr.buffer = into
		}
	}
	i := n // somebody may have forgotten some of them since, if they need not be yielded
	for r := rec; r != nil && i > 0; r = rt.history(r).prev.Load() {
		i--
		into[i].head = record{word: r.word}
		if !r.dead() {
			into[i].value = *valueOf[V](r)
		}
	}
	sr.key, sr.pending = k, into[i:n]
	return n - i
}

// pop returns what to yield of the oldest change that was gathered. From then on
// it does not wait.
func (sr *streamReader[K, V]) pop() Event[K, V] {
	first := &sr.pending[0]
	sr.pending = sr.pending[1:]
	sr.stream.backlog.Add(-1)
	rec := &first.head
	e := eventOf[V](sr.key, rec)
	*first = boxed[record, V]{}
	return e
}
