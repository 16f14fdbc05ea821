package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// Create stores value for key if key is absent, and returns its version. It
// never overwrites: if key is present, the error is an [*ExistsError]. An
// invalid key gives [ErrInvalidKey]. If key is absent, Config.Check and unique
// indexes may reject the value. The key that is stored is what Config.Normalize
// returns for key.
//
// Create is wait-free if it finds key present, and otherwise blocking on the
// mutex of a hash bucket; with indexes or TTL, and where it helps a
// transaction, it may block on more, see [Config]. It takes effect when the
// table stores the new entry, or, if key is present, when its record is read,
// or, if a unique value is taken, when the record that has it is read.
func (r *Registry[K, V]) Create(key K, value V) (Version, error) {
	rt, c, hash, old := r.replaceable(key)
	switch {
	case old != nil:
		// LP(Create), present: replaceable has read the record.
		t := target[K, V]{root: rt, given: key}
		return t.exists(c, old).result()
	case hash != 0:
		next := &record[K, V]{value: value}
		// LP(Create): begin stores the new cell in the table.
		if rt.begin(hkey[K]{Hash: hash, Key: key}, next) {
			return next.version(), nil
		}
	}
	var t target[K, V]
	if err := rt.aim(&t, key); err != nil {
		return 0, err
	}
	return insert(&t, value).result()
}

// begin creates k with rec, a plain draft, and reports whether it did; if not, another
// operation has created the key, or it cannot be found again. It does what create does, as
// far as the fast path needs it.
func (rt *root[K, V]) begin(k hkey[K], rec *record[K, V]) bool {
	if k.Key != k.Key { //nolint:staticcheck // true for NaN
		return false
	}
	mine := &cell[K, V]{key: k.Key}
	atomics.InitPointer(&mine.rec, rec)
	if c, _ := rt.publish(k, mine, rec); c != mine {
		return false
	}
	if s := rt.subscribers.Load(); s != nil {
		rt.replaced(mine, k.Hash, s)
	}
	return true
}

// insertion is how a Create has ended: with a version, or, if the key was present,
// with an error of ours, or with one that may be anybody's.
type insertion struct {
	version Version
	exists  *ExistsError
	err     error
}

// result returns what Create returns.
func (i insertion) result() (Version, error) {
	if i.exists != nil {
		return 0, i.exists
	}
	return i.version, i.err
}

// insert runs Create.
func insert[K comparable, V any](t *target[K, V], value V) insertion {
	// LP(Create), present: the record is read, here or by create.
	c, rec := t.root.loadLive(t.key)
	if rec != nil {
		return t.exists(c, rec)
	}
	return t.insert(t.root.draft(t.root.snapshotting(), value))
}

// insert runs Create for a key that was absent, with a drafted record.
func (t *target[K, V]) insert(fresh *record[K, V]) insertion {
	// LP(Create): the table stores the new cell, or the record of a rival is read.
	c, rec, created, err := t.create(fresh)
	switch {
	case err != nil:
		return insertion{err: err}
	case created:
		return insertion{version: rec.version()}
	}
	return t.exists(c, rec)
}

// exists is how a Create ends that finds rec in the cell c of the key.
func (t *target[K, V]) exists(c *cell[K, V], rec *record[K, V]) insertion {
	stored := c.key
	if beside := c.meta.Load(); beside != nil && beside.spelled != nil {
		stored = *beside.spelled
	}
	return insertion{exists: &ExistsError{Given: t.given, Stored: stored, Version: rec.version()}}
}

// create publishes a new cell of the key with fresh, a drafted record. If the key is
// present, it returns false with the present cell and record. It takes effect when the
// table stores the new cell, or else when it reads the record. An error is that of the
// constraints.
func (t *target[K, V]) create(fresh *record[K, V]) (c *cell[K, V], rec *record[K, V], created bool, err error) {
	rt, k := t.root, t.key
	if err = rt.prepare(k, fresh, nil, 0); err != nil {
		return nil, nil, false, err
	}
	mine := &cell[K, V]{key: k.Key}
	if spelled := rt.spelling(k, t.given); spelled != nil {
		mine.meta.Store(&cellMeta[K, V]{spelled: spelled})
	}
	atomics.InitPointer(&mine.rec, fresh)
	c, present, err := t.enlist(mine, fresh)
	if err != nil {
		return nil, nil, false, err
	}
	if c != mine {
		rt.date(present)
		return c, present, false, nil
	}
	rt.changed(k, c, nil, fresh)
	return c, fresh, true, nil
}

// enlist is publish under the constraints.
func (t *target[K, V]) enlist(fresh *cell[K, V], rec *record[K, V]) (c *cell[K, V], present *record[K, V], err error) {
	rt := t.root
	if rt.constraints == nil {
		c, present = rt.publish(t.key, fresh, rec)
		return c, present, nil
	}
	return rt.constraints.enlist(*t, fresh, rec)
}
