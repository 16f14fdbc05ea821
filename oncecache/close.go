package oncecache

import (
	"context"
	"errors"
	"runtime/debug"
)

// Close closes the cache: from now on it is empty and stays so. Those who ask
// for a key, and those who wait for a creation, get [ErrClosed]; the contexts
// of create functions that run are cancelled, with ErrClosed as cause. What a
// create function returns after that is not kept.
//
// If there is a Config.Close function, it is called for every value that no
// lease holds, and for the others when their last lease is released. Close
// waits for that and for create functions that run, until ctx ends; then it
// returns the error of ctx, and the closing goes on without it. Close returns
// beside that, joined, whatever Config.Close returned for values of this
// cache, and the panics that it had no other caller to give to: see
// [Config] and [Cache.GetOrCreateContext]. The first 100 of these are kept.
//
// Close may be called again, to wait again and for the same errors. A create
// or Config.Close function that calls it waits for itself until ctx ends.
//
// A call that Close overtakes may still find and store values. They are
// removed and closed all the same, and no call that begins after Close has
// returned sees them.
//
// After Close, Get, All, Keys and Len find nothing, Delete and SetIfAbsent do
// nothing, and Set stores nothing: it closes the value, if there is a
// Config.Close function. Close panics if ctx is nil.
//
// Close is blocking: it waits for create functions, for leases, and for the
// mutex of one bucket at a time. It takes effect when callers no longer find
// the table; a creation that ended before it was removed there is not undone.
func (c *Cache[K, V]) Close(ctx context.Context) error {
	if ctx == nil {
		panic("oncecache: nil context")
	}
	r := c.retreat()
	r.books.work.Or(uint64(closed))
	r.books.ground()
	if renewals := r.renewals.Load(); renewals != nil {
		renewals.shared().drain() // first, as a Close function may call runtime.Goexit
	}
	r.drain()
	return r.books.verdict(r.books.wait(ctx))
}

// retreat puts an empty root in place of the one that is to be closed, and
// returns that one. If several callers come at once, each puts its own there,
// and one is as good as another: nothing is ever stored in them.
func (c *Cache[K, V]) retreat() *root[K, V] {
	r := c.shared()
	if r.before != nil {
		return r.before
	}
	n := newRoot(Config[K, V]{Close: r.close})
	n.before, n.books = r, r.books
	c.root.Store(n) // LP(Close)
	return r
}

// drain removes everything from the table.
func (r *root[K, V]) drain() {
	drained := false
	defer func() {
		if !drained {
			r.drain() // a Close function called runtime.Goexit
		}
	}()
	for found := range r.entries.All() {
		if e := r.entries.LoadAndDelete(r.at(found.key)); e != nil {
			r.expel(e)
		}
	}
	drained = true
}

// expel ends e, which Close has taken out of the table.
func (r *root[K, V]) expel(e *entry[K, V]) {
	p := e.state.Load()
	if p.creating() && e.state.CompareAndSwap(p, &phase[K, V]{err: ErrClosed}) { // LP(GetOrCreate): caught by Close
		r.books.finish(oneCreating)
		p.end()
		p.callOff(ErrClosed)
		return
	}
	r.retire(e)
}

// retire follows the removal of e from the table by its caller: it closes the
// value, if it is to be closed, or leaves that to those who use it.
func (r *root[K, V]) retire(e *entry[K, V]) { r.release(e, r.leave(e)) }

// leave is the first half of retire: it takes e off the books. It returns the
// state of e if release needs it.
func (r *root[K, V]) leave(e *entry[K, V]) *phase[K, V] {
	if r.close == nil && r.errorTTL == nil && r.order == nil {
		return nil
	}
	p := e.state.Load()
	r.left(p)
	return p
}

// release is the second half, which may run user code.
func (r *root[K, V]) release(e *entry[K, V], p *phase[K, V]) {
	if r.close != nil && p.ready() && p.leases.kill() {
		r.dispose(e.key, e.value)
	}
}

// dispose calls the Close function for v, which was pending and has no users.
// However that ends, its caller goes on: it is anyone, and not the function's.
func (r *root[K, V]) dispose(k K, v V) {
	err := errCloseGoexit // until close returns
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack(), closing: true}
		}
		if err != nil {
			r.books.note(err)
		}
		r.books.closings.Add(1)
		r.books.finish(onePending)
	}()
	err = r.close(k, v)
}

var errCloseGoexit = errors.New("oncecache: Close function called runtime.Goexit")
