package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// Cache holds one value for each key; no two creations of a key overlap. The zero value is an empty
// cache, ready to use. A Cache must not be copied after first use. A key must not change while the
// cache has it: copy a string whose memory is written again. A key that cannot be compared, as an
// interface that holds a slice, makes every method panic, as with Go's maps.
type Cache[K comparable, V any] struct {
	_ atomics.NoCopy

	// root is set by New or by the first caller, nil → non-nil, so that the zero value works.
	// Close replaces it, once.
	root atomics.Pointer[root[K, V]]
}

// root is the cache proper.
type root[K comparable, V any] struct {
	fixed[K, V]

	before  *root[K, V]                 // the root that this one replaced; nil: the cache is not closed
	entries table.Cells[K, entry[K, V]] // ends with a line that insertions and removals write
	_       atomics.CacheLinePad
}

// fixed is what a cache has from the start, before and after Close. It never changes.
type fixed[K comparable, V any] struct {
	keys table.Keys[K]
	hash table.Hash[K] // panics if a key cannot be compared

	apart   bool         // a look-up is counted, or its key may not be comparable
	owns    bool         // there is Close or OnRemove
	bounded bool         // values have a place in the order
	timed   bool         // and it has to be looked at some time
	records bool         // create functions are recorded
	refers  bool         // a value refers to something: an equal one is the same
	counts  participants // of a caller that wants a lease

	config     *Config[K, V]
	same       func(a, b V) bool // set if owns
	accounting *accounting
	backlog    *backlog[K, V]
	order      *order[K, V]   // nil: values and errors have no places
	lookups    []lookupStripe // nil: look-ups are not counted
}

// createFunc makes a value, and refreshFunc makes one from the old value, if that exists.
type (
	createFunc[K comparable, V any]  = func(ctx context.Context, k K) (V, error)
	refreshFunc[K comparable, V any] = func(ctx context.Context, k K, old V, exists bool) (V, error)
)

// New returns an empty cache, or an error that names the setting at fault.
func New[K comparable, V any](config Config[K, V]) (*Cache[K, V], error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := new(Cache[K, V])
	c.root.Store(newRoot(&config))
	return c, nil
}

// MustNew is like [New] but panics if a setting is wrong.
func MustNew[K comparable, V any](config Config[K, V]) *Cache[K, V] {
	c, err := New(config)
	if err != nil {
		panic(err)
	}
	return c
}

func newRoot[K comparable, V any](config *Config[K, V]) *root[K, V] {
	r := new(root[K, V])
	r.keys = table.NewKeys[K]()
	r.hash = r.keys.Hasher("oncecache")
	r.config, r.backlog = config, &backlog[K, V]{limit: maxClosers}
	r.accounting = &accounting{epoch: atomics.Now()}
	r.counts = oneCaller
	if r.owns = config.Close != nil || config.OnRemove != nil; r.owns {
		r.same, r.refers = sameness[V]()
	}
	r.timed = config.IdleTimeout > 0 || config.TTL > 0 || config.TTLFunc != nil
	r.bounded = r.timed || config.MaxEntries > 0 || config.MaxWeight > 0
	if r.bounded || config.ErrorTTL != 0 || config.ErrorTTLFunc != nil {
		r.order = &order[K, V]{max: config.MaxEntries, maxWeight: config.MaxWeight}
	}
	if r.owns || r.bounded {
		r.counts = callerAndLease
	}
	if config.RecordStats {
		r.lookups = make([]lookupStripe, atomics.Stripes())
	}
	r.records = config.RecordStats || config.OnCreate != nil
	r.apart = r.keys.Dynamic() || r.lookups != nil
	r.entries.Init(r.hash, config.SizeHint)
	return r
}

// shared returns the root, which all callers share.
func (c *Cache[K, V]) shared() *root[K, V] {
	if r := c.root.Load(); r != nil {
		return r
	}
	return c.install()
}

func (c *Cache[K, V]) install() *root[K, V] {
	return c.root.Install(newRoot(new(Config[K, V])))
}

// closed reports whether Close has put r in the place of one with entries.
func (r *root[K, V]) closed() bool { return r.before != nil }

// at returns k as the table has it. It panics if k cannot be compared.
func (r *root[K, V]) at(k K) table.Hashed[K] {
	if r.keys.Dynamic() {
		return table.Hashed[K]{Hash: r.hash(k, 0), Key: k}
	}
	return table.Hashed[K]{Hash: r.keys.Hash(k), Key: k}
}

