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
