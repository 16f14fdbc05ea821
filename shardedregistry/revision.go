package shardedregistry

import (
	"context"
	"math/rand/v2"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Revision counts the changes of all keys of a registry with Config.History. Each
// change that is remembered has the next revision. A registry begins to count at
// a random multiple of 2^48, so that it can tell a revision of its own from one
// of another registry, and from one from before a restart, with a chance of
// 32,766 in 32,767. The zero Revision is that of no change.
//
// The revisions of the changes of one key follow the order of these changes.
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
func (l *changelog[K, V]) remember(rt *root[K, V], k hkey[K], rec *record[K, V]) {
	for mine := (&remembered[K, V]{key: k, rec: rec}); ; {
		last := l.last.Load()
		if rec.ext.revision.Load() != 0 {
			break
		}
		mine.revision = Revision(last + 1)
		slot := l.slot(mine.revision)
		switch there := slot.Load(); {
		case there != nil && there.revision == mine.revision:
			l.finish(rt, there)
			continue
		case there != nil && there.revision > mine.revision || !slot.CompareAndSwap(there, mine):
			continue
		}
		l.finish(rt, mine)
		break
	}
	l.waker.Wake()
}

// finish makes a change, which is in its slot, the last one, unless it was.
func (l *changelog[K, V]) finish(rt *root[K, V], change *remembered[K, V]) {
	change.rec.ext.revision.CompareAndSwap(0, uint64(change.revision))
	l.last.CompareAndSwap(uint64(change.revision-1), uint64(change.revision))
}

// oldest returns the revision before the oldest change that is remembered.
func (l *changelog[K, V]) oldest() Revision {
	return max(l.start, l.revision()-min(l.revision(), Revision(len(l.slots))))
}

// after returns the change after revision at, or nil if there is none yet.
func (l *changelog[K, V]) after(rt *root[K, V], at Revision) (*remembered[K, V], error) {
	switch last := l.revision(); {
	case at < l.start || at > last:
		return nil, &UnknownRevisionError{at}
	case at == last:
		return nil, nil
	}
	change := l.slot(at + 1).Load()
	if change.revision != at+1 {
		l.finish(rt, change) // so that oldest counts it
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
