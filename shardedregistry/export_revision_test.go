package shardedregistry

// Revisions is a loop over WatchFrom that can be stopped between its steps.
type Revisions[K comparable, V any] struct{ rr *revisionReader[K] }

// OpenRevisions does the first part of a loop.
func OpenRevisions[K comparable, V any](r *Registry[K, V], after Revision, filters ...Filter[K]) Revisions[K, V] {
	rt := r.install()
	return Revisions[K, V]{newRevisionReader(rt, after, interestOf(rt, filters))}
}

// Next returns the next change, or a zero one if there is none.
func (r Revisions[K, V]) Next() (Change[K, V], error) {
	change, rec, err := r.rr.next()
	if change == nil {
		return Change[K, V]{}, err
	}
	return Change[K, V]{changeEvent[V](change, rec), change.revision}, nil
}
