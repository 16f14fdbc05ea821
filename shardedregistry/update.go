package shardedregistry

import (
	"errors"
	"iter"
	"runtime"
	"strconv"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Create stores value for key if key is absent, and returns its version. It never overwrites: if
// key is present, the error is an [*ExistsError].
//
// Create is wait-free if it finds key present, and otherwise blocking on a hash bucket; with
// indexes or TTL, and where it helps a transaction, see [Config]. It takes effect when the entry is
// stored, or, if none is, when key, or the one that has its unique value, is read.
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
	// LP(Create): the table stores the new cell, or the record of a rival is read.
	c, rec, created, err := t.create(t.root.draft(t.root.snapshotting(), value))
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
	var present *record[K, V]
	if rt.constraints == nil {
		c, present = rt.publish(k, mine, fresh)
	} else if c, present, err = rt.constraints.enlist(*t, mine, fresh); err != nil {
		return nil, nil, false, err
	}
	if c != mine {
		rt.date(present)
		return c, present, false, nil
	}
	rt.changed(k, c, nil, fresh)
	return c, fresh, true, nil
}

// GetOrCreate returns the value of key. If key is absent, it creates key with what fn returns;
// created reports whether it did.
//
// Callers that find key absent together each run their own function once, and all but one drop its
// result. So fn must not make anything that has to be closed: package oncecache runs one function
// for a key.
//
// GetOrCreate panics if fn is nil.
//
// GetOrCreate is wait-free if it finds key present, and otherwise blocking on a hash bucket; with
// indexes or TTL, and where it helps a transaction, see [Config]. It takes effect when the entry is
// stored, or, if none is, when key is read.
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

