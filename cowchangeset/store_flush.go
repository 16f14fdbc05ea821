package cowchangeset

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// flushes are the calls of the store about one thing: one at a time, each on a
// goroutine of its own that ends with it. Whoever waits for something begins a
// flush, or waits for the one that is on and looks again; so all share the calls.
type flushes struct {
	*calls
	backlog
	id string // of the changeset that it is about; empty if it is not about one

	// current is the one that is on: from nil by the CAS of whoever needs it,
	// back to nil by its own goroutine.
	current atomics.Pointer[flush]
}

// backlog is what flushes tell the store.
type backlog interface {
	// has reports whether the store knows all of t.
	has(g target) bool

	// flushNext tells the store the first of what is new, and asks for another flush
	// if that is not all. Only flushes call it.
	flushNext(r *flush) error
}

// target is what somebody wants the store to know.
type target struct {
	below   uint64 // all entries below this index or, of pruning, all ordinals below it
	known   uint32
	applied uint64
}

// within reports whether who knows h knows all of t.
func (t target) within(h target) bool {
	return t.below <= h.below && t.known&^h.known == 0 && t.applied <= h.applied
}

// flush is one pass of the store over what is new.
type flush struct {
	target // what it is for; set before anyone else can see the end

	method string // the flush's own

	again atomics.Bool // somebody has something new, perhaps after the cut

	done    atomics.Event            // fired when there is an outcome
	outcome atomics.Pointer[outcome] // nil → how the flush has ended, or that it takes too long; once, by CAS
}

// outcome is how a flush ended for those who wait.
type outcome struct {
	err   error
	hangs bool // the flush goes on
}

// end makes the outcome known, if there is none yet.
func (f *flush) end(err error, hangs bool) {
	if f.outcome.CompareAndSwap(nil, &outcome{err, hangs}) {
		f.done.Fire()
	}
}

// until waits until the store knows all of t. It returns an error if a flush
// that should have told it has failed, or takes too long, or if ctx has ended. In
// the last two cases the store is told when the flush has ended; and so it is if ctx,
// which may be a user's, panics, stalls or ends the goroutine.
//
// It goes round again only if a flush has ended that began too early for t, or
// that had something to tell which comes before.
func (f *flushes) until(ctx context.Context, t target) error {
	for !f.has(t) {
		r := f.current.Load()
		if r == nil {
			if r = f.begin(); r == nil {
				continue // another caller has begun one
			}
		} else if ctx != context.Background() {
			f.request() // the flush may have begun too early, and a user's context may keep the caller
		}
		if err := r.done.WaitContext(ctx); err != nil {
			if f.has(t) {
				break
			}
			f.request() // who leaves has been heard
			return f.failed("wait", context.Cause(ctx))
		}
		if o := r.outcome.Load(); o.err != nil && (o.hangs || t.within(r.target)) && !f.has(t) {
			if o.hangs {
				f.request()
			}
			return o.err
		}
	}
	return nil
}

// request sees to it that a flush begins after this, and waits for nothing.
//
// Nothing is stranded: a flush that is seen to be on is asked to be followed by
// another one, and asked in time if it still is on afterwards. If not, one that
// has begun since then has begun after this.
func (f *flushes) request() {
	if r := f.current.Load(); r != nil {
		if !r.again.Load() {
			r.again.Store(true)
		}
		if f.current.Load() != nil {
			return
		}
	}
	f.begin()
}

// begin begins a flush, or returns nil if there is one.
func (f *flushes) begin() *flush {
	r := &flush{done: atomics.MakeEvent()}
	if !f.current.CompareAndSwap(nil, r) {
		return nil
	}
	atomics.Go(func() { f.run(r) })
	return r
}

// run is a flush, from its beginning to the moment at which the next may begin.
func (f *flushes) run(r *flush) {
	err := errStoreExited
	defer func() {
		err = f.explain(r.method, err, recover())
		f.current.Store(nil)
		r.end(err, false)
		if r.again.Load() {
			f.begin() // or another caller has
		}
	}()
	err = f.flushNext(r)
}

// call calls the store. If that takes too long, those who wait for r need not
// wait any more; the call is waited for nevertheless.
func (k *flushes) call(r *flush, method string, f func(context.Context) error) error {
	r.method = method
	ctx, leave, stop := k.bound(r, method)
	defer stop()
	err := f(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		leave() // or who waits would hear of an end that is not of their own context
	}
	return k.failed(method, err)
}

// bound returns the context of a call, and what happens when that takes too long.
func (f *flushes) bound(r *flush, method string) (ctx context.Context, leave, stop func()) {
	if f.timeout == 0 {
		ctx, cancel := atomics.WithCancel(context.Background())
		return ctx, func() {}, cancel
	}
	slow := f.failed(method, errStoreHangs)
	ctx, cancel := atomics.WithTimeoutCause(context.Background(), f.timeout, slow)
	leave = func() { r.end(slow, true) }
	unwatched := atomics.AfterFunc(ctx, leave)
	return ctx, leave, func() { unwatched(); cancel() }
}

// explain returns how a call of the store ended that may have panicked, or left
// its goroutine.
func (f *flushes) explain(method string, err error, thrown any) error {
	switch {
	case thrown != nil:
		return f.failed(method, panicked{thrown})
	case err == errStoreExited:
		return f.failed(method, err)
	}
	return err
}

// panicked is a panic of a store. It runs no code of the value before somebody
// asks for the text.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Unwrap returns the value, if it is an error.
func (p panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// failed returns the error of a store that has failed.
func (f *flushes) failed(method string, err error) error {
	return &StoreError{ChangesetID: f.id, Method: method, Err: err}
}
