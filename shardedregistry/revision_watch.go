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
}

// WatchFrom returns an iterator over the keys that have changed since a revision
// and those that change from now on, in a registry that was made with
// Config.History. It is for a caller that has lost its loop, or that begins with
// a snapshot: the revision is that of the last change that it has seen, or
// [Snapshot.Revision]. With 0 the loop begins with the oldest change that is
// remembered.
//
// Every change with a later revision is yielded, in the order of revisions,
// unless its key holds something else by the time the loop gets to it. Then the
// later change follows. So the versions that a loop yields for a key increase,
// and what a key holds in the end, or its deletion, is never missed. A deletion
// may be yielded although the key has come and gone since, and twice with the
// same version if a transaction has used the key meanwhile. After a snapshot the
// loop may repeat what that contains, with the same versions.
//
// When changes that the loop has not come to are forgotten, it yields a zero
// Change with a [*CompactedError], which matches [ErrCompacted], and ends. The
// caller then takes a new snapshot. If it has to do that again and again,
// Config.History is too small for the changes that come meanwhile. A revision
// that the registry has not reached, or one of another registry, gives an
// [*UnknownRevisionError], which matches [ErrUnknownRevision].
//
// No operation waits for a loop. A loop keeps nothing of the keys that it
// yields. Each change of any key wakes it, and it skips those that its filters
// do not accept.
//
//	for {
//		state := plans.Snapshot()
//		show(state)
//		for change, err := range plans.WatchFrom(ctx, state.Revision()) {
//			if err != nil {
//				break // take a new snapshot
//			}
//			apply(change)
//		}
//		if ctx.Err() != nil {
//			return
//		}
//	}
//
// WatchFrom panics if ctx is nil, or if the registry is without Config.History.
//
// WatchFrom is wait-free; the loop is blocking: it waits for changes or ctx. It
// takes effect when the loop begins, and, for each change, when the key's record
// is read.
func (r *further[K, V]) WatchFrom(ctx context.Context, after Revision, filters ...Filter[K]) iter.Seq2[Change[K, V], error] {
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
			change, rec, err := rr.next()
			switch {
			case err != nil:
				yield(Change[K, V]{}, err)
				return
			case change == nil:
				rr.log.sleep(ctx, rr.at)
			case !yield(Change[K, V]{changeEvent[V](change, rec), change.revision}, nil):
				return
			}
		}
	}
}

// changeEvent returns the event of a change, whose key holds rec, or nothing if that is nil.
func changeEvent[V any, K comparable](change *remembered[K], rec *record) Event[K, V] {
	if rec == nil {
		return Event[K, V]{Key: change.key.Key, Version: change.word.version(), Deleted: true, Expired: change.word.expired()}
	}
	return eventOf[V](change.key, rec)
}

// revisionReader is a loop over WatchFrom. It belongs to the loop's goroutine.
type revisionReader[K comparable] struct {
	root     *root[K]
	log      *changelog[K]
	interest interest[K]
	at       Revision // of the last change that it has read
	begun    bool     // it has read what there was to begin with
}

func newRevisionReader[K comparable](rt *root[K], after Revision, in interest[K]) *revisionReader[K] {
	rr := &revisionReader[K]{root: rt, log: rt.history.(*changelog[K]), interest: in, at: after, begun: after != 0}
	if !rr.begun {
		rr.at = rr.log.oldest()
	}
	return rr
}

// next returns the next change to yield, with what its key holds, or nil if there is none
// yet.
func (rr *revisionReader[K]) next() (*remembered[K], *record, error) {
	for {
		change, err := rr.log.after(rr.at)
		if !rr.begun && errors.Is(err, ErrCompacted) { // before it has seen anything: it begins with what is left
			rr.at = rr.log.oldest()
			continue
		}
		rr.begun = true
		if change == nil {
			return nil, nil, err
		}
		rr.at = change.revision
		if !rr.interest.has(change.key.Key) {
			continue
		}
		// LP(WatchFrom), each change: the record is read, or none is found.
		if rec, ok := rr.root.current(change); ok {
			return change, rec, nil
		}
	}
}