// Update replaces the value of key by what fn returns for it, and returns what key holds then. If
// key is absent, it returns [ErrNotFound].
//
// Fn runs again if another operation has changed key meanwhile, or a transaction has used it, and
// must not modify what its argument refers to. If fn changes key itself, and leaves it present, each
// time it runs, Update returns [ErrTooManyRetries].
//
// Update panics if fn is nil.
//
// Update is lock-free; with indexes or TTL, and where it helps a transaction, see [Config]. It
// takes effect when the record is stored, or, if none is, when key is read.
func (r *Registry[K, V]) Update(key K, fn func(V) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Update called with a nil function")
	}
	failed := 0
	rt, c, hash, old := r.replaceable(key)
	if old != nil {
		value, err := fn(old.value)
		if err != nil {
			return Entry[K, V]{}, err // LP(Update), an error of fn: replaceable has read the record
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

// replaceable finds what the fast path replaces, which needs a light root and no snapshot in
// progress. It returns the root, and the cell of key, with its hash, and its live record; or the
// hash alone, if key has no cell; or else no record, and the caller must take the slow path.
func (r *Registry[K, V]) replaceable(key K) (rt *root[K, V], c *cell[K, V], hash uint64, old *record[K, V]) {
	if rt = r.root.Load(); rt == nil {
		return r.install(), nil, 0, nil
	}
	if !rt.light || rt.snapshotting() {
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
	// LP(Update, UpdateIf, Put): the new record is stored.
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
	var a change[K, V]
	err := retry(failed, func() (done bool, err error) {
		return t.attempt(&a, func() error {
			value, err := fn(a.old.value)
			if err == nil {
				a.next = t.root.draft(a.dated(t.root), value)
			}
			return err
		})
	})
	if err != nil {
		return Entry[K, V]{}, err
	}
	return a.next.entry(a.cell.key), nil
}

// change is what one call of Update, Put or Compute knows from its current or last
// attempt. It belongs to its goroutine. The target is not in it: next goes to the heap,
// and so would all that is in one struct with it.
type change[K comparable, V any] struct {
	create bool // whether to create the key if it is absent

	key          hkey[K] // as it is stored; not set if the key was absent
	cell         *cell[K, V]
	old          *record[K, V] // what the key holds; nil if it was absent
	snapshotting bool          // read before old, so that little is between reading old and storing
	next         *record[K, V] // what was drafted to be stored, by this attempt or the one before, or nil
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
func (rt *root[K, V]) isPlain(rec *record[K, V]) bool {
	return rt.plain && rt.check == nil && !rec.isDated()
}

// prepare completes rec, a draft, as the successor of old or, if old is nil, as the
// first record of a cell, whose version publish sets. M is its word. With a check, indexes or a
// time to live it runs the user's functions, so its caller holds no lock; an error is theirs.
func (rt *root[K, V]) prepare(k hkey[K], rec, old *record[K, V], m word) error {
	ttl, err := rt.complete(k, rec, old, m)
	if err == nil && rt.expiry != nil {
		rt.expiry.begin(rec, ttl)
	}
	return err
}

// complete is prepare, but for the deadline. It returns the time to live, if there is one.
func (rt *root[K, V]) complete(k hkey[K], rec, old *record[K, V], m word) (ttl time.Duration, err error) {
	rec.link(old, m)
	if rt.check != nil {
		if err := rt.check(k.Key, rec.value); err != nil {
			return 0, err
		}
	}
	if rt.constraints != nil {
		rec.ext().keys = rt.constraints.indexKeys(k.Key, rec.value, old.indexKeys())
	}
	if rt.expiry != nil {
		ttl = rt.expiry.grant(k.Key, rec, old)
	}
	return ttl, nil
}

// swap stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. It takes effect when next is
// stored, or, if it returns an error, when the record of a rival was read. A caller
// whose record was stored calls changed.
func (t *target[K, V]) swap(k hkey[K], c *cell[K, V], old, next *record[K, V]) (stored bool, err error) {
	rt := t.root
	rt.recall(k, c, old)
	if rt.constraints == nil {
		// LP(Update, UpdateIf, Put, Compute): the new record is stored.
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

// UpdateIf stores value for key if key's version is version, and returns the new version. If key
// has another version, the error is a [*ConflictError]; if it is absent, [ErrNotFound].
//
// UpdateIf is wait-free, but lock-free while others watch or wait and beside transactions; with
// indexes or TTL, and where it helps a transaction, see [Config]. It takes effect when the record
// is stored, or, if none is, when key is read.
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

// Put stores value for key, present or not, and returns its version.
//
// Put is lock-free if key is present, and otherwise blocking on a hash bucket; with indexes or TTL,
// and where it helps a transaction, see [Config]. It takes effect when the record or entry is
// stored, or, if none is, when key is read.
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
	a := change[K, V]{create: true}
	// An error is that of the constraints, or others have changed the key each time, as their functions may.
	if err := retry(failed, func() (done bool, err error) {
		return t.attempt(&a, func() error {
			a.next = t.root.draft(a.dated(t.root), value)
			return nil
		})
	}); err != nil {
		return 0, err
	}
	return a.next.version(), nil
}

// ComputeOp is what a function given to Compute asks for.
type ComputeOp int

const (
	// CancelOp leaves the key as it is.
	CancelOp ComputeOp = iota
	// UpdateOp stores the value that the function has returned, and creates the key
	// if it is absent.
	UpdateOp
	// DeleteOp deletes the key. An absent key stays absent.
	DeleteOp
)

// Compute calls fn with the value of key, and whether key is present, and does what fn asks for. It
// returns what key holds then, and whether it is present. All that Update says about fn holds here
// too.
//
// Compute panics if fn is nil, or asks for anything but a [ComputeOp].
//
// Compute is lock-free if it leaves or replaces the value of a present key, and otherwise blocking
// on a hash bucket; with indexes or TTL, and where it helps a transaction, see [Config]. It takes
// effect when the record or entry is stored, or, if none is, when key is read.
func (r *Registry[K, V]) Compute(key K, fn func(old V, exists bool) (V, ComputeOp, error)) (entry Entry[K, V], present bool, err error) {
	if fn == nil {
		panic("shardedregistry: Compute called with a nil function")
	}
	var t target[K, V]
	if err := r.install().aim(&t, key); err != nil {
		return entry, false, err
	}
	return compute(&t, fn)
}

// errStoresNothing ends an attempt whose function has drafted nothing.
var errStoresNothing = errors.New("shardedregistry: the function stores nothing")

// compute runs Compute.
func compute[K comparable, V any](t *target[K, V], fn func(V, bool) (V, ComputeOp, error)) (entry Entry[K, V], present bool, err error) {
	var (
		rt = t.root
		a  = change[K, V]{create: true}
		op ComputeOp
	)
	err = retry(0, func() (done bool, err error) {
		// LP(Compute), stored, or an error: see attempt.
		done, err = t.attempt(&a, func() (err error) {
			var old, value V
			if a.old != nil {
				old = a.old.value
			}
			if value, op, err = fn(old, a.old != nil); err != nil {
				return err
			}
			switch op {
			case CancelOp, DeleteOp:
				return errStoresNothing
			case UpdateOp:
				a.next = rt.draft(a.dated(rt), value)
				return nil
			}
			panic("shardedregistry: the function given to Compute returned ComputeOp " + strconv.Itoa(int(op)))
		})
		if err != errStoresNothing {
			return done, err
		}
		if op == DeleteOp && a.old != nil {
			// LP(Compute), deleted: the dead record is stored.
			return rt.kill(a.key, a.cell, a.old), nil
		}
		return true, nil // LP(Compute), nothing changed: attempt has read the record, or none
	})
	switch {
	case err != nil:
		return entry, false, err
	case op == UpdateOp:
		return a.next.entry(a.cell.key), true, nil
	case op == CancelOp && a.old != nil:
		return a.old.entry(a.cell.key), true, nil
	}
	return entry, false, nil
}

// Clear deletes all keys, one after the other, and returns how many. It may miss a key that is
// created meanwhile.
//
// Clear is blocking on one hash bucket at a time; with indexes or TTL, and where it helps a
// transaction, see [Config]. It takes effect, for each key, when the key's last record is stored.
func (r *Registry[K, V]) Clear() (deleted int) {
	rt := r.root.Load()
	if rt == nil {
		return 0
	}
	rt.visit(func(k hkey[K], c *cell[K, V], _ *record[K, V]) bool {
		// LP(Clear): the dead record is stored.
		if rt.remove(k, c) != nil {
			deleted++
		}
		return true
	})
	return deleted
}

// Replace makes the registry contain what entries yields, and nothing else, but not at one instant:
// it first deletes the other keys, and then stores the values, one key after the other. If a key is
// yielded twice, the last value counts. What others change meanwhile may stay.
//
// A present key keeps its value and version if equal returns true for that value and the one that
// entries yields. If equal is nil, every value is stored.
//
// If a key is invalid, Replace returns a [*KeyError], and nothing has changed. A key whose value is
// rejected stays as it was. Replace goes on, and returns an error that joins a [*KeyError] for
// each. A unique value is taken as long as another key has it, also if that gets another value
// later.
//
// Replace panics if entries is nil.
//
// Replace is blocking on one hash bucket at a time; with indexes or TTL, and where it helps a
// transaction, see [Config]. It takes effect, for each key, when its record or entry is stored, or
// else when it is read.
func (r *Registry[K, V]) Replace(entries iter.Seq2[K, V], equal func(a, b V) bool) error {
	if entries == nil {
		panic("shardedregistry: Replace called with a nil iterator")
	}
	type entry struct {
		target[K, V]
		value V
	}
	var (
		rt      = r.install()
		wanted  []entry
		numbers = make(map[K]int, rt.len())
	)
	for key, value := range entries {
		var t target[K, V]
		if err := rt.aim(&t, key); err != nil {
			return &KeyError{key, err}
		}
		if i, twice := numbers[t.key.Key]; twice {
			wanted[i].value = value
			continue
		}
		numbers[t.key.Key] = len(wanted)
		wanted = append(wanted, entry{t, value})
	}
	rt.visit(func(k hkey[K], c *cell[K, V], _ *record[K, V]) bool {
		if _, stays := numbers[k.Key]; !stays {
			// LP(Replace), another key: the dead record is stored.
			rt.remove(k, c)
		}
		return true
	})
	var failed []error
	for i := range wanted {
		e := &wanted[i]
		// LP(Replace): that of Compute.
		if _, _, err := compute(&e.target, func(old V, exists bool) (V, ComputeOp, error) {
			if exists && equal != nil && equal(old, e.value) {
				return old, CancelOp, nil
			}
			return e.value, UpdateOp, nil
		}); err != nil {
			failed = append(failed, &KeyError{e.given, err})
		}
	}
	return errors.Join(failed...)
}

// maxAttempts is after how many attempts a call gives up: its function must have changed the
// key itself. Contention does not get there. Of 2 to 1,000 goroutines that did nothing but
// update one key on 2 CPUs, for 1.5 seconds each, no call took more than 284 attempts where
// the function computed for 0 to 100 µs, and 16,775 where it also yielded the processor. A
// function that changes its key has then cost 0.1 seconds, in a transaction 0.2 to 1.
//
// In the model, where few operations contend, few attempts are enough.
func maxAttempts() int { return atomics.Limit(1_000_000, 8) }

// pauses is after how many attempts at most a call makes a pause. One that has failed more
// often has a function that waits in each run, or that changes the key: a pause is of no use.
const pauses = 1000

// retry repeats attempt, which runs a function of the user's and fails if a key has changed
// meanwhile, until it is done. So many attempts have failed before.
func retry(failed int, attempt func() (done bool, err error)) error {
	for ; failed < maxAttempts(); failed++ {
		if 0 < failed && failed <= pauses {
			pause(failed)
		}
		if done, err := attempt(); done {
			return err
		}
	}
	return ErrTooManyRetries
}

// pause lets others change the key when so many attempts have failed. It offers the processor
// to others after 4, 8, 16… attempts: where all processors are busy, that takes milliseconds
// each time.
func pause(failed int) {
	atomics.Backoff(failed)
	if failed >= 4 && failed&(failed-1) == 0 {
		runtime.Gosched()
	}
}