// find returns the entry of k, or nil, for a call that is counted as a look-up, and the hash of k. It panics if
// k cannot be compared. Get and GetOrCreate write the first case out, because the compiler would call find.
func (r *root[K, V]) find(k K) (e *entry[K, V], hash uint64) {
	if !r.apart {
		return r.entries.Find(&r.keys, k)
	}
	at := r.at(k)
	e = r.entries.Load(at)
	if r.lookups != nil {
		r.countLookup(e)
	}
	return e, at.Hash
}

// callerOf returns a caller with this context, which counts as counts.
func callerOf(ctx context.Context, counts participants) caller {
	who := caller{counts: counts, part: partOf(ctx)}
	if ctx.Done() != nil {
		who.ctx = ctx
	}
	return who
}

// GetOrCreate returns the value of k. If there is none, it calls create and keeps the value, while all
// other callers of k wait for that call.
//
// If create returns an error, all callers of this creation get it, nothing is kept, and the next
// caller tries again. If create panics, the panic goes on in the caller that ran it, and the others
// get a [*PanicError]. If it calls [runtime.Goexit], they get [ErrGoexit].
//
// Create runs on the caller's goroutine, and may call any method for other keys. A create that asks
// for its own key gets a [*CycleError] on amd64 and arm64. On other architectures, and in cycles
// over several goroutines, it waits for ever: use GetOrCreateContext, which finds all cycles.
//
// While create runs, [Cache.Set] ends the creation: all its callers get the value that was set. After
// [Cache.Delete] they get create's result, which is not kept. When the cache is closed, they get
// [ErrClosed]. With a Config.Close function, use [Cache.Acquire] to hold the value.
//
// For a key that holds a NaN, create is called each time and nothing is kept. GetOrCreate panics if create is
// nil. A hit allocates nothing, even if create captures variables (but see https://go.dev/issue/79592).
//
// GetOrCreate is wait-free if k has a value, and otherwise blocking: it runs create or waits for the caller
// that does, and inserting waits for the mutex of one bucket. It takes effect when an entry is found that is
// ready, when the value is published, or when the entry of a create that failed is removed; if Set ended the
// creation, right after Set did.
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
		e    *entry[K, V]
		hash uint64
	)
	if !r.apart {
		e, hash = r.entries.Find(&r.keys, k)
	} else {
		e, hash = r.find(k)
	}
	if e != nil && e.mark.inUse() { // LP(GetOrCreate): a hit
		return e.value, nil
	}
	return r.create(table.Hashed[K]{Hash: hash, Key: k}, e, create)
}

// create is GetOrCreate for a key that has no value that was used, and entry e, or none. It keeps
// create nowhere, so that a closure stays on its caller's stack.
func (r *root[K, V]) create(at table.Hashed[K], e *entry[K, V], create func() (V, error)) (v V, err error) {
	if e != nil && r.use(e) { // LP(GetOrCreate): a hit whose use has to be noted
		return e.value, nil
	}
	for {
		who := caller{counts: oneCaller}
		if e != nil {
			e = r.current(e)
		}
		if e == nil {
			e = r.createOrJoin(at, create)
		} else if r.lookups != nil {
			r.countJoined(e)
		}
		last, _, err := r.outcome(e, &who)
		if err == nil {
			return last.value, nil
		}
		if err != errAgain {
			return v, explain(err, at.Key)
		}
		e = nil
	}
}

// GetOrCreateContext is [Cache.GetOrCreate] with a bound on the wait: when ctx ends, the caller gets ctx.Err(), and
// the creation goes on for the others. When all callers have left, the context given to create is cancelled; a
// value that it returns all the same is kept, an error is not. A caller that arrives before create returns is its
// heir: it gets the value if there is one after all, and otherwise starts the next creation. So no caller gets an
// error that a cancellation may have caused, and creations do not overlap.
//
// The context given to create has the values of ctx, but neither its deadline nor its end. While create runs, it is
// cancelled when the last caller has left, when Set ends the creation, and, with ErrClosed as cause, when the cache
// is closed. A value should not keep it. For a creation that goes on without callers, call with
// [context.WithoutCancel] on a goroutine of its own.
//
// If ctx can end, create runs on a goroutine of its own. A panic in create goes on in the caller that started it,
// with an error that wraps the [*PanicError] that the others get; if no caller waits, Close returns it. After
// runtime.Goexit they all get [ErrGoexit]; where create ran on the caller's goroutine, that ends. If ctx has ended
// already, GetOrCreateContext returns the value if there is one, and otherwise ctx.Err(). A nil create stands for
// Config.Create. GetOrCreateContext panics if ctx is nil, or both functions are.
//
// GetOrCreateContext is wait-free if k has a value, and otherwise blocking: it waits for create or until ctx
// ends, and for the mutex of one bucket. It takes effect as GetOrCreate does, or when the caller leaves.
func (c *Cache[K, V]) GetOrCreateContext(ctx context.Context, k K, create func(context.Context, K) (V, error)) (v V, err error) {
	if ctx == nil {
		panic("oncecache: GetOrCreateContext called with a nil context")
	}
	r := c.shared()
	if create == nil {
		if create = r.config.Create; create == nil {
			panic("oncecache: GetOrCreateContext called with a nil function")
		}
	}
	e, hash := r.find(k)
	if e != nil && r.use(e) { // LP(GetOrCreateContext): a hit
		return e.value, nil
	}
	last, _, err := r.getOrCreate(ctx, table.Hashed[K]{Hash: hash, Key: k}, e, create, oneCaller)
	if err != nil {
		return v, err
	}
	return last.value, nil
}

