package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// GetOrCreateContext is [Cache.GetOrCreate] for callers who may not want to
// wait for ever. The context of a caller ends that caller's wait and no more:
// it gets ctx.Err(), and the creation goes on for those who still wait. When
// all have left, the context given to create is cancelled (unless
// Config.KeepCreating says otherwise). Until create returns, its creation is
// still the only one of k: whoever asks now becomes its heir, who waits, gets
// the value if there is one after all, and otherwise starts the next one. No
// heir gets an error that the cancellation may have caused, and creations do
// not overlap.
//
// The context given to create has the values of ctx, if this caller is the one
// whose function is called, and neither its deadline nor its end. It is
// cancelled when the last caller has left, when Set ends the creation, and,
// with ErrClosed as cause, when the cache is closed. It is meant for the
// creation: a value should not keep it.
//
// If ctx can end, create runs on a goroutine of its own. A panic in it goes on
// in the caller that started it, with an error that wraps the [*PanicError]
// that the others get; if nobody waits any more, Close returns it. If create
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
		panic("oncecache: nil context")
	}
	if create == nil {
		panic("oncecache: nil create function")
	}
	var e *entry[V]
	if r := c.root.Load(); r != nil {
		if e = r.entries.Load(k); e != nil { // LP(GetOrCreateContext): a hit
			if v, ok := e.get(); ok {
				return v, nil
			}
		}
	}
	last, _, err := c.slowContext(ctx, k, e, create, oneCaller)
	if err != nil {
		return v, err
	}
	return last.value, nil
}

// slowContext is slow for callers with a context.
func (c *Cache[K, V]) slowContext(ctx context.Context, k K, e *entry[V], create func(context.Context, K) (V, error), seat crew) (*entry[V], *atomics.Int64, error) {
	r := c.shared()
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err // LP(GetOrCreateContext): ended before
		}
		who := caller{ctx: ctx, seat: seat}
		var last *entry[V]
		var held *atomics.Int64
		var err error
		if e != nil {
			last, held, err = e.outcome(&who)
		} else {
			last, held, err = c.attempt(r, k, create, &who)
		}
		if err != errAgain {
			return last, held, err
		}
		e = nil
	}
}

// attempt returns the outcome of the entry of k, and creates it if there is
// none.
func (c *Cache[K, V]) attempt(r *root[K, V], k K, create func(context.Context, K) (V, error), who *caller) (*entry[V], *atomics.Int64, error) {
	ctx := who.ctx
	p := new(phase[V])
	own, cancel := atomics.WithCancelCause(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.aboard.Store(uint64(who.seat | r.extra))
	e, mine := c.enter(r, k, p)
	if !mine {
		return e.outcome(who)
	}
	who.aboard = &p.flight
	if ctx.Done() == nil {
		r.create(k, e, p, func() (V, error) { return create(own, k) })
		return e.outcome(who)
	}
	thrown := new(PanicError) // the creator's, unless it is the error below
	atomics.Go(func() { r.createAlone(own, k, e, p, create, thrown) })
	last, held, err := e.outcome(who)
	if err == error(thrown) {
		panic(rethrown{thrown})
	}
	return last, held, err
}
