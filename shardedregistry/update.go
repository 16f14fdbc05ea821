package shardedregistry

// Update replaces the value of key by what fn returns for it, and returns what
// key holds then. If key is absent, it returns [ErrNotFound]; for an invalid
// key, [ErrInvalidKey]. If fn returns an error, Update returns that error as it
// is. In all these cases, and when fn panics or calls runtime.Goexit, nothing
// has changed. Config.Check and unique indexes may reject what fn returns.
//
// Fn runs outside every lock on the caller's goroutine, and again if another
// operation has changed key meanwhile. So it should have no effects, and must
// not modify what its argument refers to. It may use the registry. If fn changes key itself, or has another goroutine do so,
// each time it runs, and leaves it present, Update returns [ErrTooManyRetries].
//
// Update panics if fn is nil.
//
// Update is lock-free; with indexes or TTL, and where it helps a
// transaction, it may block, see [Config]. It takes effect when the new record is
// stored, or, if it stores none, when what it found was read.
func (r *Registry[K, V]) Update(key K, fn func(V) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Update called with a nil function")
	}
	failed := 0
	rt, c, hash, old := r.replaceable(key)
	if old != nil {
		value, err := fn(old.value)
		if err != nil {
			return Entry[K, V]{}, err
		}
		next := &record[K, V]{word: old.changed(), value: value}
		// LP(Update): replace stores the new record.
		if rt.replace(c, hash, old, next) {
			return Entry[K, V]{c.key, value, next.version()}, nil
		}
		failed++
	}
	return updateIn(rt, key, failed, fn)
}

// replaceable begins the fast path that replaces the value of a present key, or creates it,
// which needs a light root and no snapshot in progress. It returns the root, the cell of key,
// with its hash, and its live record, or no record if the caller must take the slow path. If
// the key has no cell, it returns the hash and no cell; without a hash, 0, it has not looked.
func (r *Registry[K, V]) replaceable(key K) (rt *root[K, V], c *cell[K, V], hash uint64, old *record[K, V]) {
	if rt = r.root.Load(); rt == nil {
		return r.install(), nil, 0, nil
	}
	if !rt.open || !rt.plain || rt.snapshotting() {
		return rt, nil, 0, nil
	}
	if c, hash = rt.cells.Find(&rt.keys, key); c == nil {
		return rt, nil, hash, nil
	}
	old = c.rec.Load()
	if old.word&(datedBit|deadBit) != 0 {
		old = rt.live(old)
	}
	return rt, c, hash, old
}

// replace stores next in place of old, which c held, the cell of a key with this hash. Then
// it does what changed does, as far as the fast path needs it. It reports whether it has
// stored next; if not, another operation has changed the key.
func (rt *root[K, V]) replace(c *cell[K, V], hash uint64, old, next *record[K, V]) bool {
	if !c.rec.CompareAndSwap(old, next) {
		return false
	}
	if s := rt.subscribers.Load(); s != nil {
		rt.replaced(c, hash, s)
	}
	return true
}

// replaced tells the subscribers of a change that replace has made.
func (rt *root[K, V]) replaced(c *cell[K, V], hash uint64, s *subscribers[K, V]) {
	if !s.ignores(hash, c.key) {
		rt.notify(s, c.named(hash))
	}
}

// updateIn is the slow path of Update, after so many failed attempts. It is apart so
// that Update takes little stack.
func updateIn[K comparable, V any](rt *root[K, V], key K, failed int, fn func(V) (V, error)) (Entry[K, V], error) {
	var t target[K, V]
	if err := rt.aim(&t, key); err != nil {
		return Entry[K, V]{}, err
	}
	return update(&t, failed, fn)
}

// update runs Update after so many failed attempts.
func update[K comparable, V any](t *target[K, V], failed int, fn func(V) (V, error)) (Entry[K, V], error) {
	a := change[K, V]{failed: failed}
	err := t.change(&a, func() error {
		value, err := fn(a.old.value)
		if err == nil {
			a.next = t.root.draft(a.dated(t.root), value)
		}
		return err
	})
	if err != nil {
		return Entry[K, V]{}, err
	}
	return a.next.entry(a.cell.key), nil
}

