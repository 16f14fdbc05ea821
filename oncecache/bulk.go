package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// GetOrCreateMany returns the values of keys. It calls create once with those
// that are neither cached nor being created, if there are any, keeps what create
// returns for them, and waits for the others. Keys for which create returns no
// value are left out: other callers that wait for them get [ErrNotFound]. Values
// for keys that create was not asked for are dropped, and closed, if there is a
// Config.Close function.
//
// If create returns an error, each of its keys without a value, or with the zero
// value, gets that error, as with [Cache.GetOrCreateContext]. If the error is a
// [KeyErrors], a key gets the error that it has there. If create panics or calls
// [runtime.Goexit], all of its keys get that. GetOrCreateMany returns the values
// that it has, and a KeyErrors with the errors of the other keys. When ctx ends,
// the keys that are left get ctx.Err().
//
// Create is called again for keys whose creations, by other calls, have failed
// after all their callers had left. It is called for one key alone if the creation
// has to wait, for a [Cache.Refresh] of the value that the key had or because of
// Config.CloseBeforeCreate; these keys come last. A create that fails with
// ErrNotFound has left out all keys that have no value.
//
// Keys may be repeated. Two calls never wait for each other, whatever keys they
// share: each has called its function before it waits. The context of create is
// that of GetOrCreateContext, and is cancelled when no caller wants any of its
// keys. With a Config.Close function, the call holds leases of all its values
// until it returns: so it may exceed MaxEntries, and none of its values is evicted
// before it returns. With CloseBeforeCreate it holds none, as
// creations would wait for them. To hold values longer, use [Cache.Acquire].
//
// GetOrCreateMany panics if ctx or create is nil.
//
// GetOrCreateMany is wait-free for each key that has a value, and otherwise
// blocking: it waits for create, for the creations of others or until ctx ends,
// and for the mutex of one bucket at a time. It takes effect for each key as
// GetOrCreateContext does.
func (c *Cache[K, V]) GetOrCreateMany(ctx context.Context, keys []K, create func(context.Context, []K) (map[K]V, error)) (map[K]V, error) {
	if ctx == nil {
		panic("oncecache: GetOrCreateMany called with a nil context")
	}
	if create == nil {
		panic("oncecache: GetOrCreateMany called with a nil function")
	}
	r := c.shared()
	all := &outcomes[K, V]{root: r, counts: oneCaller, found: make(map[K]V, len(keys))}
	if r.close != nil && r.claims == nil {
		all.counts = callerAndLease
	}
	defer all.putBack()
	for left := keys; len(left) > 0; {
		left = c.round(ctx, left, create, all)
		all.looked = true
	}
	all.oneByOne = true
	for _, k := range all.later {
		for left := []K{k}; len(left) > 0; {
			left = c.round(ctx, left, create, all)
		}
	}
	return all.found, all.err()
}

// round takes the values that there are, calls the function for keys without an entry,
// and waits for the others. It returns the keys that have to be looked for again.
func (c *Cache[K, V]) round(ctx context.Context, keys []K, create func(context.Context, []K) (map[K]V, error), all *outcomes[K, V]) (again []K) {
	r := all.root
	var b *batch[K]
	for i, k := range keys {
		e, hash := all.find(k) // LP(GetOrCreateMany): a hit
		if e != nil && all.hit(e) || all.has(k) {
			continue // or it is repeated
		}
		if b == nil {
			who := caller{counts: all.counts}
			who.within(ctx)
			b = newBatch(r, who, len(keys)-i)
			b.only = all.oneByOne
		}
		b.add(table.Hashed[K]{Hash: hash, Key: k}, r.current(e))
	}
	if b == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		for i := range b.places {
			all.fail(b.places[i].entry.key, err)
		}
		return nil
	}
	for _, k := range b.find(ctx) {
		all.later = append(all.later, k)
	}
	if ctx.Done() != nil {
		b.startAlone(func(b *batch[K]) []result { return call(b, create) })
	} else {
		b.start(func(b *batch[K]) []result { return call(b, create) })
	}
	return all.gather(b)
}

// outcomes has the values and errors of a call of GetOrCreateMany so far.
type outcomes[K comparable, V any] struct {
	root   *root[K]
	counts participants // the counts of the call at each key: no leases if creations may wait for them
	found  map[K]V
	failed KeyErrors[K]
	held   []holding[K]

	looked bool // the keys were looked for before

	// later are keys whose creations have to wait for their turn. They come last, one by
	// one, because a creation that one of them waits for might wait for another.
	later    []K
	oneByOne bool
}

// holding is a lease that a call holds until it returns.
type holding[K comparable] struct {
	entry *entry[K]
	word  *atomics.Int64
}

// find returns the entry of k, or nil, and its hash. It counts the look-up if it is the first.
func (o *outcomes[K, V]) find(k K) (e *entry[K], hash uint64) {
	if o.looked {
		at := o.root.at(k)
		return o.root.entries.Load(at), at.Hash
	}
	return o.root.find(k)
}

// hit takes the value of e, if there is one that can be held.
func (o *outcomes[K, V]) hit(e *entry[K]) bool {
	if o.counts == oneCaller {
		v, ok := use[V](o.root, e)
		if ok {
			o.found[e.key] = v
		}
		return ok
	}
	p := e.state.Load()
	if !p.ready() {
		return false
	}
	held, ok := o.root.hold(e, p)
	if ok {
		o.take(e.key, e, held)
	}
	return ok
}

// has reports whether k is found.
func (o *outcomes[K, V]) has(k K) bool {
	_, ok := o.found[k]
	return ok
}

func (o *outcomes[K, V]) take(k K, e *entry[K], held *atomics.Int64) {
	o.found[k] = *valueOf[V](e)
	if held != nil {
		o.held = append(o.held, holding[K]{e, held})
	}
}

// fail notes the error of k, unless k is repeated and a later look has found a value.
func (o *outcomes[K, V]) fail(k K, err error) {
	if o.has(k) {
		return
	}
	if o.failed == nil {
		o.failed = KeyErrors[K]{}
	}
	o.failed[k] = explain(err, k)
}

func (o *outcomes[K, V]) err() error {
	if o.failed == nil {
		return nil
	}
	return o.failed
}

// putBack ends the leases. Values that have left the cache meanwhile are closed.
func (o *outcomes[K, V]) putBack() {
	var free []*entry[K]
	for _, h := range o.held {
		if o.root.sieve != nil {
			o.root.wasHeld(h.entry)
		}
		if h.entry.countOff(h.word) {
			free = append(free, h.entry)
		}
	}
	o.root.later(free)
}
