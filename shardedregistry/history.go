package shardedregistry

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Revision counts the changes of all keys of a registry with Config.History, those of one key in
// their order. The zero Revision is that of no change. A registry begins to count at a random
// multiple of 2^48, by which it recognises revisions of others, or from before a restart.
type Revision uint64

// Revision returns the revision of the last change. A loop over WatchFrom that
// begins there yields all that changes from now on; a change whose call has
// returned is before it. Without Config.History it is 0.
//
// Revision is wait-free. It takes effect when the number of changes is read.
func (r *Registry[K, V]) Revision() Revision {
	if rt := r.root.Load(); rt != nil && rt.history != nil {
		return rt.history.revision() // LP(Revision): last is read
	}
	return 0
}

const (
	revisionBits = 48 // that count changes
	maxHistory   = 1 << 24
)

// changelog has the last changes of a registry, by their revisions: each change of a key
// whose call has returned once, and those of one key in the order of its versions.
type changelog[K comparable, V any] struct {
	start Revision // that no change has, before the first

	// last is the revision of the last change, or the one before, whose successor is in
	// its slot. Whoever finds that finishes it: gives the record its revision, and then
	// moves last on, both by CAS.
	last atomics.Uint64

	// slots has the change of revision r at r modulo its length, a power of two, until a
	// later one replaces it, by CAS. Nil is before all.
	slots []atomics.Pointer[remembered[K, V]]

	waker atomics.Waker // what loops over WatchFrom sleep on
}

// remembered is a change. It is immutable once it is in its slot.
type remembered[K comparable, V any] struct {
	key      hkey[K]
	rec      *record[K, V] // that was stored
	revision Revision
}

// newChangelog returns an empty one of n changes, n a power of two.
func newChangelog[K comparable, V any](n int) *changelog[K, V] {
	l := &changelog[K, V]{
		start: Revision(1+rand.Uint64N(1<<(63-revisionBits)-1)) << revisionBits,
		slots: make([]atomics.Pointer[remembered[K, V]], n),
	}
	l.last.Store(uint64(l.start))
	return l
}

func (l *changelog[K, V]) slot(r Revision) *atomics.Pointer[remembered[K, V]] {
	return &l.slots[uint64(r)%uint64(len(l.slots))]
}

func (l *changelog[K, V]) revision() Revision { return Revision(l.last.Load()) }

// remember appends a change once, however many callers do: whoever has read last has found
// the changes up to there finished, and then finds whether this one is among them. All wake
// the loops, as another caller may have stalled before. It is retried only when another change
// was appended.
func (l *changelog[K, V]) remember(k hkey[K], rec *record[K, V]) {
	for mine := (&remembered[K, V]{key: k, rec: rec}); ; {
		last := l.last.Load()
		if rec.ext().revision.Load() != 0 {
			break
		}
		mine.revision = Revision(last + 1)
		slot := l.slot(mine.revision)
		switch there := slot.Load(); {
		case there != nil && there.revision == mine.revision:
			l.finish(there)
			continue
		case there != nil && there.revision > mine.revision || !slot.CompareAndSwap(there, mine):
			continue
		}
		l.finish(mine)
		break
	}
	l.waker.Wake()
}

// finish makes a change, which is in its slot, the last one, unless it was.
func (l *changelog[K, V]) finish(change *remembered[K, V]) {
	change.rec.ext().revision.CompareAndSwap(0, uint64(change.revision))
	l.last.CompareAndSwap(uint64(change.revision-1), uint64(change.revision))
}

// oldest returns the revision before the oldest change that is remembered. A change that is in its slot, and
// is not the last one yet, has replaced another already: oldest finishes it. It is retried only then, or when
// another change was appended.
func (l *changelog[K, V]) oldest() Revision {
	for {
		last := l.revision()
		next := l.slot(last + 1).Load()
		if next == nil || next.revision <= last {
			return max(l.start, last-min(last, Revision(len(l.slots))))
		}
		l.finish(next)
	}
}

// after returns the change after revision at, or nil if there is none yet.
func (l *changelog[K, V]) after(at Revision) (*remembered[K, V], error) {
	switch last := l.revision(); {
	case at < l.start || at > last:
		return nil, &UnknownRevisionError{at}
	case at == last:
		return nil, nil
	}
	change := l.slot(at + 1).Load()
	if change.revision != at+1 {
		return nil, &CompactedError{at, l.oldest()}
	}
	return change, nil
}