// change is what one call of Update, Put or Compute knows by its current or last
// attempt. It belongs to its goroutine. The target is not in it: next goes to the heap,
// and so would all that is in one struct with it.
type change[K comparable, V any] struct {
	create bool // whether to create the key if it is absent
	failed int  // attempts that have failed before

	key          hkey[K] // as it is stored; not set if the key was absent
	cell         *cell[K, V]
	old          *record[K, V] // what the key holds; nil if it was absent
	snapshotting bool          // read before old, so that little is between reading old and storing
	next         *record[K, V] // what was drafted to be stored, by this attempt or the one before, or nil
}

// change repeats attempts until one is done. Every repetition but those that
// ErrTooManyRetries reports is due to another operation that has changed the same
// key. Fn drafts next, to be stored in place of old, or returns the user's error.
// Afterwards a.next is what was stored, in a.cell.
func (t *target[K, V]) change(a *change[K, V], fn func() error) error {
	return retry(a.failed, func() (bool, error) { return t.attempt(a, fn) })
}

// dated reports whether a draft must be dated. A creation calls it when the user's
// function has run.
func (a *change[K, V]) dated(rt *root[K, V]) bool {
	return a.snapshotting || a.old == nil && rt.snapshotting()
}

// attempt runs fn for what the key holds now, and stores what fn has drafted if
// the key is unchanged since. It reports whether the change is done; otherwise
// another operation has changed the key.
func (t *target[K, V]) attempt(a *change[K, V], fn func() error) (done bool, err error) {
	rt := t.root
	a.snapshotting = rt.snapshotting()
	a.cell, a.old = t.root.loadToChange(t.key)
	if a.old == nil {
		return t.attemptCreate(a, fn)
	}
	a.key = a.cell.named(t.key.Hash)
	// LP(Update), an error of fn: the record was read.
	if err := fn(); err != nil {
		return true, err
	}
	if rt.isPlain(a.next) {
		a.next.word = a.old.changed()
	} else if err := rt.prepare(a.key, a.next, a.old, a.old.changed()); err != nil {
		return true, err
	}
	// LP(Update): the new record is stored, or that of a rival is read.
	// LP(Put), present: likewise.
	stored, err := t.swap(a.key, a.cell, a.old, a.next)
	if stored {
		rt.changed(a.key, a.cell, a.old, a.next)
	}
	return stored || err != nil, err
}

// isPlain reports whether rec, a draft, needs nothing of prepare but its word. Callers
// that update ask it, to save a call.
func (rt *root[K, V]) isPlain(rec *record[K, V]) bool { return rec.ext == nil }

// prepare completes rec, a draft, as the successor of old or, if old is nil, as the
// first record of a cell. With constraints or a time to live it runs the user's functions,
// so its caller holds no lock; an error is theirs.
func (rt *root[K, V]) prepare(k hkey[K], rec, old *record[K, V], m word) error {
	rec.link(old, m)
	if rt.constraints != nil {
		keys, err := rt.constraints.indexKeys(k.Key, rec.value, old.indexKeys())
		if err != nil {
			return err
		}
		rec.ext.keys = keys
	}
	if rt.expiry != nil {
		rt.expiry.grant(k.Key, rec, old)
	}
	return nil
}

// swap stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. It takes effect when next is
// stored, or, if it returns an error, when the record of a rival was read. A caller
// whose record was stored calls changed.
func (t *target[K, V]) swap(k hkey[K], c *cell[K, V], old, next *record[K, V]) (stored bool, err error) {
	rt := t.root
	rt.recall(k, c, old)
	if rt.constraints == nil {
		return c.rec.CompareAndSwap(old, next), nil
	}
	return rt.constraints.swap(*t, k, c, old, next)
}

// attemptCreate is attempt for a key that was absent.
func (t *target[K, V]) attemptCreate(a *change[K, V], fn func() error) (done bool, err error) {
	if !a.create {
		// LP(Update), absent: the table or a dead record was read.
		return true, ErrNotFound
	}
	if err := fn(); err != nil {
		return true, err
	}
	// LP(Put), absent: the table stores the new cell, or the record of a rival is read.
	var created bool
	a.cell, _, created, err = t.create(a.next)
	return created || err != nil, err
}

