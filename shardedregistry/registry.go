package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

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
// All methods may be called by any number of goroutines at once, and from the
// functions that its methods call.
type Registry[K comparable, V any] struct {
	_ atomics.NoCopy

	// root is set by New, or by CAS by the first operation that needs it, and
	// then stays. Everybody reads.
	root atomics.Pointer[root[K, V]]
}

// New returns an empty registry, or an error that names the setting which is
// not valid.
func New[K comparable, V any](config Config[K, V]) (*Registry[K, V], error) {
	n, err := config.shards()
	if err != nil {
		return nil, err
	}
	rules, err := config.rules()
	if err != nil {
		return nil, err
	}
	o := newRoot(n, &config)
	o.rules = rules
	r := new(Registry[K, V])
	r.root.Store(o)
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
	// LP(Get): find reads the record, or finds none.
	if o, k, rec := r.find(key); rec != nil {
		return o.out(k, rec), true
	}
	return value, false
}

// Lookup returns what key holds, and whether key is present.
//
// Lookup is wait-free. It takes effect when the key's record is read, or, if
// key is absent, when the table is read or the key's last record was stored.
func (r *Registry[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	// LP(Lookup): find reads the record, or finds none.
	if o, k, rec := r.find(key); rec != nil {
		return o.entry(k, rec), true
	}
	return entry, false
}

// find returns key as it is stored and its live record, or nil.
func (r *Registry[K, V]) find(key K) (o *root[K, V], k hkey[K], rec *record[V]) {
	o = r.root.Load()
	if o == nil {
		return o, k, nil
	}
	k, err := o.hashed(key)
	if err != nil {
		return o, k, nil
	}
	c, rec := o.loadLive(k)
	if c != nil {
		k.Key = c.key
	}
	return o, k, rec
}

// Update replaces the value of key by what fn returns for it, and returns what
// key holds then. If key is absent it returns [ErrNotFound], for an invalid key
// [ErrInvalidKey]; if fn returns an error, that error as it is. Then, and when
// fn panics or calls runtime.Goexit, nothing has changed. Config.Check and unique
// indexes may reject what fn returns.
//
// Fn runs outside every lock on the caller's goroutine, and again if another
// operation has changed key meanwhile: it must not modify what it is given,
// unless that is a copy of Config.Clone's, and should have no other effects. It
// may use the registry. If each time it runs it changes key itself and leaves it
// present, Update returns [ErrTooManyRetries] after some tens of runs; if it has
// another goroutine do so and waits for it, Update does not return.
//
// Update panics if fn is nil.
//
// Update is lock-free, but for what is said in [Config] about indexes. It takes
// effect when the new record is stored, or, if it stores none, when what it found
// was read.
func (r *Registry[K, V]) Update(key K, fn func(V) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Update of a nil function")
	}
	p, err := r.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	c, rec, err := p.update(fn)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return p.root.entry(c.named(p.key.Hash), rec), nil
}

// update runs Update, and returns the record that it has stored, with its cell.
func (p *place[K, V]) update(fn func(V) (V, error)) (*cell[K, V], *record[V], error) {
	return p.change(false, func(c *cell[K, V], old *record[V]) (V, error) {
		return fn(p.root.out(c.named(p.key.Hash), old))
	})
}

// UpdateIf stores value for key if key's version is version, and returns the
// new version. If key has another version, the error is a [*ConflictError]; if
// it is absent, [ErrNotFound]; if it is invalid, [ErrInvalidKey]. If key has the
// version, Config.Check and unique indexes may reject the value.
//
// UpdateIf is wait-free, but lock-free while others watch or wait, and for what is
// said in [Config] about indexes. It takes effect when the new record is stored,
// or, if it stores none, when what it found was read.
func (r *Registry[K, V]) UpdateIf(key K, version Version, value V) (Version, error) {
	p, err := r.locate(key)
	if err != nil {
		return 0, err
	}
	return p.updateIf(version, value)
}

// updateIf runs UpdateIf.
func (p *place[K, V]) updateIf(version Version, value V) (Version, error) {
	// LP(UpdateIf), absent or another version: the record is read.
	c, old := p.loadLive()
	if old == nil {
		return 0, ErrNotFound
	}
	if old.version() != version {
		return 0, &ConflictError{old.version(), version}
	}
	o, k := p.root, c.named(p.key.Hash)
	o.check(k, old)
	next, err := o.draft(k, o.taking(), old, old.changed(), o.in(value))
	if err != nil {
		return 0, err
	}
	// LP(UpdateIf): the new record is stored, or that of a rival is read.
	stored, err := p.swap(k, c, old, next)
	if err != nil {
		return 0, err
	}
	if !stored {
		return 0, o.moved(c, version)
	}
	o.changed(k, c, old, next)
	o.check(k, next)
	return next.version(), nil
}

// moved returns the error of an operation that found version in the cell and
// whose CAS then failed. The versions in a cell increase, so it cannot be there
// again.
func (o *root[K, V]) moved(c *cell[K, V], version Version) error {
	// LP(UpdateIf), changed meanwhile: the record is read again.
	// LP(DeleteIf), changed meanwhile: likewise.
	now := o.live(c.rec.Load())
	if now == nil {
		return ErrNotFound
	}
	return &ConflictError{now.version(), version}
}

