package shardedregistry

import (
	"context"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// RecordSizes returns the bytes of a record without and with links: one that is
// plain, one that is dated, and the same with terms.
func RecordSizes[V any]() (without, with [4]uintptr) {
	without = [4]uintptr{
		unsafe.Sizeof(boxed[record, V]{}), unsafe.Sizeof(boxed[datedRecord, V]{}),
		unsafe.Sizeof(boxed[termedRecord, V]{}), unsafe.Sizeof(boxed[datedTermedRecord, V]{}),
	}
	with = [4]uintptr{
		unsafe.Sizeof(boxed[linkedRecord, V]{}), unsafe.Sizeof(boxed[datedLinkedRecord, V]{}),
		unsafe.Sizeof(boxed[termedLinkedRecord, V]{}), unsafe.Sizeof(boxed[datedTermedLinkedRecord, V]{}),
	}
	return without, with
}

// Streamer is a loop over Stream that can be stopped between its steps.
type Streamer[K comparable, V any] struct{ t *tape[K, V] }

// OpenStream does the first part of a loop.
func OpenStream[K comparable, V any](r *Registry[K, V], limit int) Streamer[K, V] {
	return Streamer[K, V]{&tape[K, V]{watcher: r.install().stream(limit, nil)}}
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

// Begin takes the next slip, and returns what looks at its key.
func (s Streamer[K, V]) Begin() (look func()) {
	p := s.t.shift()
	return func() { s.t.gather(p, s.t.copies) }
}

// Sleep sleeps as a loop does that has found nothing more on its pile.
func (s Streamer[K, V]) Sleep(ctx context.Context) {
	for s.t.shift() != nil {
	}
	s.t.sleep(ctx)
}

// Doze does what a loop does that falls asleep, and returns whether it was woken.
func (s Streamer[K, V]) Doze() (rung func() bool) {
	bell := atomics.MakeEvent()
	s.t.bell.Store(&bell)
	return bell.Fired
}

// Leave does the rest of the loop.
func (s Streamer[K, V]) Leave() { s.t.leave() }

// Keeper returns what a seat keeps of the loop, and by that a cell or a Ref.
func (s Streamer[K, V]) Keeper() any { return s.t.watcher }

// Behind returns the number of changes that are counted as waiting.
func (s Streamer[K, V]) Behind() int { return int(s.t.flow.behind.Load()) }

// Piled returns how many slips are on the loop's pile.
func (s Streamer[K, V]) Piled() int { return Watcher[K, V]{s.t.watcher}.Piled() }

// Chained returns the number of records that are reachable only because streams
// needed them.
func Chained[K comparable, V any](r *Registry[K, V]) (n int) {
	o := r.install()
	for c := range o.cells.All() {
		for rec := o.links(c.rec.Load()).prev.Load(); rec != nil; rec = o.links(rec).prev.Load() {
			n++
		}
	}
	return n
}

// Informed makes value the value of key, which is present, as Update does, up to
// the instant at which all streams are seated, and returns the rest.
func Informed[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	o, k, c, _, next := replaced(r, key, value)
	a := o.audience.Load()
	o.inform(a, k, c, next)
	return func() { o.announce(a, k) }
}

// Addressed makes value the value of key, which is present, as Update does, up to
// the instant at which it knows whom to tell, and returns the rest.
func Addressed[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	o, k, c, _, next := replaced(r, key, value)
	a := o.audience.Load()
	return func() {
		o.inform(a, k, c, next)
		if a != nil {
			o.announce(a, k)
		}
	}
}

// Telling is Changed by an operation that stalls when it knows whom to tell.
func Telling[K comparable, V any](r *Registry[K, V], key K) (rest func()) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	a := p.root.audience.Load()
	return func() { p.root.announce(a, p.key) }
}

// Made creates key, which is absent, up to the instant at which that takes effect,
// and returns the rest.
func Made[K comparable, V any](r *Registry[K, V], key K, value V) (rest func()) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	o, k := p.root, p.key
	rec := draft(o, o.taking(), nil, value)
	if err := o.prepare(k, rec, nil, 0); err != nil {
		panic(err)
	}
	c := &cell[K]{key: k.Key}
	c.rec.Store(rec)
	if now, _ := o.publish(k, c, rec); now != c {
		panic("the key is present")
	}
	return func() { o.changed(k, c, nil, rec) }
}

// PutForgetfully is Put of a present key by a writer that seats streams at its own
// record, and does not look whether the one before it was told.
func PutForgetfully[K comparable, V any](r *Registry[K, V], key K, value V) {
	p, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	o, k := p.root, p.key
	c, old := o.loadLive(k)
	rec := draft(o, o.taking(), nil, value)
	if err := o.prepare(k, rec, old, old.changed()); err != nil {
		panic(err)
	}
	if !c.rec.CompareAndSwap(old, rec) {
		panic("another has changed the key")
	}
	a := o.audience.Load()
	for i, w := range a.watchers {
		s, isNew := c.seat(k, w, i, rec.version()-1)
		if s.perch().hear(rec.version()); isNew {
			s.call()
		}
	}
	o.links(rec).told.Store(1)
	o.announce(a, k)
}

// OpenStreamOf is OpenStream by a loop that is told of one key only.
func OpenStreamOf[K comparable, V any](r *Registry[K, V], limit int, key K) Streamer[K, V] {
	return Streamer[K, V]{&tape[K, V]{watcher: r.install().stream(limit, func(k hkey[K]) bool { return k.Key == key })}}
}
