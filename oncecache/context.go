package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
)

// GetOrCreateContext is [Cache.GetOrCreate] for callers that must not wait for
// ever. When ctx ends, the caller gets ctx.Err(), and the creation goes on for the
// other callers. When all have left, the context given to create is cancelled,
// unless Config.KeepCreating is set. Until create returns, its creation is still
// the only one of k: a caller that comes now is an heir of it. An heir waits, gets
// the value if there is one after all, and otherwise starts the next creation. No
// heir gets an error that the cancellation may have caused, and creations do not
// overlap.
//
// The context given to create has the values of the ctx that came with it, but
// neither its deadline nor its end. While create runs, that context is cancelled
// when the last caller has left, when Set ends the creation, and, with ErrClosed as
// cause, when the cache is closed. It is meant for the creation: when that has
// ended, nothing cancels it, not even Close, so a value should not keep it.
//
// If ctx can end, create runs on a goroutine of its own. A panic in create goes on
// in the caller that started it, with an error that wraps the [*PanicError] that
// the other callers get; if no caller waits any more, Close returns it. If create
// calls [runtime.Goexit], this caller gets [ErrGoexit] too. If ctx cannot end,
// as context.Background, create runs on the caller's goroutine, and all is as
// with GetOrCreate.
//
// If ctx has ended already, GetOrCreateContext returns the value if there is
// one, and otherwise ctx.Err(), without calling create. It panics if ctx or
// create is nil.
//
// A create that captures variables is allocated by the caller, even for a hit;
// one that needs only its arguments is not.
//
// GetOrCreateContext is wait-free if k has a value, and otherwise blocking: it
// waits for create or until ctx ends, and for the mutex of one bucket. It takes
// effect as GetOrCreate does, or when the caller leaves.
func (c *Cache[K, V]) GetOrCreateContext(ctx context.Context, k K, create func(context.Context, K) (V, error)) (v V, err error) {
	if ctx == nil {
		panic("oncecache: GetOrCreateContext called with a nil context")
	}
	if create == nil {
		panic("oncecache: GetOrCreateContext called with a nil function")
	}
	var e *entry[K]
	r := c.root.Load()
	if r == nil {
		c.install()
	} else if e, _ = r.find(k); e != nil { // LP(GetOrCreateContext): a hit
		if v, ok := use[V](r, e); ok {
			return v, nil
		}
	}
	last, _, _, err := c.slowContext(ctx, k, e, creatorOf(create), oneCaller)
	if err != nil {
		return v, err
	}
	return *valueOf[V](last), nil
}

// slowContext is slow for callers with a context, in a cache that has a root. Created
// tells whether the caller has made the value.
func (c *core[K]) slowContext(ctx context.Context, k K, e *entry[K], create creator, counts participants) (last *entry[K], held *atomics.Int64, created bool, err error) {
	r := c.root.Load()
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, false, err // LP(GetOrCreateContext): ended before
		}
		who := caller{counts: counts}
		who.within(ctx)
		if e = r.current(e); e != nil {
			r.joins(e)
			last, held, err = e.outcome(&who)
		} else {
			last, held, err = r.attempt(ctx, k, create, &who)
		}
		if err != errAgain {
			return last, held, who.created, explain(err, k)
		}
		r.giveUp(last, held)
		e = nil
	}
}

// LoadOrCreate is [Cache.GetOrCreateContext] that also reports whether the value was
// loaded: loaded is false if this call's create made the value, and true if the
// value was there, or another call has made or set it.
//
// LoadOrCreate is blocking, and takes effect as GetOrCreateContext does.
func (c *Cache[K, V]) LoadOrCreate(ctx context.Context, k K, create func(context.Context, K) (V, error)) (v V, loaded bool, err error) {
	if ctx == nil {
		panic("oncecache: LoadOrCreate called with a nil context")
	}
	if create == nil {
		panic("oncecache: LoadOrCreate called with a nil function")
	}
	r := c.shared()
	e, _ := r.find(k) // LP(LoadOrCreate): a hit
	if e != nil {
		if v, ok := use[V](r, e); ok {
			return v, true, nil
		}
	}
	last, _, created, err := c.slowContext(ctx, k, e, creatorOf(create), oneCaller)
	if err != nil {
		return v, false, err
	}
	return *valueOf[V](last), !created, nil
}