// Put stores value for key, present or not, and returns its version. The only
// errors are [ErrInvalidKey] and those by which Config.Check and unique indexes
// reject the value.
//
// Put is lock-free if key is present, but for what is said in [Config] about
// indexes, and otherwise blocking on the mutex of a hash bucket. It takes effect
// when the new record or entry is stored, or, if it stores none, when what it
// found was read.
func (r *Registry[K, V]) Put(key K, value V) (Version, error) {
	p, err := r.locate(key)
	if err != nil {
		return 0, err
	}
	return p.put(value)
}

// put runs Put.
func (p *place[K, V]) put(value V) (Version, error) {
	_, rec, err := p.change(true, func(*cell[K, V], *record[V]) (V, error) { return value, nil })
	if err != nil { // Clone has changed the key each time
		return 0, err
	}
	return rec.version(), nil
}

// Upsert stores for key what fn returns for its value and true, or, if key is
// absent, for a zero value and false. It returns what key holds then. All that
// Update says about fn holds here too.
//
// Upsert panics if fn is nil.
//
// Upsert is lock-free if key is present, but for what is said in [Config] about
// indexes, and otherwise blocking on the mutex of a hash bucket. It takes effect
// when the new record or entry is stored, or, if it stores none, when what it
// found was read.
func (r *Registry[K, V]) Upsert(key K, fn func(old V, exists bool) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Upsert of a nil function")
	}
	p, err := r.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	c, rec, err := p.upsert(fn)
	if err != nil {
		return Entry[K, V]{}, err
	}
	return p.root.entry(c.named(p.key.Hash), rec), nil
}

// upsert runs Upsert, and returns the record that it has stored, with its cell.
func (p *place[K, V]) upsert(fn func(V, bool) (V, error)) (*cell[K, V], *record[V], error) {
	return p.change(true, func(c *cell[K, V], old *record[V]) (V, error) {
		if old == nil {
			var zero V
			return fn(zero, false)
		}
		return fn(p.root.out(c.named(p.key.Hash), old), true)
	})
}

// Delete removes key and returns what it held, and whether it was present.
//
// Delete is lock-free until others see key absent, and then blocking on the
// mutex of a hash bucket to free the entry; if key is absent it is wait-free. It
// takes effect when the key's last record is stored, or, if key is absent, when
// the table is read or its last record was stored.
func (r *Registry[K, V]) Delete(key K) (Entry[K, V], bool) {
	o := r.root.Load()
	if o == nil {
		return Entry[K, V]{}, false
	}
	k, err := o.hashed(key)
	if err != nil {
		return Entry[K, V]{}, false
	}
	p := place[K, V]{root: o, key: k}
	return p.remove()
}

// remove runs Delete.
func (p *place[K, V]) remove() (Entry[K, V], bool) {
	for { // until no other operation changes key between reading and storing
		// LP(Delete), absent: the table or a dead record is read.
		c, old := p.loadLive()
		if old == nil {
			return Entry[K, V]{}, false
		}
		k := c.named(p.key.Hash)
		entry := p.root.entry(k, old)
		// LP(Delete): the dead record is stored.
		if p.root.kill(k, c, old) {
			return entry, true
		}
	}
}

// DeleteIf removes key if its version is version. If key has another version,
// the error is a [*ConflictError]; if it is absent, [ErrNotFound]; if it is
// invalid, [ErrInvalidKey].
//
// DeleteIf is wait-free until others see key absent, and then blocking on the
// mutex of a hash bucket to free the entry. It takes effect when the key's last
// record is stored, or, if it deletes nothing, when what it found was read.
func (r *Registry[K, V]) DeleteIf(key K, version Version) error {
	p, err := r.locate(key)
	if err != nil {
		return err
	}
	return p.removeIf(version)
}

// removeIf runs DeleteIf.
func (p *place[K, V]) removeIf(version Version) error {
	// LP(DeleteIf), absent or another version: the record is read.
	c, old := p.loadLive()
	if old == nil {
		return ErrNotFound
	}
	if old.version() != version {
		return &ConflictError{old.version(), version}
	}
	// LP(DeleteIf): the dead record is stored.
	if !p.root.kill(c.named(p.key.Hash), c, old) {
		return p.root.moved(c, version)
	}
	return nil
}

// Len returns the number of keys. It is exact while nothing is created or
// deleted. Otherwise it counts every key that is present throughout the call,
// and exceeds the keys that are present at some time during the call by at most
// the creations and deletions in progress. It is never negative.
//
// Len is wait-free. It takes effect, for each shard, when that shard's counter
// is read.
func (r *Registry[K, V]) Len() int {
	o := r.root.Load()
	if o == nil {
		return 0
	}
	return o.len()
}

// install returns the root, which it makes with the defaults if there is none.
func (r *Registry[K, V]) install() *root[K, V] {
	if o := r.root.Load(); o != nil {
		return o
	}
	var defaults Config[K, V]
	n, _ := defaults.shards() // the defaults are valid
	r.root.CompareAndSwap(nil, newRoot(n, &defaults))
	return r.root.Load()
}
