package shardedregistry

import (
	"math"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// flow is what a watcher has besides if it is a loop over Stream.
type flow struct {
	limit int64

	// behind is the number of changes that were told and have not been yielded,
	// but for the calls in progress. Who tells adds, the loop subtracts.
	behind atomics.Int64

	// lost becomes 1 when behind was above limit. Who finds that sets it; all who
	// tell read it, and the loop, which then ends.
	lost atomics.Uint32
}

// perch is a seat of a loop over Stream.
type perch[K comparable] struct {
	seat[K]

	// pos is the last version that the loop has taken from the chain, or the one
	// before the first that it will take. The loop alone changes it, and it
	// grows. All who forget old records read it.
	pos atomics.Uint64

	// heard is the last version that the flow's behind counts. It grows, by CAS,
	// and who has moved it adds the difference to behind. So the heard of a
	// stream's perches less their pos are what was told and not taken.
	heard atomics.Uint64
}

// newPerch returns one from which w will take what is newer than pos.
func newPerch[K comparable](w *watcher[K], k hkey[K], pos Version) *perch[K] {
	p := &perch[K]{seat: seat[K]{watcher: w, key: k}}
	p.pos.Store(uint64(pos))
	p.heard.Store(uint64(pos))
	return p
}

// perch returns the perch of which s is a part. It is called for seats of loops
// over Stream only.
func (s *seat[K]) perch() *perch[K] {
	// Safety: the seats of watchers that have a flow are made by newSeat alone, as
	// the first field of one.
	return (*perch[K])(unsafe.Pointer(s))
}

// deaf reports whether the watcher takes no slip any more.
func (w *watcher[K]) deaf() bool { return w.left() || w.lagged() }

// lagged reports whether the watcher is a loop over Stream that has lagged.
func (w *watcher[K]) lagged() bool { return w.flow != nil && w.flow.lost.Load() != 0 }

// needed reports whether somebody who sits there has yet to see dead.
func (d *side[K]) needed(dead *record) bool {
	for _, s := range d.seats {
		if s.watcher.flow != nil {
			if Version(s.perch().pos.Load()) < dead.version() && !s.watcher.deaf() {
				return true
			}
		} else if p := s.slip.Load(); p != nil && p.stage.Load() != done {
			return true
		}
	}
	return false
}

// inform is called by everyone who has stored rec in c, a cell of k, and by who is
// about to replace c where it is dead. It seats the streams of a, so that they
// will take rec and what is older and not told; counts; and then forgets what no
// stream needs. It may be done several times, by anybody, and is done by nobody
// once rec is told.
//
// A was loaded after rec took effect, so it has every stream that had joined
// before. What is not told after a was loaded was changed by calls that had not
// returned when the streams of a joined.
func (o *root[K]) inform(a *audience[K], k hkey[K], c *cell[K], rec *record) {
	if a == nil || len(a.watchers) == 0 {
		o.hasTold(rec)
		o.links(rec).prev.Store(nil)
		return
	}
	oldest := o.untold(rec)
	if oldest == nil {
		return
	}
	for i, w := range a.watchers {
		if w.flow == nil || w.lagged() || w.skips(k) {
			continue
		}
		s, isNew := c.seat(k, w, i, oldest.version()-1)
		if s == nil {
			return // c has left the table, and so rec was told
		}
		s.perch().hear(rec.version())
		if isNew && !s.call() { // or the watcher would not know of it if the caller stalls
			o.clear(s)
		}
	}
	o.hasTold(rec)
	if o.first(c, rec) == rec.version() {
		o.links(rec).prev.Store(nil)
	}
}

// hear counts the changes up to version, unless they were. It is retried only
// when another has counted some of them.
func (s *perch[K]) hear(version Version) {
	for {
		old := s.heard.Load()
		if old >= uint64(version) {
			return
		}
		if s.heard.CompareAndSwap(old, uint64(version)) {
			s.watcher.add(int64(uint64(version) - old))
			return
		}
	}
}

// add adds n to what waits for the stream, which lags if that is too much.
func (w *watcher[K]) add(n int64) {
	if w.flow.behind.Add(n) > w.flow.limit {
		w.lag()
	}
}

// lag ends a loop that has lagged. Who finds that does all of it, and in this order,
// since another who has found it may have stalled: from the first step on the loop
// ends when it is awake, and who is told nothing any more has been woken.
func (w *watcher[K]) lag() {
	if !w.lagged() {
		w.flow.lost.Store(1)
	}
	w.wake()
	w.root.attend(func(a audience[K]) audience[K] { return a.without(w) })
}

// first returns the first version in the chain of rec, which c holds or held,
// that some stream may have to take: rec's if none needs what is older. It removes
// the seats of streams that have lagged.
func (o *root[K]) first(c *cell[K], rec *record) Version {
	now, least := c.side.Load(), uint64(math.MaxUint64)
	if now != nil {
		for _, s := range now.seats {
			switch {
			case s.watcher.flow == nil:
			case s.watcher.deaf():
				o.unseat(s)
			default:
				least = min(least, s.perch().pos.Load())
			}
		}
	}
	if least >= uint64(rec.version()) {
		return rec.version()
	}
	return Version(least + 1)
}

// gather takes what is new of the key of p from the chain of its records. It
// takes all up to what the table's cell holds, and stops there, so that a key
// that keeps changing does not keep others waiting. It is copies that takes, of the
// chain of rec what is newer than since, and returns how many records that were.
//
// As with look, only what is in the table counts; a dead cell stays until all
// streams that sit there have taken its last record.
func (w *watcher[K]) gather(p *slip[K], copies func(k hkey[K], rec *record, since Version) int) {
	o, f, s := w.root, w.flow, p.seat.perch()
	c := o.cells.Load(s.key)
	if c == nil || !c.side.Load().has(&s.seat) {
		o.clear(&s.seat) // w may have lagged, and who has unseated it not be the last
		return
	}
	w.keep(&s.seat)
	rec := c.rec.Load()
	o.date(rec)
	since := Version(s.pos.Load())
	if last := rec.version(); last > since {
		n := copies(c.named(s.key.Hash), rec, since)
		s.hear(last)
		if skipped := int64(last-since) - int64(n); skipped != 0 {
			f.behind.Add(-skipped) // had been forgotten before w came
		}
		s.pos.Store(uint64(last))
		o.trim(c, rec, since)
	}
	p.stage.Store(done)
	if rec.dead() {
		o.tidy(s.key)
	}
}