// attempt returns the outcome of the entry of k, and creates it if there is
// none.
func (r *root[K]) attempt(ctx context.Context, k K, create creator, who *caller) (*entry[K], *atomics.Int64, error) {
	both := new(struct {
		own flight
		phase[K]
		ext     extended
		context createContext
	})
	p, own := &both.phase, &both.context
	p.flight, both.own.ext, own.part = &both.own, &both.ext, &both.own
	own.Context, p.ext.cancel = atomics.WithCancelCause(detached(ctx))
	p.participants.Store(uint64(who.counts | r.extra))
	p.since = r.now()
	alone := who.ctx != nil
	if !alone {
		p.by = goid.Token()
	}
	e, mine := r.enter(r.at(k), r.of.freshEntry(k), p)
	if !mine {
		return e.outcome(who)
	}
	who.joined, who.created = p.flight, true
	if alone {
		n := &lone[K]{creation: creation[K]{root: r, entry: e, phase: p, ctx: own}}
		return n.outcomeAlone(create, who)
	}
	returned := false
	defer func() {
		if !returned { // OnCreate or a Close function may have ended the goroutine when there is a value
			last, held, _ := e.outcome(who)
			r.giveUp(last, held)
		}
	}()
	n := creation[K]{root: r, entry: e, phase: p, ctx: own}
	if who.part != nil {
		d, err := who.part.depend(p.flight, k, calls)
		if err == nil { // or its part no longer waits for the function that asks for k
			defer d.end()
		}
	}
	n.run(nil, func(e *entry[K]) error { return r.of.makeValue(own, create, e) })
	returned = true
	return e.outcome(who)
}

// detached returns ctx without its end and its deadline, which it may not have.
func detached(ctx context.Context) context.Context {
	if _, ends := ctx.Deadline(); !ends && ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// lone is a creation whose function has a goroutine of its own.
type lone[K comparable] struct {
	creation[K]
	thrown PanicError // how the function ended
}

// outcomeAlone is the rest of attempt for a function that has a goroutine of its
// own.
func (n *lone[K]) outcomeAlone(create creator, who *caller) (*entry[K], *atomics.Int64, error) {
	if who.part != nil {
		d, err := who.part.depend(n.phase.flight, n.entry.key, waits)
		if err == nil { // or its part no longer waits for the function that asks for the key
			who.known = n.phase.flight
			defer d.end()
		}
	}
	// The dependence on it is known before the goroutine begins. So if it would wait for
	// itself, for its turn, it finds that out, and not this caller.
	atomics.Go(func() {
		n.phase.runAlone()
		n.run(&n.thrown, func(e *entry[K]) error { return n.root.of.makeValue(n.ctx, create, e) })
	})
	last, held, err := n.entry.outcome(who)
	if err == error(&n.thrown) {
		panic(rethrown{&n.thrown})
	}
	return last, held, err
}

// Wait returns the value of k, and waits for it if it is being created, until
// ctx ends. It creates nothing. If k is absent it returns [ErrNotFound]. If the
// creation fails it returns the error of that, or ErrNotFound if all callers had
// left before, or if the creation begins anew because it has to wait. While Wait
// waits, it is a caller of the creation, which is not cancelled.
//
// If ctx has ended already, Wait returns the value if there is one, ErrNotFound
// if k is absent, and otherwise ctx.Err(). It panics if ctx is nil.
//
// Wait is wait-free if k is absent or has a value, and otherwise blocking: it
// waits for a creation or until ctx ends. It takes effect as
// GetOrCreateContext does, or when k is not found.
func (c *Cache[K, V]) Wait(ctx context.Context, k K) (v V, err error) {
	if ctx == nil {
		panic("oncecache: Wait called with a nil context")
	}
	r := c.shared()
	e, _ := r.find(k) // LP(Wait): a hit, or absent
	if e == nil {
		if r.before != nil {
			return v, ErrClosed
		}
		return v, ErrNotFound
	}
	if v, ok := use[V](r, e); ok {
		return v, nil
	}
	if r.current(e) == nil {
		if v, ok := use[V](r, e); ok { // LP(Wait): it has become ready since, and is being evicted
			return v, nil
		}
		return v, ErrNotFound
	}
	if err := ctx.Err(); err != nil {
		return v, err
	}
	r.joins(e)
	who := caller{counts: oneCaller}
	who.within(ctx)
	last, _, err := e.outcome(&who)
	switch err {
	case nil:
		return *valueOf[V](last), nil
	case errAgain:
		return v, ErrNotFound
	}
	return v, explain(err, k)
}