// UpdateIf stores value for key if key's version is version, and returns the
// new version. If key has another version, the error is a [*ConflictError]; if
// it is absent, [ErrNotFound]; if it is invalid, [ErrInvalidKey]. If key has
// the version, Config.Check and unique indexes may reject the value.
//
// UpdateIf is wait-free, but lock-free while others watch or wait and beside
// transactions; with indexes or TTL, and where it helps a transaction,
// it may block, see [Config]. It takes effect when the new record is stored, or,
// if it stores none, when what it found was read.
func (r *Registry[K, V]) UpdateIf(key K, version Version, value V) (Version, error) {
	rt, c, hash, old := r.replaceable(key)
	if old != nil {
		// LP(UpdateIf), another version: replaceable has read the record.
		if old.version() != version {
			return 0, &ConflictError{old.version(), version}
		}
		// LP(UpdateIf): store stores the new record.
		if next, ok := store(rt, c, hash, old, value); ok {
			return next, nil
		}
	}
	var t target[K, V]
	if err := rt.aim(&t, key); err != nil {
		return 0, err
	}
	return updateIf(&t, version, value)
}

// store stores value in place of old, which c held, and returns its version, or
// false if another operation has changed the key.
func store[K comparable, V any](rt *root[K, V], c *cell[K, V], hash uint64, old *record[K, V], value V) (Version, bool) {
	next := &record[K, V]{word: old.changed(), value: value}
	if !rt.replace(c, hash, old, next) {
		return 0, false
	}
	return next.version(), true
}

// updateIf is the slow path of UpdateIf.
func updateIf[K comparable, V any](t *target[K, V], version Version, value V) (Version, error) {
	rt := t.root
	for { // twice at most, but for transactions that were in the way: see loadIf
		// LP(UpdateIf), absent or another version: loadIf reads the record.
		c, old, err := t.loadIf(version)
		if err != nil {
			return 0, err
		}
		next := rt.draft(rt.snapshotting(), value)
		if stored, err := t.swapIf(c, old, next); stored || err != nil {
			if err != nil {
				return 0, err
			}
			return next.version(), nil
		}
	}
}

// loadIf is loadToChange with an error unless the key has the version.
//
// The versions of a key increase. So if the record that it returns cannot be replaced, the
// next call returns an error, unless a transaction that has read the key was in between:
// then what the key held is there again.
func (t *target[K, V]) loadIf(version Version) (*cell[K, V], *record[K, V], error) {
	c, rec := t.root.loadToChange(t.key)
	if rec == nil {
		return nil, nil, ErrNotFound
	}
	if rec.version() != version {
		return nil, nil, &ConflictError{rec.version(), version}
	}
	return c, rec, nil
}

// swapIf runs the rest of UpdateIf when next was drafted to be stored in place of old.
func (t *target[K, V]) swapIf(c *cell[K, V], old, next *record[K, V]) (stored bool, err error) {
	rt, k := t.root, c.named(t.key.Hash)
	if rt.isPlain(next) {
		next.word = old.changed()
	} else if err := rt.prepare(k, next, old, old.changed()); err != nil {
		return false, err
	}
	// LP(UpdateIf): the new record is stored, or that of a rival is read.
	if stored, err = t.swap(k, c, old, next); stored {
		rt.changed(k, c, old, next)
	}
	return stored, err
}

// Put stores value for key, present or not, and returns its version. The only
// errors are [ErrInvalidKey] and those by which Config.Check and unique indexes
// reject the value.
//
// Put is lock-free if key is present, and otherwise blocking on the mutex of a
// hash bucket; with indexes or TTL, and where it helps a transaction,
// it may block in both cases, see [Config]. It takes effect when the new record
// or entry is stored, or, if it stores none, when what it found was read.
func (r *Registry[K, V]) Put(key K, value V) (Version, error) {
	failed := 0
	rt, c, hash, old := r.replaceable(key)
	if old != nil {
		// LP(Put): store stores the new record.
		if version, ok := store(rt, c, hash, old, value); ok {
			return version, nil
		}
		failed++
	}
	var t target[K, V]
	if err := rt.aim(&t, key); err != nil {
		return 0, err
	}
	return put(&t, failed, value)
}

// put is the slow path of Put, after so many failed attempts.
func put[K comparable, V any](t *target[K, V], failed int, value V) (Version, error) {
	a := change[K, V]{create: true, failed: failed}
	// An error is that of the constraints, or their functions have changed the key each time.
	if err := t.change(&a, func() error { a.next = t.root.draft(a.dated(t.root), value); return nil }); err != nil {
		return 0, err
	}
	return a.next.version(), nil
}
