package shardedregistry

import (
	"context"
	"unsafe"
)

// RecordSizes returns the bytes of a record without and with links: one that is
// plain, one that is dated, and the same with index keys.
func RecordSizes[V any]() (without, with [4]uintptr) {
	without = [4]uintptr{
		unsafe.Sizeof(boxed[record, V]{}), unsafe.Sizeof(boxed[datedRecord, V]{}),
		unsafe.Sizeof(boxed[indexedRecord, V]{}), unsafe.Sizeof(boxed[datedIndexedRecord, V]{}),
	}
	with = [4]uintptr{
		unsafe.Sizeof(boxed[linkedRecord, V]{}), unsafe.Sizeof(boxed[datedLinkedRecord, V]{}),
		unsafe.Sizeof(boxed[indexedLinkedRecord, V]{}), unsafe.Sizeof(boxed[datedIndexedLinkedRecord, V]{}),
	}
	return without, with
}

// Streamer is a loop over Stream that can be stopped between its steps.
type Streamer[K comparable, V any] struct{ t *streamReader[K, V] }

// OpenStream does the first part of a loop.
func OpenStream[K comparable, V any](r *Registry[K, V], limit int) Streamer[K, V] {
	return Streamer[K, V]{&streamReader[K, V]{watcher: newWatcher(r.install(), interest[K]{all: true}, &streaming{limit: int64(limit)})}}
}

// Run yields changes, until yield returns false or the loop ends.
func (s Streamer[K, V]) Run(ctx context.Context, yield func(Event[K, V], error) bool) {
	s.t.pour(ctx, yield)
}

// Drain returns the changes that there are, and whether the loop has lagged.
func (s Streamer[K, V]) Drain() (events []Event[K, V], lagged bool) {
	for !s.t.lagged() {
		if len(s.t.pending) > 0 {
			events = append(events, s.t.pop())
		} else if !s.t.fill() {
			return events, s.t.lagged()
		}
	}
	return events, true
}

// Next returns the next change, or a zero one if there is none.
func (s Streamer[K, V]) Next() (e Event[K, V]) {
	for len(s.t.pending) == 0 {
		if !s.t.fill() {
			return e
		}
	}
	return s.t.pop()
}

// Begin takes the next notification, and returns what looks at its key.
func (s Streamer[K, V]) Begin() (look func()) {
	n := s.t.next()
	return func() { s.t.gather(n, s.t.copies) }
}

// Sleep sleeps as a loop does that has found nothing more in its inbox.
func (s Streamer[K, V]) Sleep(ctx context.Context) {
	for s.t.next() != nil {
	}
	s.t.sleep(ctx)
}

// Doze does what a loop does that falls asleep, and returns whether it was woken.
func (s Streamer[K, V]) Doze() (woken func() bool) { return Watcher[K, V]{s.t.watcher}.Doze() }

// Leave does the rest of the loop.
func (s Streamer[K, V]) Leave() { s.t.close() }

// Keeper returns what a subscription keeps of the loop, and by that a cell or a Ref.
func (s Streamer[K, V]) Keeper() any { return s.t.watcher }

// Behind returns the number of changes that are counted as waiting.
func (s Streamer[K, V]) Behind() int { return int(s.t.stream.backlog.Load()) }

// Piled returns how many notifications are on the loop's inbox.
func (s Streamer[K, V]) Piled() int { return Watcher[K, V]{s.t.watcher}.Piled() }

// Chained returns the number of records that are reachable only because streams
// needed them.
func Chained[K comparable, V any](r *Registry[K, V]) (n int) {
	rt := r.install().transitions.(streams[K])
	for c := range rt.cells.All() {
		for rec := rt.history(c.rec.Load()).prev.Load(); rec != nil; rec = rt.history(rec).prev.Load() {
			n++
		}
	}
	return n
}

// Informed makes value the value of key, which is present, as Update does, up to
// the instant at which all streams are subscribed, and returns the rest.
func Informed[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	rt, k, c, _, next := replaced(r, key, value)
	s := rt.subscribers.Load()
	rt.transitions.enqueue(s, k, c, next)
	return func() { rt.notify(s, k) }
}

// Addressed makes value the value of key, which is present, as Update does, up to
// the instant at which it knows whom to tell, and returns the rest.
func Addressed[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	rt, k, c, _, next := replaced(r, key, value)
	s := rt.subscribers.Load()
	return func() {
		rt.transitions.enqueue(s, k, c, next)
		if s != nil {
			rt.notify(s, k)
		}
	}
}

// Telling is Changed by an operation that stalls when it knows whom to tell.
func Telling[K comparable, V any](r *Registry[K, V], key K) (rest func()) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	s := t.root.subscribers.Load()
	return func() { t.root.notify(s, t.key) }
}

// Made creates key, which is absent, up to the instant at which that takes effect,
// and returns the rest.
func Made[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	rec := draft(rt, rt.snapshotting(), nil, value)
	if err := rt.prepare(k, rec, nil, 0); err != nil {
		panic(err)
	}
	c := &cell[K]{key: k.Key}
	c.rec.Store(rec)
	if now, _ := rt.publish(k, c, rec); now != c {
		panic("the key is present")
	}
	return func() { rt.changed(k, c, nil, rec) }
}

// PutForgetfully is Put of a present key by a writer that subscriptions streams at its own
// record, and does not look whether the one before it was told.
func PutForgetfully[K comparable, V any](r *Registry[K, V], key K, value V) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	c, old := rt.loadLive(k)
	rec := draft(rt, rt.snapshotting(), nil, value)
	if err := rt.prepare(k, rec, old, old.changed()); err != nil {
		panic(err)
	}
	if !c.rec.CompareAndSwap(old, rec) {
		panic("another has changed the key")
	}
	a := rt.subscribers.Load()
	watchersOf(a).each(k, func(w *watcher[K]) {
		s, isNew := w.subscribe(c, k, rec.version()-1)
		if s.cursor().enqueue(rec.version()); isNew {
			s.notify()
		}
	})
	rt.transitions.(streams[K]).history(rec).published.Store(1)
	rt.notify(a, k)
}

// OpenStreamOf is OpenStream by a loop that is told of one key only.
func OpenStreamOf[K comparable, V any](r *Registry[K, V], limit int, key K) Streamer[K, V] {
	return OpenStreamFiltered(r, limit, Keys(key))
}

// OpenStreamFiltered is OpenStream by a loop with filters.
func OpenStreamFiltered[K comparable, V any](r *Registry[K, V], limit int, filters ...Filter[K]) Streamer[K, V] {
	rt := r.install()
	return Streamer[K, V]{&streamReader[K, V]{watcher: newWatcher(rt, interestOf(rt, filters), &streaming{limit: int64(limit)})}}
}
