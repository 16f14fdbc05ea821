package shardedregistry

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// watcher is one loop over Watch or WatchSnapshot. Writers push notifications
// into its inbox and wake it; all else belongs to the goroutine of the loop.
type watcher[K comparable, V any] struct {
	root     *root[K, V]
	interest interest[K] // immutable; tellers read it too
	number   uint64      // set before tellers see w; see member

	// inbox holds the notifications that have not been taken, or &closed when the loop has
	// ended. Writers push by CAS, the watcher takes all at once.
	inbox  atomics.Pointer[notification[K, V]]
	closed notification[K, V]

	waker atomics.Waker // what the watcher sleeps on until writers wake it

	todo          *notification[K, V]   // taken from the inbox, oldest first, not yet looked at
	subscriptions []*subscription[K, V] // all that it has looked at and may still be at a cell
	sweep         int                   // the number of subscriptions at which keep looks for those that are gone
	baseline      *baseline[K, V]       // of WatchSnapshot
}

// baseline is the snapshot that a loop over WatchSnapshot has yielded first.
type baseline[K comparable, V any] struct {
	keys     []K
	versions []Version // of the keys; 0 once it was claimed
	table    keyTable  // of keys
}

// minSweep is at how many subscriptions a watcher looks for those that are no longer
// needed for the first time: few enough to keep no memory worth mention, and
// enough that most watchers never do.
func minSweep() int { return atomics.Limit(64, 1) }

// newWatcher returns a watcher that has joined the subscribers, to be told of what is in
// an interest.
func newWatcher[K comparable, V any](rt *root[K, V], in interest[K]) *watcher[K, V] {
	w := &watcher[K, V]{root: rt, interest: in, sweep: minSweep()}
	w.join()
	return w
}

// push puts n in the inbox, unless the loop has ended. It is retried only when
// another notification was pushed or all were taken.
func (w *watcher[K, V]) push(n *notification[K, V]) bool {
	for {
		top := w.inbox.Load()
		if top == &w.closed {
			return false
		}
		n.next = top
		if w.inbox.CompareAndSwap(top, n) {
			return true
		}
	}
}

// next takes a notification, at whose key the caller then looks, or returns nil.
func (w *watcher[K, V]) next() *notification[K, V] {
	if w.todo == nil {
		if w.todo = w.takeAll(nil); w.todo == nil {
			return nil
		}
	}
	n := w.todo
	w.todo, n.next = n.next, nil // a subscription keeps its last notification, which must not keep others
	n.stage.Store(taken)
	return n
}

// takeAll takes what is in the inbox, oldest first, and leaves rest there.
func (w *watcher[K, V]) takeAll(rest *notification[K, V]) (first *notification[K, V]) {
	for n := w.inbox.Swap(rest); n != nil; {
		first, n, n.next = n, n.next, first
	}
	return first
}

// sleep returns when there may be something in the inbox, or ctx is done.
func (w *watcher[K, V]) sleep(ctx context.Context) {
	e := w.waker.Event()
	if w.inbox.Load() == nil {
		_ = e.WaitContext(ctx) // run asks ctx
	}
}

// look returns the key of n and the record to yield, or nil if nothing is new.
//
// Only what is in the table counts. If another cell is there than the one that
// has s, its creator has told w, or has found w not yet watching. If none is
// there, w has seen the deletion, or has come after it: a dead cell stays until
// its deleter has pushed a notification, and then until that is done.
func (w *watcher[K, V]) look(n *notification[K, V]) (k hkey[K], rec *record[K, V]) {
	s := n.subscription
	c := w.root.cells.Load(s.key)
	if c == nil || !c.meta.Load().subscribed().has(s) {
		return k, nil
	}
	w.keep(s)
	// LP(Watch, WatchSnapshot), each event: the record is read.
	rec = w.root.held(c)
	n.stage.Store(done)
	alive := rec != nil && !rec.dead()
	if !alive {
		w.root.tidy(s.key, w.number)
	}
	if rec == nil || rec.version() <= s.last {
		return k, nil
	}
	known := alive || s.shown || w.baseline == nil
	s.last, s.shown = rec.version(), alive
	if !known || !w.shows(c.key) {
		return k, nil
	}
	return c.named(s.key.Hash), rec
}

// shows reports whether the loop shows k, of which it was told. It may run a function of
// the user's, which may not return.
func (w *watcher[K, V]) shows(k K) bool { return w.interest.match == nil || w.interest.match(k) }

// keep remembers s, so that it can be taken away in the end. It forgets those
// that have gone with the last cell of their key, now and then: as many as it
// keeps have come since it did so before.
func (w *watcher[K, V]) keep(s *subscription[K, V]) {
	if s.known {
		return
	}
	s.known = true
	if w.baseline != nil {
		s.last = w.baseline.claim(s.key)
		s.shown = s.last != 0
	}
	if len(w.subscriptions) >= w.sweep {
		kept := w.subscriptions[:0]
		for _, s := range w.subscriptions {
			if c := w.root.cells.Load(s.key); c != nil && c.meta.Load().subscribed().has(s) {
				kept = append(kept, s)
			} else {
				s.clear()
			}
		}
		clear(w.subscriptions[len(kept):])
		w.subscriptions, w.sweep = kept, max(minSweep(), 2*len(kept))
	}
	w.subscriptions = append(w.subscriptions, s)
}

// newBaseline returns the base of a watcher that shows s.
func newBaseline[K comparable, V any](s *contents[K, V]) *baseline[K, V] {
	b := &baseline[K, V]{keys: s.keys, versions: make([]Version, len(s.keys)), table: keyTableOf(s.keys, s.codec.hash)}
	for i, rec := range s.records {
		b.versions[i] = rec.version()
	}
	return b
}

// claim returns the version of k, or 0, and from then on 0.
func (b *baseline[K, V]) claim(k hkey[K]) (v Version) {
	if i := b.table[slotOf(b.table, b.keys, k)]; i != 0 {
		v, b.versions[i-1] = b.versions[i-1], 0
	}
	return v
}

// isClosed reports whether the loop has ended.
func (w *watcher[K, V]) isClosed() bool { return w.inbox.Load() == &w.closed }

// close ends the loop and leaves nothing behind. A teller that pushes a notification
// from now on fails, and takes away the subscription that it has made for it.
func (w *watcher[K, V]) close() {
	last := w.takeAll(&w.closed)
	w.leave()
	for _, list := range []*notification[K, V]{w.todo, last} {
		for n := list; n != nil; n = n.next {
			n.stage.Store(done)
			w.subscriptions = append(w.subscriptions, n.subscription)
		}
	}
	for _, s := range w.subscriptions {
		s.clear()
	}
	w.todo, w.subscriptions, w.baseline = nil, nil, nil
}
