package shardedregistry

import (
	"runtime"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Version identifies one value of one key. A key's versions strictly increase
// for ever: each change adds one, a deletion counts as a change, and a key that
// is created again goes on above its last version. The first version of a key
// is at least 1 and need not be 1.
type Version uint64

// Entry is what a key held at one moment.
type Entry[K comparable, V any] struct {
	Key     K // as it is stored: normalised
	Value   V
	Version Version
}

// Registry maps keys to values, each with a version. Its zero value is empty
// and ready to use, with the defaults of [Config]. It must not be copied after
// first use.
//
// Any number of goroutines may call all methods at once. The functions that are
// given to methods may call them, too.
type Registry[K comparable, V any] struct {
	_ atomics.NoCopy

	// root is set by New, or by CAS by the first operation that needs it, and
	// then stays. Everybody reads.
	root atomics.Pointer[root[K, V]]
}

// New returns an empty registry, or an error that names the setting that is not
// valid.
func New[K comparable, V any](config Config[K, V]) (*Registry[K, V], error) {
	n, err := config.shards()
	if err != nil {
		return nil, err
	}
	history, err := config.history()
	if err != nil {
		return nil, err
	}
	cs, err := config.constraints()
	if err != nil {
		return nil, err
	}
	rt := newRoot[K, V](n, config.Normalize)
	rt.constraints, rt.expiry = cs, config.expiry()
	if history != 0 {
		rt.history = newChangelog[K, V](history)
	}
	rt.ease()
	r := new(Registry[K, V])
	r.root.Store(rt)
	return r, nil
}

// MustNew is New for settings known to be valid: it panics on an error.
func MustNew[K comparable, V any](config Config[K, V]) *Registry[K, V] {
	r, err := New(config)
	if err != nil {
		panic(err)
	}
	return r
}

// Get returns the value of key, and whether key is present.
//
// Get is wait-free. It takes effect when the key's record is read, or, if key
// is absent, when the table is read or the key's last record was stored.
func (r *Registry[K, V]) Get(key K) (value V, ok bool) {
	rt := r.root.Load()
	if rt == nil {
		return value, false
	}
	if !rt.open {
		return get(rt, key)
	}
	// LP(Get): the table is read, or the record.
	c, _ := rt.cells.Find(&rt.keys, key)
	if c == nil {
		return value, false
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return value, false
		}
	}
	return rec.value, true
}

// get is Get where the key is not stored as it is given.
func get[K comparable, V any](rt *root[K, V], key K) (value V, ok bool) {
	if _, rec := rt.find(key); rec != nil {
		return rec.value, true
	}
	return value, false
}

// Lookup returns what key holds, with its version, and whether key is present.
//
// Lookup is wait-free. It takes effect when the key's record is read, or, if
// key is absent, when the table is read or the key's last record was stored.
func (r *Registry[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	rt := r.root.Load()
	if rt == nil {
		return entry, false
	}
	if !rt.open {
		return lookup(rt, key)
	}
	// LP(Lookup): the table is read, or the record.
	c, _ := rt.cells.Find(&rt.keys, key)
	if c == nil {
		return entry, false
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return entry, false
		}
	}
	return Entry[K, V]{c.key, rec.value, rec.version()}, true
}

// lookup is Lookup where the key is not stored as it is given.
func lookup[K comparable, V any](rt *root[K, V], key K) (entry Entry[K, V], ok bool) {
	if c, rec := rt.find(key); rec != nil {
		return rec.entry(c.key), true
	}
	return entry, false
}

// find returns the cell of key, as the caller spells it, and its live record, or nil and nil.
func (rt *root[K, V]) find(key K) (*cell[K, V], *record[K, V]) {
	k, err := rt.hashed(key)
	if err != nil {
		return nil, nil
	}
	return rt.loadLive(k)
}

// Delete removes key and returns what it held, and whether it was present.
//
// Delete is lock-free until others see key absent, and then blocking on the
// mutex of a hash bucket to free the entry; with indexes or TTL, and
// where it helps a transaction, it may block on more, see [Config]; if key is
// absent, and no transaction is about to create it, it is wait-free. It takes
// effect when the key's last record is stored, or, if key is absent, when the
// table is read or its last record was stored.
func (r *Registry[K, V]) Delete(key K) (Entry[K, V], bool) {
	rt := r.root.Load()
	if rt == nil {
		return Entry[K, V]{}, false
	}
	var (
		c    *cell[K, V]
		hash uint64
	)
	if rt.open {
		c, hash = rt.cells.Find(&rt.keys, key)
	} else if k, err := rt.hashed(key); err == nil {
		c, hash = rt.cells.Load(k), k.Hash
	}
	if c == nil {
		return Entry[K, V]{}, false // LP(Delete), absent: the table is read
	}
	// LP(Delete): remove stores the dead record, or reads one.
	old := rt.remove(c.named(hash), c)
	if old == nil {
		return Entry[K, V]{}, false
	}
	return old.entry(c.key), true
}

// remove deletes k, whose cell is c, whatever that holds, and returns what it held, or nil if
// c is dead. Its cell was in the table during the call, so k was absent then.
func (rt *root[K, V]) remove(k hkey[K], c *cell[K, V]) (old *record[K, V]) {
	for { // until no other operation changes k between reading and storing
		if old = rt.live(c.cleared(c.rec.Load())); old == nil {
			return nil
		}
		if rt.kill(k, c, old) {
			return old
		}
	}
}

// DeleteIf removes key if its version is version. If key has another version,
// the error is a [*ConflictError]; if it is absent, [ErrNotFound]; if it is
// invalid, [ErrInvalidKey].
//
// DeleteIf is wait-free, but lock-free beside transactions, until others see
// key absent, and then blocking on the mutex of a hash bucket to free the
// entry; with indexes or TTL, and where it helps a transaction, it
// may block on more, see [Config]. It takes effect when the key's last record
// is stored, or, if it deletes nothing, when what it found was read.
func (r *Registry[K, V]) DeleteIf(key K, version Version) error {
	t, err := r.locate(key)
	if err != nil {
		return err
	}
	return t.removeIf(version)
}

// removeIf runs DeleteIf.
func (t *target[K, V]) removeIf(version Version) error {
	for { // twice at most, but for transactions that were in the way: see loadIf
		// LP(DeleteIf), absent or another version: loadIf reads the record.
		c, old, err := t.loadIf(version)
		if err != nil {
			return err
		}
		// LP(DeleteIf): the dead record is stored.
		if t.root.kill(c.named(t.key.Hash), c, old) {
			return nil
		}
	}
}

// Len returns the number of keys. It is exact while nothing is created or
// deleted. Otherwise it counts every key that is present throughout the call.
// It exceeds the number of keys that are present at some time during the call
// by at most the creations and deletions in progress. It is never negative.
//
// Len is wait-free. It takes effect, for each shard, when that shard's counter
// is read.
func (r *Registry[K, V]) Len() int {
	rt := r.root.Load()
	if rt == nil {
		return 0
	}
	return rt.len()
}

// install returns the root, which it makes with the defaults if there is none.
func (r *Registry[K, V]) install() *root[K, V] {
	if rt := r.root.Load(); rt != nil {
		return rt
	}
	return r.root.Install(newRoot[K, V](defaultShards(runtime.GOMAXPROCS(0)), nil))
}
