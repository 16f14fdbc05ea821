package shardedregistry

// Revisions is a loop over WatchFrom that can be stopped between its steps.
type Revisions[K comparable, V any] struct{ rr *revisionReader[K, V] }

// OpenRevisions does the first part of a loop.
func OpenRevisions[K comparable, V any](r *Registry[K, V], after Revision, filters ...Filter[K]) Revisions[K, V] {
	rt := r.install()
	return Revisions[K, V]{newRevisionReader(rt, after, interestOf(rt, filters))}
}

// Next returns the next change or bookmark, or a zero one if there is none.
func (r Revisions[K, V]) Next() (Change[K, V], error) {
	change, err := r.rr.next()
	switch {
	case change != nil:
		return change.event(), nil
	case err == nil && r.rr.bookmarkDue():
		return Change[K, V]{Revision: r.rr.bookmark(), Bookmark: true}, nil
	}
	return Change[K, V]{}, err
}

// A Feed is a loop over WatchFrom that begins now.
type Feed[K comparable, V any] struct{ Revisions[K, V] }

// OpenFeed begins a Feed.
func OpenFeed[K comparable, V any](r *Registry[K, V], filters ...Filter[K]) Feed[K, V] {
	return Feed[K, V]{OpenRevisions(r, r.install().history.revision(), filters...)}
}

// Drain returns the changes that there are, and whether any are lost.
func (f Feed[K, V]) Drain() (events []Event[K, V], lost bool) {
	for {
		switch change, err := f.Next(); {
		case err != nil:
			return events, true
		case change.Bookmark:
		case change.Revision == 0:
			return events, false
		default:
			events = append(events, change.Event)
		}
	}
}

// Finished puts the last change of key into the changelog, as an operation does that helps its
// maker, and stalls before it wakes the loops.
func Finished[K comparable, V any](r *Registry[K, V], key K) {
	rt := r.install()
	c, rec := rt.find(key)
	l := rt.history
	change := &remembered[K, V]{key: rt.rehashed(c.key), rec: rec, revision: l.revision() + 1}
	l.slot(change.revision).Store(change)
	l.finish(change)
}

// Doze does what a loop over WatchFrom does that falls asleep, and returns whether it was woken.
func (r Revisions[K, V]) Doze() (woken func() bool) { return r.rr.log.waker.Event().Fired }
