package shardedregistry

import (
	"context"
	"errors"
	"iter"
	"slices"
)

// Change is an event with its revision, by which a loop over WatchFrom can go on
// after it.
type Change[K comparable, V any] struct {
	Event[K, V]
	Revision Revision

	// Bookmark says that there is no event: a loop with filters has read as far as
	// Revision, and may go on after it.
	Bookmark bool
}

// WatchFrom returns an iterator over all changes since a revision, and those from now
// on, in a registry that was made with Config.History. Where a loop over Watch skips what
// a key held only for a while, a loop over WatchFrom yields it. It is also for a caller that
// has lost its loop, or that begins with a snapshot: the revision is that of the last change
// that it has seen, [Registry.Revision], or [Snapshot.Revision]. With 0 the loop begins with
// the oldest change that is remembered.
//
// Every change is yielded once, in the order of revisions. Those of one key have consecutive
// versions from its creation to its deletion. A change is yielded when its call has returned,
// or before. After a snapshot the loop may begin with changes that it contains: skip those
// whose version is not above what the snapshot has for the key.
//
// With filters, the loop yields the changes of the keys that one of them accepts. So that its
// caller need not go back far, it yields a bookmark after it has skipped an eighth of
// Config.History.
//
// When changes that the loop has not come to are forgotten, it yields a zero
// Change with a [*CompactedError], which matches [ErrCompacted], and ends. The
// caller then takes a new snapshot. If it has to do that again and again,
// Config.History is too small for the changes that come meanwhile. A revision
// that the registry has not reached, or one of another registry, gives an
// [*UnknownRevisionError], which matches [ErrUnknownRevision].
//
// No operation waits for a loop. Each change of any key wakes it.
//
//	for {
//		state := plans.Snapshot()
//		show(state)
//		for change, err := range plans.WatchFrom(ctx, state.Revision()) {
//			if err != nil {
//				break // take a new snapshot
//			}
//			if e, ok := state.Lookup(change.Key); !ok || change.Version > e.Version {
//				apply(change) // else the snapshot has it
//			}
//		}
//		if ctx.Err() != nil {
//			return
//		}
//	}
//
// WatchFrom panics if ctx is nil, or if the registry is without Config.History.
//
// WatchFrom is wait-free; the loop is blocking: it waits for changes or ctx. It
// takes effect when the loop begins; each change has taken effect before it is yielded.
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
	root     *root[K, V]
	log      *changelog[K, V]
	interest interest[K]
	at       Revision // of the last change that it has read
	yielded  Revision // the last one that its caller knows
	begun    bool     // it has read what there was to begin with
}

func newRevisionReader[K comparable, V any](rt *root[K, V], after Revision, in interest[K]) *revisionReader[K, V] {
	rr := &revisionReader[K, V]{root: rt, log: rt.history, interest: in, at: after, begun: after != 0}
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
		change, err := rr.log.after(rr.root, rr.at)
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
