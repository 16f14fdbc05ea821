package shardedregistry

import (
	"math"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// streaming is the further state of a watcher that is a loop over Stream.
type streaming struct {
	limit int64

	// backlog is the number of changes that were enqueued and have not been yielded,
	// but for the calls in progress. Tellers add, the loop subtracts.
	backlog atomics.Int64

	// overflowed becomes 1 when backlog was above limit. A teller that finds that sets
	// it; all tellers read it, and the loop, which then ends.
	overflowed atomics.Uint32
}

// cursor is a subscription of a loop over Stream.
type cursor[K comparable] struct {
	subscription[K]

	// pos is the last version that the loop has taken from the chain, or the one
	// before the first that it will take. The loop alone changes it, and it
	// grows. Operations that forget old records read it.
	pos atomics.Uint64

	// enqueued is the last version that the stream's backlog counts. It grows, by CAS,
	// and the goroutine that has moved it adds the difference to backlog. So the sum of
	// enqueued less pos over a stream's cursors is what was enqueued and not taken.
	enqueued atomics.Uint64
}

// newCursor returns one from which w will take what is newer than pos.
func newCursor[K comparable](w *watcher[K], k hkey[K], pos Version) *cursor[K] {
	p := &cursor[K]{subscription: subscription[K]{watcher: w, key: k}}
	p.pos.Store(uint64(pos))
	p.enqueued.Store(uint64(pos))
	return p
}

// cursor returns the cursor of which s is a part. It is called for subscriptions of loops
// over Stream only.
func (s *subscription[K]) cursor() *cursor[K] {
	// Safety: the subscriptions of watchers that have a stream are made by newSubscription alone, as
	// the first field of one.
	return (*cursor[K])(unsafe.Pointer(s))
}

// unreachable reports whether the watcher takes no notification any more.
func (w *watcher[K]) unreachable() bool { return w.isClosed() || w.lagged() }

// lagged reports whether the watcher is a loop over Stream that has lagged.
func (w *watcher[K]) lagged() bool { return w.stream != nil && w.stream.overflowed.Load() != 0 }

// enqueue subscribes the streams of a, so that they will take rec, which c holds or held,
// and older records that are not published; counts them; and then forgets what no
// stream needs.
//
// A was loaded after rec took effect, so it has every stream that had joined
// before. A record that is not published after a was loaded was stored by a call that
// had not returned when the streams of a joined.
func (rt streams[K]) enqueue(a *subscribers[K], k hkey[K], c *cell[K], rec *record) {
	var (
		oldest *record
		found  bool // a stream is told of k
		closed bool // c has left the table, and so rec is published
	)
	watchersOf(a).each(k, func(w *watcher[K]) {
		if w.stream == nil || w.lagged() || closed {
			return
		}
		if !found {
			oldest, found = rt.oldestUnpublished(rec), true
		}
		if oldest == nil {
			return
		}
		s, isNew := w.subscribe(c, k, oldest.version()-1)
		if closed = s == nil; closed {
			return
		}
		s.cursor().enqueue(rec.version())
		if isNew && !s.notify() { // or the watcher would not know of it if the caller stalls
			s.clear()
		}
	})
	switch {
	case !found:
		rt.markPublished(rec)
		rt.history(rec).prev.Store(nil)
	case oldest != nil && !closed:
		rt.markPublished(rec)
		if rt.first(c, rec) == rec.version() {
			rt.history(rec).prev.Store(nil)
		}
	}
}

// enqueue counts the changes up to version, unless they were. It is retried only
// when another has counted some of them.
func (c *cursor[K]) enqueue(version Version) {
	for {
		old := c.enqueued.Load()
		if old >= uint64(version) {
			return
		}
		if c.enqueued.CompareAndSwap(old, uint64(version)) {
			c.watcher.add(int64(uint64(version) - old))
			return
		}
	}
}

// add adds n to what waits for the stream, which lags if that is too much.
func (w *watcher[K]) add(n int64) {
	if w.stream.backlog.Add(n) > w.stream.limit {
		w.lag()
	}
}

// lag ends a loop that has lagged. Each goroutine that finds it lagged does all of
// this, and in this order, since another may have stalled halfway: from the first step
// on the loop ends when it is awake, and a loop that tellers skip has been woken.
func (w *watcher[K]) lag() {
	if !w.lagged() {
		w.stream.overflowed.Store(1)
	}
	w.waker.Wake()
	w.leave()
}

// first returns the first version in the chain of rec, which c holds or held,
// that some stream may have to take: rec's if none needs what is older. It removes
// the subscriptions of streams that have lagged.
func (rt streams[K]) first(c *cell[K], rec *record) Version {
	least := uint64(math.MaxUint64)
	subscriptionsOf(c.meta.Load()).each(func(s *subscription[K]) {
		switch {
		case s.watcher.stream == nil:
		case s.watcher.unreachable():
			s.unsubscribe()
		default:
			least = min(least, s.cursor().pos.Load())
		}
	})
	if least >= uint64(rec.version()) {
		return rec.version()
	}
	return Version(least + 1)
}

// gather takes what is new of the key of p from the chain of its records. It
// takes all up to what the table's cell holds, and stops there, so that a key
// that keeps changing does not keep others waiting. Copies copies the records of the
// chain of rec that are newer than since, and returns their number.
//
// As with look, only what is in the table counts; a dead cell stays until all
// streams with a cursor there have taken its last record.
func (w *watcher[K]) gather(p *notification[K], copies func(k hkey[K], rec *record, since Version) int) {
	rt, f, s := w.streams(), w.stream, p.subscription.cursor()
	c := rt.cells.Load(s.key)
	if c == nil || !subscriptionsOf(c.meta.Load()).has(&s.subscription) {
		s.clear() // w may have lagged, and the call that unsubscribed it may have left the rest to this one
		return
	}
	w.keep(&s.subscription)
	rec := rt.held(c)
	if rec == nil {
		p.stage.Store(done)
		return
	}
	since := Version(s.pos.Load())
	if last := rec.version(); last > since {
		n := copies(c.named(s.key.Hash), rec, since)
		s.enqueue(last)
		if skipped := int64(last-since) - int64(n); skipped != 0 {
			f.backlog.Add(-skipped) // had been forgotten before w came
		}
		s.pos.Store(uint64(last))
		rt.trim(c, rec, since)
	}
	p.stage.Store(done)
	if rec.dead() {
		rt.tidy(s.key, w.number)
	}
}

// transitions has the methods of streams that every change of a key needs. Like a
// constrainer it is an interface that New alone puts something into.
type transitions[K comparable] interface {
	// tombstone returns a dead record to store in place of a live one. It has no value.
	tombstone(snapshotting bool) *record
	// follow makes rec, which others have not seen, come after old in the chain of a
	// key.
	follow(rec, old *record)
	// enqueue is called by each operation that has stored rec in c, a cell of k, and by
	// a creator that is about to replace c where it is dead. Several calls do no harm;
	// once rec is published a call does nothing.
	enqueue(a *subscribers[K], k hkey[K], c *cell[K], rec *record)
	published(rec *record) bool
	// alone reports whether rec keeps nothing that it has replaced.
	alone(rec *record) bool
	// end makes sure that c, which is dead and published, takes no subscription any
	// more, and returns its metadata.
	end(c *cell[K]) *cellMeta[K]
	// close does so if no subscription needs c, and reports whether none does.
	close(c *cell[K], dead *record) bool
}

// streams is the root as a transitions, with Config.Transitions.
type streams[K comparable] struct {
	*root[K]

	// shut is the metadata of a cell that takes no subscription any more and has nothing
	// else.
	shut *cellMeta[K]
}

func newStreams[K comparable](rt *root[K]) streams[K] {
	return streams[K]{rt, &cellMeta[K]{gone: true}}
}

// streams returns those of a loop over Stream.
func (w *watcher[K]) streams() streams[K] { return w.root.transitions.(streams[K]) }

func (rt streams[K]) tombstone(snapshotting bool) *record {
	if snapshotting {
		return withDate(&new(datedLinkedRecord).record)
	}
	return &new(linkedRecord).record
}

func (rt streams[K]) follow(rec, old *record) { rt.history(rec).prev.Store(old) }

func (rt streams[K]) published(rec *record) bool { return rt.history(rec).published.Load() != 0 }

func (rt streams[K]) alone(rec *record) bool { return rt.history(rec).prev.Load() == nil }

// end is retried only when a subscription has come or gone.
func (rt streams[K]) end(c *cell[K]) *cellMeta[K] {
	for {
		now := c.meta.Load()
		if c.meta.CompareAndSwap(now, ended(now)) {
			return now
		}
	}
}

// close is retried only when a subscription has come or gone.
func (rt streams[K]) close(c *cell[K], dead *record) bool {
	for {
		now := c.meta.Load()
		switch {
		case now == nil:
			if c.meta.CompareAndSwap(nil, rt.shut) {
				return true
			}
		case now.gone:
			return true
		case now.subscriptions != nil && now.subscriptions.needed(dead, 0):
			return false
		case c.meta.CompareAndSwap(now, ended(now)):
			return true
		}
	}
}

// ended returns a copy of m, which may be nil, that takes no subscription any more: its
// cell leaves the table.
func ended[K comparable](m *cellMeta[K]) *cellMeta[K] {
	next := m.now()
	next.gone = true
	return &next
}

// oldestUnpublished returns the oldest of rec and what it replaced that is not
// published, or nil if rec is. There are no more of these than calls that have stored a
// record and not yet told of it.
func (rt streams[K]) oldestUnpublished(rec *record) (oldest *record) {
	for rec != nil {
		l := rt.history(rec)
		if l.published.Load() != 0 {
			break
		}
		oldest, rec = rec, l.prev.Load()
	}
	return oldest
}

// markPublished marks older records as published, and then rec. If rec has no prev, then
// either there is nothing older, or another call has marked all of it.
func (rt streams[K]) markPublished(rec *record) {
	l := rt.history(rec)
	if l.published.Load() != 0 {
		return
	}
	if old := l.prev.Load(); old != nil {
		rt.markPublished(old)
	}
	l.published.Store(1)
}

// trim forgets what no stream needs of the chain of rec, which c holds or held,
// unless some stream needs what comes right after version since.
//
// What is older than a record is forgotten only if the record is found published, and
// after that no stream is found that needs more: every stream that had joined before
// the record took effect is subscribed by then, and one that is subscribed later needs
// nothing older. Until the record is published, a teller may be about to subscribe one.
func (rt streams[K]) trim(c *cell[K], rec *record, since Version) {
	first := rt.first(c, rec)
	if first <= since {
		return
	}
	for rec != nil && rec.version() > first {
		rec = rt.history(rec).prev.Load()
	}
	if rec == nil {
		return
	}
	l := rt.history(rec)
	if l.prev.Load() != nil && l.published.Load() != 0 && rt.first(c, rec) == rec.version() {
		l.prev.Store(nil)
	}
}

// relax forgets what no stream needs of k any more.
func (rt streams[K]) relax(k hkey[K]) {
	if c := rt.cells.Load(k); c != nil {
		if rec := rt.held(c); rec != nil {
			rt.trim(c, rec, 0)
		}
	}
}
