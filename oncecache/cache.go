package oncecache

import (
	"iter"
	"reflect"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// Cache holds one value for each key, created at most once at a time. The zero
// value is an empty cache, ready to use. A Cache must not be copied after
// first use.
//
// A key must not change while the cache has it: copy a string that shares memory which
// is written again, as one of unsafe.String may.
type Cache[K comparable, V any] struct {
	_ atomics.NoCopy
	_ [0]*V // so that none can be converted to one of other values

	core[K]
}

// core is all of a cache that does not depend on the type of its values.
type core[K comparable] struct {
	// root is set by New or by the first caller, nil → non-nil once, so that
	// the zero value works.
	root atomics.Pointer[root[K]]
}

// root is the cache proper. It never changes, but that Close puts an empty one
// in its place.
type root[K comparable] struct {
	keys table.Keys[K]
	hash table.Hash[K] // panics if a key cannot be compared

	before     *root[K]    // the root that this one replaced; nil if not closed
	accounting *accounting // the same as that of before
	backlog    *backlog[K] // the same as that of before
	spares     []spare[K]  // the same as those of before; none if creations must have flights

	of values[K] // kind[K, V], of the values of this cache

	close         closer[K]                                          // calls Config.Close and Config.OnRemove; nil: there is neither
	same          func(a, b *entry[K]) bool                          // whether the values of two entries are one; nil: nothing is closed
	createTimeout time.Duration                                      // Config.CreateTimeout; zero: none
	timed         func(*root[K], *entry[K], *phase[K]) (stop func()) // starts its timer; nil: there is none

	apart    bool      // a look-up is counted, or its key may not be comparable
	marked   bool      // each entry has a mark, and a phase when it is ready: there is a sieve, or close
	plain    bool      // neither of these
	recorder recording // nil: create functions are not recorded

	onLeak  func(K, []byte)                                      // Config.OnLeak
	renews  bool                                                 // this is the root of renewals
	follows func(*entry[K])                                      // is called when a creation has ended; nil: nothing is to be done
	awaited func(e *entry[K], p *phase[K], n candidate[K]) error // awaitRenewal, in the root of renewals
	expires bool                                                 // there is Config.TTL
	fails   bool                                                 // whether the table may have entries that have failed, or expired

	// renewals is nil until the first Refresh, nil → non-nil by CAS.
	renewals atomics.Pointer[core[K]] // of values of type renewal[K]

	sieve  bounded[K]     // nil: the cache has no bounds
	kept   errorKeeper[K] // nil: errors are not kept
	claims claiming[K]    // nil: without Config.CloseBeforeCreate; the same as that of before

	counts participants // of a caller that wants a lease
	extra  participants // kept, if Config.KeepCreating

	entries table.Cells[K, entry[K]] // ends with a line that insertions and removals write
	_       atomics.CacheLinePad
}

// New returns an empty cache, or an error that names the setting at fault.
func New[K comparable, V any](config Config[K, V]) (*Cache[K, V], error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := settings[K]{
		sizeHint: config.SizeHint, closeConcurrency: config.CloseConcurrency, keepCreating: config.KeepCreating,
		createTimeout: config.CreateTimeout, onLeak: config.OnLeak,
	}
	if config.CloseBeforeCreate {
		s.claims = newClaims[K]
	}
	if config.CreateTimeout > 0 {
		s.timed = timed[K]
	}
	if config.ErrorTTL != nil {
		s.kept = &keptErrors[K]{ttl: config.ErrorTTL}
	}
	var lives *lifetimes[K]
	if ttl := config.TTL; ttl != nil {
		lives = &lifetimes[K]{ttl: func(e *entry[K]) time.Duration { return ttl(e.key, *valueOf[V](e)) }, jitter: config.TTLJitter}
	}
	var bounds *sieve[K]
	if config.MaxEntries > 0 || config.MaxWeight > 0 || config.IdleTimeout > 0 || lives != nil {
		bounds = &sieve[K]{max: config.MaxEntries, maxWeight: config.MaxWeight, weighs: weigher(config.Weight), idle: config.IdleTimeout, lives: lives}
		s.sieve, s.expires = bounds, lives != nil
	}
	if closes, onRemove := config.Close, config.OnRemove; closes != nil || onRemove != nil {
		same := sameness[V]()
		c := &closing[K]{recurs: identifies(reflect.TypeFor[V]())}
		if closes != nil {
			c.call = func(e *entry[K]) error { return closes(e.key, *valueOf[V](e)) }
		}
		if onRemove != nil {
			c.onRemove = func(e *entry[K], why Reason, err error) { onRemove(e.key, *valueOf[V](e), why, err) }
		}
		s.close = c
		s.same = func(a, b *entry[K]) bool { return same(*valueOf[V](a), *valueOf[V](b)) }
	}
	var of values[K] = kind[K, V]{}
	if s.close != nil || s.sieve != nil {
		of = markedKind[K, V]{}
	}
	r := newRoot(of, table.NewKeys[K](), &s)
	if bounds != nil {
		bounds.shown = &r.accounting.weight
	}
	if config.RecordStats || config.OnCreate != nil {
		c := &recorder[K]{onCreate: config.OnCreate}
		if config.RecordStats {
			c.lookups, r.apart, r.plain = make([]lookupStripe, atomics.Stripes()), true, false
		}
		r.recorder = c
	}
	if renew := config.Renew; renew != nil {
		lives.renewing(r, config.RenewAhead, renewed(r, renew))
	}
	c := new(Cache[K, V])
	c.root.Store(r)
	return c, nil
}

// MustNew is [New] for settings that are known to be right: it panics where
// New returns an error.
func MustNew[K comparable, V any](config Config[K, V]) *Cache[K, V] {
	c, err := New(config)
	if err != nil {
		panic(err)
	}
	return c
}

// settings is a Config without V. New alone makes the parts that only some caches need,
// so that the zero Cache brings none of these into a program.
type settings[K comparable] struct {
	sizeHint, closeConcurrency int
	keepCreating               bool
	createTimeout              time.Duration
	onLeak                     func(K, []byte)
	timed                      func(*root[K], *entry[K], *phase[K]) (stop func())
	sieve                      bounded[K]
	kept                       errorKeeper[K]
	expires, renews            bool
	claims                     func(table.Hash[K]) claiming[K]

	close closer[K]
	same  func(a, b *entry[K]) bool
}

func newRoot[K comparable](of values[K], keys table.Keys[K], config *settings[K]) *root[K] {
	r := &root[K]{
		keys: keys, accounting: &accounting{epoch: atomics.Now()}, counts: oneCaller, of: of,
		close: config.close, timed: config.timed, createTimeout: config.createTimeout, onLeak: config.onLeak,
	}
	r.hash = r.keys.Hasher("oncecache")
	r.apart = r.keys.Dynamic()
	r.entries.Init(r.hash, config.sizeHint)
	r.sieve, r.kept = config.sieve, config.kept
	r.expires = config.expires
	r.fails = r.kept != nil || r.createTimeout > 0 || r.expires
	r.backlog = &backlog[K]{limit: config.closeConcurrency}
	if r.backlog.limit == 0 {
		r.backlog.limit = defaultCloseConcurrency
	}
	r.same = config.same
	if r.marked = r.close != nil || r.sieve != nil; r.marked {
		r.counts = callerAndLease
	}
	r.plain = !r.apart && !r.marked
	if config.claims == nil && config.timed == nil && !config.renews {
		r.addSpares()
	}
	if config.claims != nil {
		r.claims = config.claims(r.hash)
	}
	if config.keepCreating {
		r.extra = kept
	}
	return r
}

// shared returns the root, which all callers share.
func (c *Cache[K, V]) shared() *root[K] {
	if r := c.root.Load(); r != nil {
		return r
	}
	return c.install()
}

// sharedOf is shared, where V is not known.
func (c *core[K]) sharedOf(of values[K]) *root[K] {
	if r := c.root.Load(); r != nil {
		return r
	}
	return c.install(of)
}

// at returns k as the table has it. It panics if k cannot be compared.
func (r *root[K]) at(k K) table.Hashed[K] {
	if r.keys.Dynamic() {
		return table.Hashed[K]{Hash: r.hash(k, 0), Key: k}
	}
	return table.Hashed[K]{Hash: r.keys.Hash(k), Key: k}
}

// remove takes e out of the table, and reports whether it was there.
func (r *root[K]) remove(e *entry[K]) bool { return r.entries.CompareAndDelete(r.at(e.key), e) }

// find returns the entry of k, or nil, for a call that is counted as a look-up, and the hash of
// k. It panics if k cannot be compared. Get and GetOrCreate write the plain case out, because the compiler
// would call find, and keep r meanwhile.
func (r *root[K]) find(k K) (e *entry[K], hash uint64) {
	if r.apart {
		at := r.at(k)
		e = r.entries.Load(at)
		if r.recorder != nil {
			r.recorder.countLookup(e)
		}
		return e, at.Hash
	}
	return r.entries.Find(&r.keys, k)
}

// seek is find for a call that is not counted.
func (r *root[K]) seek(k K) *entry[K] { return r.entries.Load(r.at(k)) }

func (c *Cache[K, V]) install() *root[K] {
	return c.core.install(kind[K, V]{})
}

func (c *core[K]) install(of values[K]) *root[K] {
	return c.root.Install(newRoot(of, table.NewKeys[K](), new(settings[K])))
}

// storable reports whether k can be found again once it is stored: whether it
// holds no NaN. It panics if k cannot be compared.
func (r *root[K]) storable(k K) bool {
	if r.keys.Findable(k) {
		return true
	}
	r.hash(k, 0)
	return false
}

// GetOrCreate returns the value of k. If there is none, it calls create and
// keeps the value, while all other callers of k wait for that call.
//
// If create returns an error, all callers of this one creation get the error
// and no value, nothing is kept, and the next caller creates anew. If create
// panics, the panic goes on in the caller that ran it, and the others get a
// [*PanicError]. If it calls [runtime.Goexit], they get [ErrGoexit].
//
// Create runs on the caller's goroutine, outside every lock: it may take its
// time, and may call any method for other keys. A create that asks for its
// own key gets a [*CycleError] on amd64 and arm64. Elsewhere, and if creates ask
// for each other's keys on several goroutines, they wait until a call sets a
// value. GetOrCreateContext finds all cycles.
//
// While create runs, [Cache.Set] ends the creation: all its callers get the value
// that was set, and create's result is dropped. [Cache.Delete] makes the cache
// forget the creation: its callers get its result, which is not kept.
//
// If the creation is one of [Cache.GetOrCreateContext] whose callers had all
// left before, and it fails, GetOrCreate creates anew. When the cache is closed,
// and afterwards, all callers get [ErrClosed]. With a Config.Close function, the
// value is closed when it is no longer the key's, even if a caller still uses it:
// use [Cache.Acquire] to hold a value.
//
// A key that holds a NaN is equal to no key, so create is called each time and
// nothing is kept. GetOrCreate panics if create is nil.
//
// A hit allocates nothing, even if create captures variables: create never leaves
// the caller's stack. The exception is a call in a closure that the compiler
// inlines into another package, with the function that returns the closure
// (https://go.dev/issue/79592).
//
// GetOrCreate is wait-free if k has a value, and otherwise blocking: it runs
// create or waits for the caller that does, and inserting waits for the mutex
// of one bucket. It takes effect when an entry is found that is ready, when
// the value that create returned is published, or when the entry of a create
// that failed is removed; if Set ended the creation, right after Set did.
func (c *Cache[K, V]) GetOrCreate(k K, create func() (V, error)) (V, error) {
	return c.getOrCreate(k, create) // apart: see internal/atomics/inline.go
}

func (c *Cache[K, V]) getOrCreate(k K, create func() (V, error)) (V, error) {
	if create == nil {
		panic("oncecache: GetOrCreate called with a nil function")
	}
	r := c.root.Load()
	if r == nil {
		r = c.install()
	}
	var (
		e    *entry[K]
		hash uint64
	)
	if r.plain {
		if e, hash = r.entries.Find(&r.keys, k); e != nil && e.state.Load() == nil { // LP(GetOrCreate): a hit
			return *valueOf[V](e), nil
		}
	} else if e, hash = r.find(k); e != nil && e.inUse(r.marked) { // LP(GetOrCreate): likewise
		return *valueOf[V](e), nil
	}
	return c.slow(table.Hashed[K]{Hash: hash, Key: k}, e, create)
}

// Get returns the value of k, and whether there is one. It does not wait: a
// key whose value is being created has none yet.
//
// Get is wait-free. It takes effect when k is looked up, or when a value that
// was being created then is published.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	r := c.root.Load()
	if r == nil {
		r = c.install()
	}
	if r.plain {
		e, _ := r.entries.Find(&r.keys, k) // LP(Get): absent, ready, or being created
		if e == nil || e.state.Load() != nil {
			return v, false
		}
		return *valueOf[V](e), true
	}
	if e, _ := r.find(k); e != nil { // LP(Get): likewise
		return use[V](r, e)
	}
	return v, false
}

