package shardedregistry

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// watcher is one loop over Watch, WatchSnapshot or Stream. Writers put slips on its pile
// and wake it; all else belongs to the goroutine of the loop.
type watcher[K comparable] struct {
	root *root[K]
	only func(hkey[K]) bool // whether the loop is told of a key; nil: of all

	// pile holds the slips that have not been taken, or &over when the loop has
	// ended. Writers push by CAS, the watcher takes all at once.
	pile atomics.Pointer[slip[K]]
	over slip[K]

	// bell is what the watcher sleeps on, or nil while it is awake. The watcher
	// stores it; writers ring.
	bell atomics.Pointer[atomics.Event]

	todo  *slip[K]   // taken from the pile, oldest first, not yet looked at
	seats []*seat[K] // all that it has looked at and may still be at a cell
	sweep int        // the number of seats at which it looks for those that are not
	base  *base[K]   // of WatchSnapshot
	flow  *flow      // of Stream
}

// base is what a watcher has shown at once.
type base[K comparable] struct {
	keys     []K
	versions []Version // of the keys; 0 once it was claimed
	index    index     // of keys
}

// minSweep is at how many seats a watcher looks for those that are no longer
// needed for the first time: few enough to keep no memory worth mention, and
// enough that most watchers never do.
func minSweep() int { return atomics.Limit(64, 1) }

// watch joins the audience, to be told of the keys that only accepts, which is nil
// for all.
func (o *root[K]) watch(only func(hkey[K]) bool) *watcher[K] {
	w := &watcher[K]{root: o, only: only, sweep: minSweep()}
	w.join()
	return w
}

func (w *watcher[K]) join() {
	// LP(Watch, WatchSnapshot, Stream), the subscription: the audience with w is stored.
	w.root.attend(func(a audience[K]) audience[K] { return a.with(w) })
}

// skips reports whether the loop is not told of k. That is so for ever.
func (w *watcher[K]) skips(k hkey[K]) bool { return w.only != nil && !w.only(k) }

// put puts p on the pile, unless the loop has ended. It is retried only when
// another slip was put down or all were taken.
func (w *watcher[K]) put(p *slip[K]) bool {
	for {
		top := w.pile.Load()
		if top == &w.over {
			return false
		}
		p.next = top
		if w.pile.CompareAndSwap(top, p) {
			return true
		}
	}
}

// wake wakes the watcher if it sleeps. All who have put something down try:
// one that has claimed the right to might stall.
func (w *watcher[K]) wake() {
	if bell := w.bell.Load(); bell != nil {
		ring(bell)
	}
}

// ring fires an event that others may fire too. The event's own lock picks one;
// the others' panic says no more than that.
func ring(e *atomics.Event) {
	if e.Fired() {
		return
	}
	defer func() { _ = recover() }()
	e.Fire()
}

// shift takes a slip, at whose key the caller then looks, or returns nil.
func (w *watcher[K]) shift() *slip[K] {
	if w.todo == nil {
		if w.todo = w.take(nil); w.todo == nil {
			return nil
		}
	}
	p := w.todo
	w.todo, p.next = p.next, nil // a seat keeps its last slip, which must not keep others
	p.stage.Store(taken)
	return p
}

// take takes what is on the pile, oldest first, and leaves rest there.
func (w *watcher[K]) take(rest *slip[K]) (first *slip[K]) {
	for p := w.pile.Swap(rest); p != nil; {
		first, p, p.next = p, p.next, first
	}
	return first
}

// sleep returns when there may be something on the pile, the loop has lagged, or
// ctx is done. The watcher shows the bell and then looks, writers do it the other
// way round; so nothing is overlooked.
func (w *watcher[K]) sleep(ctx context.Context) {
	bell := atomics.MakeEvent()
	w.bell.Store(&bell)
	if w.pile.Load() == nil && !w.lagged() {
		_ = bell.WaitContext(ctx) // run asks ctx
	}
	w.bell.Store(nil)
}

// look returns the key of p and the record to tell of, or nil if nothing is new.
//
// Only what is in the table counts. If another cell is there than the one that
// has s, its creator has told w, or has found w not yet watching. If none is
// there, w has seen the deletion, or has come after it: a dead cell stays until
// its deleter has put down a slip, and then until that is done.
func (w *watcher[K]) look(p *slip[K]) (k hkey[K], rec *record) {
	s := p.seat
	c := w.root.cells.Load(s.key)
	if c == nil || !c.side.Load().has(s) {
		return k, nil
	}
	w.keep(s)
	// LP(Watch, WatchSnapshot), each event: the record is read.
	rec = c.rec.Load()
	alive := w.root.live(rec) != nil
	p.stage.Store(done)
	if !alive {
		w.root.tidy(s.key)
	}
	if rec.version() <= s.last {
		return k, nil
	}
	known := alive || s.shown || w.base == nil
	s.last, s.shown = rec.version(), alive
	if !known {
		return k, nil
	}
	return c.named(s.key.Hash), rec
}

// keep remembers s, so that it can be taken away in the end. It forgets those
// that have gone with the last cell of their key, now and then: as many as it
// keeps have come since it did so before.
func (w *watcher[K]) keep(s *seat[K]) {
	if s.known {
		return
	}
	s.known = true
	if w.base != nil {
		s.last = w.base.claim(s.key)
		s.shown = s.last != 0
	}
	if len(w.seats) >= w.sweep {
		kept := w.seats[:0]
		for _, s := range w.seats {
			if c := w.root.cells.Load(s.key); c != nil && c.side.Load().has(s) {
				kept = append(kept, s)
			} else {
				w.root.clear(s)
			}
		}
		clear(w.seats[len(kept):])
		w.seats, w.sweep = kept, max(minSweep(), 2*len(kept))
	}
	w.seats = append(w.seats, s)
}

// newBase returns the base of a watcher that shows s.
func newBase[K comparable](s *picture[K]) *base[K] {
	b := &base[K]{keys: s.keys, versions: make([]Version, len(s.keys)), index: indexOf(s.keys, s.naming.hash)}
	for i, rec := range s.records {
		b.versions[i] = rec.version()
	}
	return b
}

// claim returns the version of k, or 0, and from then on 0.
func (b *base[K]) claim(k hkey[K]) (v Version) {
	if i := b.index[slotOf(b.index, b.keys, k)]; i != 0 {
		v, b.versions[i-1] = b.versions[i-1], 0
	}
	return v
}

// left reports whether the loop has ended.
func (w *watcher[K]) left() bool { return w.pile.Load() == &w.over }

// leave ends the loop and leaves nothing behind. Who puts down a slip from now
// on fails, and takes away the seat that it has made for it.
func (w *watcher[K]) leave() {
	last := w.take(&w.over)
	w.root.attend(func(a audience[K]) audience[K] { return a.without(w) })
	for _, list := range []*slip[K]{w.todo, last} {
		for p := list; p != nil; p = p.next {
			p.stage.Store(done)
			w.seats = append(w.seats, p.seat)
		}
	}
	for _, s := range w.seats {
		w.root.clear(s)
	}
	w.todo, w.seats, w.base = nil, nil, nil
}
