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
// Revisions follow the order of changes of one key. A change that its key had
// left behind when it was to be remembered has none.
type Revision uint64

// Revision returns the revision of the last change. A loop over WatchFrom that
// begins there yields all that changes from now on; a change whose call has
// returned is before it. Without Config.History it is 0.
//
// Revision is wait-free. It takes effect when the number of changes is read.
func (r *further[K, V]) Revision() Revision {
	if rt := r.root.Load(); rt != nil && rt.history != nil {
		return rt.history.revision() // LP(Revision): last is read
	}
	return 0
}

const (
	revisionBits = 48 // that count changes
	maxHistory   = 1 << 24
)

// rememberer has the methods of a changelog that all programs link which make a registry.
// Like a constrainer it is an interface that New alone puts something into.
type rememberer[K comparable] interface {
	// remember appends the change of k that stored rec in c, unless k holds something
	// else by now.
	remember(rt *root[K], k hkey[K], c *cell[K], rec *record)
	// revision returns that of the last change.
	revision() Revision
}

// changelog has the last changes of a registry, by their revisions: those of a key in the
// order of its versions, and the last of each key when no operation is in progress, as
// long as it is remembered.
type changelog[K comparable] struct {
	start Revision // that no change has, before the first

	// last is the revision of the last change, or the one before, whose successor is in
	// its slot. Whoever finds that moves it on by CAS.
	last atomics.Uint64

	// slots has the change of revision r at r modulo its length, a power of two, until a
	// later one replaces it, by CAS. Nil is before all.
	slots []atomics.Pointer[remembered[K]]

	waker atomics.Waker // what loops over WatchFrom sleep on
}

// remembered is a change. It is immutable once it is in its slot.
type remembered[K comparable] struct {
	key      hkey[K]
	word     word // of the record that was stored
	revision Revision
}

// newChangelog returns an empty one of n changes, n a power of two.
func newChangelog[K comparable](n int) *changelog[K] {
	l := &changelog[K]{
		start: Revision(1+rand.Uint64N(1<<(63-revisionBits)-1)) << revisionBits,
		slots: make([]atomics.Pointer[remembered[K]], n),
	}
	l.last.Store(uint64(l.start))
	return l
}

func (l *changelog[K]) slot(r Revision) *atomics.Pointer[remembered[K]] {
	return &l.slots[uint64(r)%uint64(len(l.slots))]
}

func (l *changelog[K]) revision() Revision { return Revision(l.last.Load()) }

// remember is retried only when another change was appended.
//
// The key is looked at after last was read, and the slot after last is free until the CAS.
// So if a later change of the key is there before this one, its record was stored before
// the look, which finds it, and this one is left out. The last change of a key is never
// left out.
func (l *changelog[K]) remember(rt *root[K], k hkey[K], c *cell[K], rec *record) {
	change := &remembered[K]{key: k, word: rec.word}
	for {
		last := l.last.Load()
		if !rt.holds(k, c, rec) {
			return
		}
		change.revision = Revision(last + 1)
		slot := l.slot(change.revision)
		old := slot.Load()
		free := old == nil || old.revision < change.revision
		appended := free && slot.CompareAndSwap(old, change)
		l.last.CompareAndSwap(last, last+1)
		if appended {
			break
		}
	}
	l.waker.Wake()
}

// holds reports whether k holds rec, which an operation has stored in c. A dead record
// stays in c for ever, and a transaction that found it may put it in another cell.
func (rt *root[K]) holds(k hkey[K], c *cell[K], rec *record) bool {
	if rec.dead() {
		if c = rt.cells.Load(k); c == nil {
			return false // the call that has unlinked it has told of it
		}
	}
	return rt.resolved(c.rec.Load()) == rec
}

// oldest returns the revision before the oldest change that is remembered.
func (l *changelog[K]) oldest() Revision {
	return max(l.start, l.revision()-min(l.revision(), Revision(len(l.slots))))
}

// after returns the change after revision at, or nil if there is none yet.
func (l *changelog[K]) after(at Revision) (*remembered[K], error) {
	switch last := l.revision(); {
	case at < l.start || at > last:
		return nil, &UnknownRevisionError{at}
	case at == last:
		return nil, nil
	}
	change := l.slot(at + 1).Load()
	if change.revision != at+1 {
		l.last.CompareAndSwap(uint64(change.revision-1), uint64(change.revision)) // so that oldest counts it
		return nil, &CompactedError{at, l.oldest()}
	}
	return change, nil
}

// sleep returns when there may be a change after at, or ctx is done.
func (l *changelog[K]) sleep(ctx context.Context, at Revision) {
	e := l.waker.Event()
	if l.revision() == at {
		_ = e.WaitContext(ctx) // the loop asks ctx
	}
}

// current returns what its key holds, if that is still what change tells of, or was
// deleted since change told of its deletion: a nil record then.
func (rt *root[K]) current(change *remembered[K]) (rec *record, ok bool) {
	c := rt.cells.Load(change.key)
	if c == nil {
		return nil, change.word.dead()
	}
	if rec = rt.held(c); rec == nil {
		return nil, change.word.dead()
	}
	return rec, rec.version() == change.word.version()
}
