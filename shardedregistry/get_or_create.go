package shardedregistry

// GetOrCreate returns the value of key. If key is absent, it creates key with
// what fn returns; created reports whether it did. If fn returns an error,
// GetOrCreate returns that error as it is. Then, and when fn panics or calls
// runtime.Goexit, nothing has changed. For an invalid key the error is
// [ErrInvalidKey]. Config.Check and unique indexes may reject what fn returns.
//
// Fn runs outside every lock on the caller's goroutine, at most once, and only
// if key was found absent. Callers that find key absent together each run their
// own function. If another operation creates key meanwhile, GetOrCreate drops
// what fn has returned and returns the other value. So fn must not make
// anything that has to be closed. Package oncecache runs a function exactly
// once for a key and lets other callers wait for it. Fn may use the registry,
// and may create key itself.
//
// GetOrCreate panics if fn is nil.
//
// GetOrCreate is wait-free if it finds key present, and otherwise blocking on
// the mutex of a hash bucket; with indexes or TTL, and where it helps
// a transaction, it may block on more, see [Config]. It takes effect when the
// table stores the new entry, or, if it creates none, when what it found was
// read.
func (r *Registry[K, V]) GetOrCreate(key K, fn func() (V, error)) (value V, created bool, err error) {
	if fn == nil {
		panic("shardedregistry: GetOrCreate called with a nil function")
	}
	var t target[K, V]
	if err := r.install().aim(&t, key); err != nil {
		return value, false, err
	}
	return getOrCreate(&t, fn)
}

// getOrCreate runs GetOrCreate.
func getOrCreate[K comparable, V any](t *target[K, V], fn func() (V, error)) (value V, created bool, err error) {
	// LP(GetOrCreate), present, or an error of fn: the table or the record is read.
	_, rec := t.root.loadLive(t.key)
	if rec == nil {
		made, err := fn()
		if err != nil {
			return value, false, err
		}
		// LP(GetOrCreate): the table stores the new cell, or create reads the record.
		if _, rec, created, err = t.create(t.root.draft(t.root.snapshotting(), made)); err != nil {
			return value, false, err
		}
	}
	return rec.value, created, nil
}