// Load is [Cache.GetOrCreateContext] with Config.Create as the function. It panics if ctx or
// Config.Create is nil.
//
// Load is blocking, and takes effect, as GetOrCreateContext does.
func (c *Cache[K, V]) Load(ctx context.Context, k K) (V, error) {
	return c.GetOrCreateContext(ctx, k, nil)
}

// getOrCreate is GetOrCreateContext, and Acquire, for a key that has entry e, or none.
func (r *root[K, V]) getOrCreate(ctx context.Context, at table.Hashed[K], e *entry[K, V], create createFunc[K, V], counts participants) (last *entry[K, V], held *atomics.Int64, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err // LP(GetOrCreateContext): ended before
		}
		who := callerOf(ctx, counts)
		if e = r.current(e); e != nil {
			if r.lookups != nil {
				r.countJoined(e)
			}
			last, held, err = r.outcome(e, &who)
		} else {
			last, held, err = r.createContext(ctx, at, create, &who)
		}
		if err != errAgain {
			return last, held, explain(err, at.Key)
		}
		e = nil
	}
}

// Wait returns the value of k, and waits for it if it is being created, as a caller of that creation. It creates
// nothing: if k is absent it returns [ErrNotFound], as it does if all callers of the creation had left before
// and it fails. If ctx has ended already, Wait returns the value if there is one. It panics if ctx is nil.
//
// Wait is wait-free if k is absent or has a value, and otherwise blocking: it waits for a creation or until ctx
// ends. It takes effect as GetOrCreateContext does, or when k is not found.
func (c *Cache[K, V]) Wait(ctx context.Context, k K) (v V, err error) {
	if ctx == nil {
		panic("oncecache: Wait called with a nil context")
	}
	r := c.shared()
	e, hash := r.find(k) // LP(Wait): a hit, or absent
	for now := e; ; e = now {
		switch {
		case e != nil && r.use(e):
			return e.value, nil
		case e == nil && r.closed():
			return v, ErrClosed
		case e == nil || e.state.Load().closing():
			return v, ErrNotFound
		}
		if r.current(e) != nil {
			break
		}
		now = r.entries.Load(table.Hashed[K]{Hash: hash, Key: k}) // LP(Wait): another may have come in its place
	}
	if err := ctx.Err(); err != nil {
		return v, err
	}
	if r.lookups != nil {
		r.countJoined(e)
	}
	who := callerOf(ctx, oneCaller)
	last, _, err := r.outcome(e, &who)
	switch err {
	case nil:
		return last.value, nil
	case errAgain:
		return v, ErrNotFound
	}
	return v, explain(err, k)
}

// Get returns the value of k, and whether there is one. It does not wait: a key whose value is
// being created has none yet.
//
// Get is wait-free. It takes effect when k is looked up, or when a value that was being created
// then is published.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	r := c.root.Load()
	if r == nil {
		r = c.install()
	}
	var e *entry[K, V]
	if !r.apart {
		e, _ = r.entries.Find(&r.keys, k)
	} else {
		e, _ = r.find(k)
	}
	if e != nil && (e.mark.inUse() || r.use(e)) { // LP(Get)
		return e.value, true
	}
	return v, false
}

// Peek is like [Cache.Get], but does not count as a use of the value or as a look-up, and starts no
// renewal.
//
// Peek is wait-free. It takes effect as Get does.
func (c *Cache[K, V]) Peek(k K) (v V, ok bool) {
	r := c.shared()
	if e := r.entries.Load(r.at(k)); e.has() { // LP(Peek)
		return e.value, true
	}
	return v, false
}
