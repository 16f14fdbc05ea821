package shardedregistry

import (
	"errors"
	"iter"
	"runtime"
	"strconv"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Version identifies one value of one key. The versions of a key increase for ever: each change
// adds one, also a deletion, and a key that is created again goes on above its last version. The
// first version of a key need not be 1.
type Version uint64

// Entry is what a key held at one moment.
type Entry[K comparable, V any] struct {
	Key     K // as it is stored: normalised
	Value   V
	Version Version
}

// Registry maps keys to values, each with a version. Its zero value is empty, with the defaults of
// [Config]. It must not be copied after first use. Any number of goroutines may call all methods at
// once.
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
	rt.check, rt.constraints, rt.expiry = config.Check, cs, config.expiry()
	if history != 0 {
		rt.history = newChangelog[K, V](history)
	}
	rt.ease()
	r := new(Registry[K, V])
	r.root.Store(rt)
	return r, nil
}

// MustNew is like New but panics if a setting is wrong.
func MustNew[K comparable, V any](config Config[K, V]) *Registry[K, V] {
	r, err := New(config)
	if err != nil {
		panic(err)
	}
	return r
}

// Get returns the value of key, and whether key is present.
//
// Get is wait-free. It takes effect when key is read.
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
// Lookup is wait-free. It takes effect when key is read.
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
// Delete is lock-free until others see key absent, and then blocking on a hash bucket to free the
// entry; with indexes or TTL, and where it helps a transaction, see [Config]. It takes effect when
// the key's last record is stored, or, if key is absent, when it is read.
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

// remove deletes k, at any version, and returns what it held, or nil if c, its cell, is dead. C was
// in the table when the call began, so k was absent at some moment since.
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

// DeleteIf removes key if its version is version. If key has another version, the error is a
// [*ConflictError]; if it is absent, [ErrNotFound].
//
// DeleteIf is wait-free, but lock-free beside transactions, until others see key absent, and then
// blocking on a hash bucket to free the entry; with indexes or TTL, and where it helps a
// transaction, see [Config]. It takes effect when the key's last record is stored, or, if it
// deletes nothing, when key is read.
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

// Len returns the number of keys. It is exact while nothing is created or deleted. Otherwise it
// counts all keys that are present throughout, and perhaps creations and deletions in progress.
//
// Len is wait-free. It takes effect, for each shard, when that shard's counter is read.
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

// Peek returns a pointer to the value of key, or nil if key is absent. The value must not be
// modified, and never changes. Peek copies nothing: it is quicker than Get if values are large.
//
// Peek is wait-free. It takes effect when key is read.
func (r *Registry[K, V]) Peek(key K) *V {
	rt := r.root.Load()
	if rt == nil {
		return nil
	}
	if !rt.open {
		return peek(rt, key)
	}
	// LP(Peek): the table is read, or the record.
	c, _ := rt.cells.Find(&rt.keys, key)
	if c == nil {
		return nil
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return nil
		}
	}
	return &rec.value
}

// peek is Peek where the key is not stored as it is given.
func peek[K comparable, V any](rt *root[K, V], key K) *V {
	if _, rec := rt.find(key); rec != nil {
		return &rec.value
	}
	return nil
}

