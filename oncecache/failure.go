package oncecache

import (
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A failed creation leaves nothing behind, unless Config.ErrorTTL says how long
// its error answers for it. Then the entry stays in the table, without a value,
// and whoever finds it there after that time takes it out. Config.CreateTimeout
// makes a creation fail whose function has not returned.

// forever is a time that never comes.
const forever = time.Duration(math.MaxInt64)

// now returns the time since the cache was made.
func (r *root[K]) now() time.Duration { return atomics.Since(r.accounting.epoch) }

// keeps returns until when the error is kept that a create function of k has
// returned. It runs user code.
func (r *root[K]) keeps(k K, err error) (until time.Duration) {
	if err == nil || r.kept == nil {
		return 0
	}
	return r.kept.keptUntil(r, k, err)
}

// kept reports whether p is that of a failure that stays in the table until
// somebody takes it out, who then also takes it off the tally.
func (p *phase[K]) kept() bool { return p != nil && p.final != nil && p.final.lasts != nil }

// current returns e, which was found in the table, or nil if it was nil or is a
// failure that is over, or is being evicted; then it is out of the table.
func (r *root[K]) current(e *entry[K]) *entry[K] {
	if e == nil {
		return nil
	}
	p := e.state.Load()
	switch {
	case p == nil:
		return e
	case p.mark != nil && p.mark.isDoomed():
		if _, closes := r.evict(e); closes {
			r.close.closeOneLater(r, e)
		}
		return nil
	case p.final == nil || p.final.err == nil || p.kept() && (p.final.lasts.until == forever || r.now() < p.final.lasts.until):
		return e
	}
	r.expire(e)
	return nil
}

// expire takes a failure out of the table, if it is still there.
func (r *root[K]) expire(e *entry[K]) (removed bool) {
	if removed = r.remove(e); removed {
		r.left(e.state.Load())
	}
	return removed
}

// left follows the removal of an entry from the table by its caller, who has
// then read p as its state. A failure that was kept counts as being created
// until then.
func (r *root[K]) left(p *phase[K]) {
	if p.kept() {
		r.kept.dropError(p.final.lasts)
		r.accounting.finish(oneCreating)
	}
	if p != nil && p.mark != nil {
		r.sieve.takePlace(p.mark)
	}
}

// watch starts the timer of a creation.
func (n *creation[K]) watch() {
	if r := n.root; r.timed != nil {
		n.stop = r.timed(r, n.entry, n.phase)
	}
}

// timed is root.timed. It is only in programs that call New.
func timed[K comparable](r *root[K], e *entry[K], p *phase[K]) (stop func()) {
	return atomics.After(r.createTimeout, func() { r.overdue(e, p) })
}

// overdue ends the flight of p, made with e, in ErrCreateTimeout. The function
// goes on, and what it makes is nobody's.
//
// The entry may be in the table for a moment when its failure is known already.
// Whoever finds it there helps to take it out; see current.
func (r *root[K]) overdue(e *entry[K], p *phase[K]) {
	failed := newPhase(finalState[K]{err: ErrCreateTimeout})
	r.backlog.note(e, p.flight)
	if e.state.CompareAndSwap(p, failed) { // LP(GetOrCreate): timed out
		r.remove(e)
		r.accounting.finish(oneCreating)
	} else if m := e.state.Load(); m == nil || m.final == nil || m.final.to == nil || !m.final.to.state.CompareAndSwap(p, failed) {
		return // it has ended
	}
	r.accounting.timedOut.Add(1)
	p.end()
	p.callOff(ErrCreateTimeout)
}
