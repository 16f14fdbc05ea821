package oncecache

import (
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
)

// spare is a phase for a creation that no other call meets: it has no flight. One creation
// after another uses it, so that most creations allocate none, and count themselves in words
// of their own. A call that meets such a creation gives it a phase with a flight first; see
// entry.joinable.
//
// An entry shows a spare once, from its insertion until the first change of its state, and its
// creator uses that spare for longer. So a CAS that takes an entry from a spare to something
// else proves that all words of the spare were its creator's until then.
type spare[K comparable] struct {
	// owner is 0, or 1 plus the token of the goroutine that uses the spare, which takes it by
	// CAS and puts it back by a store. Meanwhile it counts as wholeCreation in the tally.
	owner atomics.Uint64

	since, created atomics.Gauge // see flight.since, accounting.created; the owner writes them

	// cells is how many entries were inserted, less those that were removed, by calls on
	// processors near by, but for those that the table has counted itself. It has nothing to do
	// with the owner.
	cells atomics.Int64

	// shown is what the entry shows. It never changes. It comes last, because the allocator puts
	// more than eight spares 8 bytes behind the beginning of a line: so what is on the next line,
	// with the words of the next spare, is no word.
	shown phase[K]
}

// noFlight is by in the flight that spares show, in which there is nothing else. Tokens are even.
const noFlight = 1

// wholeCreation is what a creation counts in the tally while its function runs.
const wholeCreation = oneCreating | onePending

// addSpares gives a new cache spares: more than there are processors, so that calls on several
// seldom meet, and few enough to look at all of them.
func (r *root[K]) addSpares() {
	r.spares = make([]spare[K], atomics.Limit(min(2*atomics.Stripes(), 64), 1))
	none := &flight{by: noFlight}
	for i := range r.spares {
		r.spares[i].shown.flight = none
	}
	r.entries.Spread(len(r.spares), func(uint64) *atomics.Int64 { return &r.nearest().cells })
}

// nearest returns the spare that the calling goroutine should use now, if it is free.
func (r *root[K]) nearest() *spare[K] { return &r.spares[atomics.Stripe(len(r.spares))] }

// takeSpare returns the phase of a spare that belongs to the caller now, or nil if none is free,
// or the cache is closed: Close would wait until its caller puts it back.
func (r *root[K]) takeSpare() *phase[K] {
	if len(r.spares) == 0 || r.before != nil {
		return nil
	}
	first := atomics.Stripe(len(r.spares))
	for i := range r.spares {
		s := &r.spares[(first+i)&(len(r.spares)-1)]
		if s.owner.Load() == 0 && s.owner.CompareAndSwap(0, uint64(goid.Token())|1) {
			s.since.Store(int64(r.now()))
			return &s.shown
		}
	}
	return nil
}

// putBack is the opposite. What Close waits for may have been in the spare, or have seemed to be.
func (r *root[K]) putBack(s *spare[K]) {
	s.owner.Store(0)
	if tally(r.accounting.work.Load()).closed() {
		r.accounting.idle.Wake()
	}
}

// hasSpare reports whether p is that of a creation which has a spare.
func (p *phase[K]) hasSpare() bool { return p != nil && p.flight != nil && p.flight.by == noFlight }

// spare returns the spare that p is part of, or nil.
//
// Safety: only addSpares makes phases with noFlight, each in a spare.
func (p *phase[K]) spare() *spare[K] {
	if !p.hasSpare() {
		return nil
	}
	return (*spare[K])(unsafe.Add(unsafe.Pointer(p), -int(unsafe.Offsetof(spare[K]{}.shown))))
}

// began returns when the creation of p began.
func (p *phase[K]) began() time.Duration {
	if s := p.spare(); s != nil {
		return time.Duration(s.since.Load())
	}
	return p.since
}

// joinable returns the state of e. A creation that has a spare first gets a flight, which
// others can join and end.
func (e *entry[K]) joinable() *phase[K] {
	p := e.state.Load()
	if p.hasSpare() {
		p = e.addFlight(p)
	}
	return p
}

// addFlight is the rest of joinable, where e has shown p.
//
//go:noinline
func (e *entry[K]) addFlight(p *phase[K]) *phase[K] {
	own := newCreating[K]()
	own.by, own.since = uintptr(p.spare().owner.Load()&^1), p.began()
	if e.state.CompareAndSwap(p, own) {
		return own
	}
	return e.state.Load() // others have been faster
}

// flightAdded returns the phase that another call has given to the creation of e, which had a
// spare, or gives it one. The caller is the creator, and its creation has not ended otherwise.
func (e *entry[K]) flightAdded() *phase[K] {
	p := e.joinable()
	if p.final != nil {
		p = p.final.was
	}
	return p
}

// spared returns how many creations have a spare.
func (r *root[K]) spared() (n int) {
	for i := range r.spares {
		if r.spares[i].owner.Load() != 0 {
			n++
		}
	}
	return n
}

// begin counts a creation in phase p whose entry has been inserted, and reports whether the
// cache is closed. What says that is what Close writes before it looks at the spares.
func (r *root[K]) begin(p *phase[K], what tally) (closed bool) {
	if p.hasSpare() {
		if what -= wholeCreation; what == 0 {
			return tally(r.accounting.work.Load()).closed()
		}
	}
	return r.accounting.begin(what)
}

// finish takes what is over off the counts of a creation, and puts its spare back, if it has one.
//
// What stays is counted in work before that: see root.pending.
func (n *creation[K]) finish(over tally) {
	if n.spare == nil {
		n.root.accounting.finish(over)
		return
	}
	if stays := wholeCreation - over; stays != 0 {
		n.root.accounting.work.Add(uint64(stays))
	}
	n.root.putBack(n.spare)
}

// count counts a call of the function.
func (n *creation[K]) count(how *result) {
	if n.spare != nil && how.err == nil {
		n.spare.created.Add(1)
	} else {
		n.root.accounting.count(how.err, how.cut)
	}
}

// creating returns how many entries in the table have no value.
func (r *root[K]) creating() int { return tally(r.accounting.work.Load()).creating() + r.spared() }

// size returns how many entries the table has.
func (r *root[K]) size() int {
	if r.before != nil {
		return 0 // the spares count for the table of that
	}
	n := r.entries.Counted()
	for i := range r.spares {
		n += int(r.spares[i].cells.Load())
	}
	return n
}

// created returns how many functions have returned a value.
func (r *root[K]) created() int64 {
	n := r.accounting.created.Load()
	for i := range r.spares {
		n += r.spares[i].created.Load()
	}
	return n
}
