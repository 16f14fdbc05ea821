package shardedregistry

// GetOrCreate returns the value of key, or, if key is absent, creates it with
// what fn returns. Created tells which. If fn returns an error, so does
// GetOrCreate, as it is; then, and when fn panics or calls runtime.Goexit,
// nothing has changed. For an invalid key the error is [ErrInvalidKey].
//
// Fn runs outside every lock on the caller's goroutine, at most once, and only
// if key was found absent. Callers that find it absent together each run their
// own, and if another creates key meanwhile, what fn has returned is discarded
// and the other's value returned. So fn must not make what has to be closed. To
// run a function exactly once for a key, and let the others wait for it, is what
// package oncecache is for. Fn may use the registry, and may create key itself.
//
// GetOrCreate panics if fn is nil.
//
// GetOrCreate is wait-free if it finds key present, and otherwise blocking on
// the mutex of a hash bucket. It takes effect when the table stores the new
// entry, or, if it creates none, when what it found was read.
func (r *Registry[K, V]) GetOrCreate(key K, fn func() (V, error)) (value V, created bool, err error) {
	if fn == nil {
		panic("shardedregistry: GetOrCreate called with a nil function")
	}
	t, err := r.locate(key)
	if err != nil {
		return value, false, err
	}
	return getOrCreate(&t, fn)
}

// getOrCreate runs GetOrCreate.
func getOrCreate[K comparable, V any](t *target[K], fn func() (V, error)) (value V, created bool, err error) {
	// LP(GetOrCreate), present, or an error of fn: the table or the record is read.
	c, rec := t.loadLive()
	if rec == nil {
		made, err := fn()
		if err != nil {
			return value, false, err
		}
		// LP(GetOrCreate): the table stores the new cell, or create reads the record.
		if c, rec, created, err = t.create(draft[V](t.root, t.root.snapshotting(), nil, made)); err != nil {
			return value, false, err
		}
	}
	return out[V](t.root, c.named(t.key.Hash), rec), created, nil
}