// Len returns the number of keys that have a value. It is exact while no call
// that changes the cache and no creation starts or ends, and no value expires, however many
// creations are under way; otherwise it may be off by the number of calls and
// creations that do, and, because each processor counts for itself, by a tenth of the largest
// number that there has been. A creation may end a moment after its caller's return.
//
// Len is wait-free. It takes effect when its counters are read, one by one.
func (c *Cache[K, V]) Len() int { return c.len() }

func (c *core[K]) len() int {
	r := c.root.Load()
	if r == nil {
		return 0
	}
	n := r.size() - r.creating() // LP(Len)
	if c := r.renewals.Load(); c != nil {
		n += c.root.Load().entries.Len()
	}
	return max(0, n)
}

// Keys returns an iterator over the keys that have a value, in no order. It
// yields the keys that [Cache.All] would yield.
//
// Keys is blocking on the mutex of one bucket at a time, and never inside the
// loop body. It takes effect for each key at some moment since the loop began.
func (c *Cache[K, V]) Keys() iter.Seq[K] {
	return c.eachKey
}

func (c *core[K]) eachKey(yield func(K) bool) {
	r := c.root.Load()
	if r == nil {
		return
	}
	for e := range r.entries.All() { // LP(Keys)
		if e.has() && !yield(e.key) {
			return
		}
	}
}

// All returns an iterator over the keys that have a value, and the values, in
// no order. It is not a snapshot: it yields each key at most once, every key
// that has a value throughout, and some of the keys that come or go meanwhile.
// The value that it yields was the key's at some moment since the loop began. The
// loop body may call any method; a key that it deletes or sets may still be
// yielded with its old value.
//
// All is blocking on the mutex of one bucket at a time, and never inside the
// loop body. It takes effect for each key at some moment since the loop began.
func (c *Cache[K, V]) All() iter.Seq2[K, V] { return c.each }

// each is not a function literal in All, because the compiler would not make
// an instruction of the load of root there.
func (c *Cache[K, V]) each(yield func(K, V) bool) {
	r := c.root.Load()
	if r == nil {
		return
	}
	for e := range r.entries.All() { // LP(All)
		v, ok := get[V](e)
		if ok && !yield(e.key, v) {
			return
		}
	}
}