// All returns an iterator over the keys, as they are stored, and their values, in no particular
// order. A loop yields each key at most once, with the value that it holds then. It yields every
// key that is present throughout.
//
// All is wait-free; the loop is blocking on one hash bucket at a time, but not while its body runs.
// It takes effect, for each key, when the key is read.
func (r *Registry[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := range r.Entries() {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Entries is All with versions.
//
// Entries is wait-free; the loop is blocking as that over All. It takes effect, for each key, when
// the key is read.
func (r *Registry[K, V]) Entries() iter.Seq[Entry[K, V]] { return r.each }

// Keys is All without values.
//
// Keys is wait-free; the loop is blocking as that over All. It takes effect, for each key, when the
// key is read.
func (r *Registry[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		if rt := r.root.Load(); rt != nil {
			// LP(Keys): visit has read the record.
			rt.visit(func(k hkey[K], _ *cell[K, V], _ *record[K, V]) bool { return yield(k.Key) })
		}
	}
}

// each is not a function literal in Entries, because the compiler would not
// make an instruction of an atomic load there.
func (r *Registry[K, V]) each(yield func(Entry[K, V]) bool) {
	if rt := r.root.Load(); rt != nil {
		rt.visit(func(k hkey[K], _ *cell[K, V], rec *record[K, V]) bool { return yield(rec.entry(k.Key)) })
	}
}

// visit calls f for the keys that are present, with their cells and records,
// until it returns false.
func (rt *root[K, V]) visit(f func(k hkey[K], c *cell[K, V], rec *record[K, V]) bool) {
	for c := range rt.cells.All() {
		// LP(All): the record is read.
		// LP(Entries): the record is read.
		rec := rt.live(c.rec.Load())
		if rec != nil && !f(rt.rehashed(c.key), c, rec) {
			return
		}
	}
}

// String returns how many keys there are. Without it, package fmt would read
// the registry's words without atomic instructions.
//
// String is wait-free. It takes effect as Len does.
func (r *Registry[K, V]) String() string { return "a registry of " + strconv.Itoa(r.Len()) + " keys" }

// String returns how many keys there are.
func (s *Snapshot[K, V]) String() string { return "a snapshot of " + strconv.Itoa(s.Len()) + " keys" }

// errJSON is returned by MarshalJSON, without which package json would return {}.
var errJSON = errors.New("shardedregistry: neither a registry nor a snapshot has a JSON form of its own: " +
	"marshal slices.Collect(s.Entries()) or maps.Collect(s.All()), where s is the snapshot or r.Snapshot()")

// MarshalJSON returns an error that says what to marshal instead.
//
// MarshalJSON is wait-free. It takes effect at any moment: it reads nothing.
func (r *Registry[K, V]) MarshalJSON() ([]byte, error) { return nil, errJSON }

// MarshalJSON returns an error that says what to marshal instead.
func (s *Snapshot[K, V]) MarshalJSON() ([]byte, error) { return nil, errJSON }

// MaxRestored is the highest version that [Restore] accepts.
const MaxRestored Version = 1<<60 - 1

// versionError says which versions Restore accepts. It matches ErrInvalidVersion.
type versionError struct{ must string }

var (
	errNoVersion   = &versionError{"at least 1"}
	errHighVersion = &versionError{"below 2^60"}
)

func (e *versionError) Error() string { return "shardedregistry: a version must be " + e.must }

// Unwrap returns ErrInvalidVersion.
func (e *versionError) Unwrap() error { return ErrInvalidVersion }

// Restore returns a new registry that holds entries with their versions, as of a [Snapshot] that
// was saved. Each key goes on from its version. Other keys begin above last, and above all versions
// of entries. So with [Snapshot.Last] versions increase also across a restart, but those that were
// given after the snapshot may be given again. With Config.TTL each entity gets a new deadline.
//
// If a key is invalid or comes twice, a value is rejected, or a version is not valid, Restore
// returns no registry, and a [*KeyError]; if last is not valid, [ErrInvalidVersion].
//
// Restore panics if entries is nil.
func Restore[K comparable, V any](config Config[K, V], last Version, entries iter.Seq[Entry[K, V]]) (*Registry[K, V], error) {
	if entries == nil {
		panic("shardedregistry: Restore called with a nil iterator")
	}
	r, err := New(config)
	if err != nil {
		return nil, err
	}
	if last > MaxRestored {
		return nil, errHighVersion
	}
	x := r.root.Load().expiry
	if x != nil {
		x.paused = true
	}
	for e := range entries {
		if err := restore(r, e); err != nil {
			return nil, &KeyError{e.Key, err}
		}
		last = max(last, e.Version)
	}
	r.root.Load().startAbove(last)
	if x != nil {
		x.resume(r.root.Load())
	}
	return r, nil
}

// restore creates a key with a version. Nobody else has r, so floor may be, until the
// key is created, what lets it begin there.
func restore[K comparable, V any](r *Registry[K, V], e Entry[K, V]) error {
	switch {
	case e.Version == 0:
		return errNoVersion
	case e.Version > MaxRestored:
		return errHighVersion
	}
	t, err := r.locate(e.Key)
	if err != nil {
		return err
	}
	fresh := t.root.draft(false, e.Value)
	t.root.installShard(t.key.Hash).floor.Store(uint64(e.Version - 1))
	c, rec, created, err := t.create(fresh)
	switch {
	case err != nil:
		return err
	case !created:
		return t.exists(c, rec).exists
	}
	return nil
}

// startAbove makes all keys that are created from now on start above version. Nobody
// else has the registry.
func (rt *root[K, V]) startAbove(version Version) {
	if version == 0 {
		return
	}
	for i := range rt.shards {
		rt.installShard(rt.hashIn(i)).floor.Store(uint64(version))
	}
}

// highestFloor returns a version that is at least the last one of each key whose cell has
// left the table.
func (rt *root[K, V]) highestFloor() (highest Version) {
	for i := range rt.shards {
		if s := rt.shards[i].Load(); s != nil {
			highest = max(highest, Version(s.floor.Load()))
		}
	}
	return highest
}

// DeleteFunc deletes the keys for which del returns true, and returns how many. It deletes a key
// only if that still holds the value that del was given; otherwise it asks again, a million times
// at most. It asks about every key that is present throughout. To stop early, or to decide by
// versions, loop over Entries and call DeleteIf.
//
// DeleteFunc panics if del is nil.
//
// DeleteFunc is blocking on one hash bucket at a time; with indexes or TTL, and where it helps a
// transaction, see [Config]. It takes effect, for each key, when the key's last record is stored,
// or, if it stays, when it is read.
func (r *Registry[K, V]) DeleteFunc(del func(K, V) bool) (deleted int) {
	if del == nil {
		panic("shardedregistry: DeleteFunc called with a nil function")
	}
	rt := r.root.Load()
	if rt == nil {
		return 0
	}
	rt.visit(func(k hkey[K], c *cell[K, V], _ *record[K, V]) bool {
		// The error of retry says that del keeps changing k, which then stays.
		_ = retry(0, func() (done bool, _ error) {
			// LP(DeleteFunc), a key that stays: the record is read. If another operation has
			// deleted k since del was asked, what it holds now does not matter.
			rec := rt.live(c.cleared(c.rec.Load()))
			if rec == nil || !del(k.Key, rec.value) {
				return true, nil
			}
			// LP(DeleteFunc): the dead record is stored.
			if !rt.kill(k, c, rec) {
				return false, nil
			}
			deleted++
			return true, nil
		})
		return true
	})
	return deleted
}