// sleep returns when there may be a change after at, or ctx is done.
func (l *changelog[K, V]) sleep(ctx context.Context, at Revision) {
	e := l.waker.Event()
	if l.revision() == at {
		_ = e.WaitContext(ctx) // the loop asks ctx
	}
}

// Change is an event with its revision.
type Change[K comparable, V any] struct {
	Event[K, V]
	Revision Revision

	// Bookmark says that there is no event: a loop with filters has read as far as
	// Revision, and may go on after it.
	Bookmark bool
}

// WatchFrom returns an iterator over all changes after a revision: that of the last change that the
// caller has seen, [Registry.Revision], or [Snapshot.Revision]. With 0 the loop begins with the
// oldest change that is remembered.
//
// Every change is yielded once, in the order of revisions, when its call has returned or before.
// Those of one key have consecutive versions from its creation to its deletion. After a snapshot,
// skip changes that it contains, whose versions are not above what it has.
//
// If changes that the loop has not reached are forgotten, it yields a zero Change with a
// [*CompactedError] and ends: take a new snapshot. A revision that the registry has not reached, or
// one of another registry, gives an [*UnknownRevisionError].
//
// With filters, the loop yields the changes of the keys that one of them accepts, and a bookmark
// after it has skipped an eighth of Config.History. Each change of any key wakes it.
//
// WatchFrom panics if ctx is nil, or if the registry is without Config.History.
//
// WatchFrom is wait-free; the loop is blocking: it waits for changes or ctx. It takes effect when
// the loop begins; each change has taken effect before it is yielded.
func (r *Registry[K, V]) WatchFrom(ctx context.Context, after Revision, filters ...Filter[K]) iter.Seq2[Change[K, V], error] {
	rt := r.root.Load()
	switch {
	case ctx == nil:
		panic("shardedregistry: WatchFrom called with a nil context")
	case rt == nil || rt.history == nil:
		panic("shardedregistry: WatchFrom without Config.History")
	}
	filters = slices.Clone(filters)
	return func(yield func(Change[K, V], error) bool) {
		rr := newRevisionReader(rt, after, interestOf(rt, filters))
		for ctx.Err() == nil {
			change, err := rr.next()
			switch {
			case err != nil:
				yield(Change[K, V]{}, err)
				return
			case change == nil && rr.bookmarkDue():
				if !yield(Change[K, V]{Revision: rr.bookmark(), Bookmark: true}, nil) {
					return
				}
			case change == nil:
				rr.log.sleep(ctx, rr.at)
			case !yield(change.event(), nil):
				return
			}
		}
	}
}

// event returns a change as users get it.
func (c *remembered[K, V]) event() Change[K, V] {
	return Change[K, V]{Event: c.rec.event(c.key), Revision: c.revision}
}

// revisionReader is a loop over WatchFrom. It belongs to the loop's goroutine.
type revisionReader[K comparable, V any] struct {
	log      *changelog[K, V]
	interest interest[K]
	at       Revision // of the last change that it has read
	yielded  Revision // the last one that its caller knows
	begun    bool     // it has read what there was to begin with
}

func newRevisionReader[K comparable, V any](rt *root[K, V], after Revision, in interest[K]) *revisionReader[K, V] {
	rr := &revisionReader[K, V]{log: rt.history, interest: in, at: after, begun: after != 0}
	if !rr.begun {
		rr.at = rr.log.oldest()
	}
	rr.yielded = rr.at
	return rr
}

// bookmarkDue reports whether the caller should know that the loop has come this far.
func (rr *revisionReader[K, V]) bookmarkDue() bool {
	return rr.at-rr.yielded >= max(1, Revision(len(rr.log.slots)/8))
}

// bookmark returns the revision of a bookmark.
func (rr *revisionReader[K, V]) bookmark() Revision {
	rr.yielded = rr.at
	return rr.at
}

// next returns the next change to yield, or nil if there is none yet or a bookmark is due.
func (rr *revisionReader[K, V]) next() (*remembered[K, V], error) {
	for {
		change, err := rr.log.after(rr.at)
		if !rr.begun && errors.Is(err, ErrCompacted) { // before it has seen anything: it begins with what is left
			rr.at = rr.log.oldest()
			rr.yielded = rr.at
			continue
		}
		rr.begun = true
		if change == nil {
			return nil, err
		}
		rr.at = change.revision
		if rr.interest.has(change.key.Key) {
			rr.yielded = rr.at
			return change, nil
		}
		if rr.bookmarkDue() {
			return nil, nil
		}
	}
}
