package cowchangeset

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// rounds are the calls of the store about one thing: one at a time, each on a
// goroutine of its own that ends with it. Whoever waits for something begins a
// round, or waits for the one that is on and looks again; so all share the calls.
type rounds struct {
	*calls
	news
	id string // of the changeset that it is about; empty if it is not about one

	// round is the one that is on: from nil by the CAS of whoever needs it,
	// back to nil by its own goroutine.
	round atomics.Pointer[round]
}

// news is what the store is told in rounds.
type news interface {
	// has reports whether the store knows all of g.
	has(g goal) bool

	// catchUp tells the store the first of what is new, and asks for another round
	// if that is not all. Only rounds call it.
	catchUp(r *round) error
}

// goal is what somebody wants the store to know.
type goal struct {
	n       uint64 // all entries below this index or, of pruning, all ordinals below it
	told    uint32
	applied uint64
}

// within reports whether who knows h knows all of g.
func (g goal) within(h goal) bool {
	return g.n <= h.n && g.told&^h.told == 0 && g.applied <= h.applied
}

// round is one pass of the store over what is new.
type round struct {
	goal // what it is for; set before anyone else can see the end

	method string // the round's own

	again atomics.Bool // somebody has something new, perhaps after the cut

	done    atomics.Event            // fired when there is an outcome
	outcome atomics.Pointer[outcome] // nil → how the round has ended, or that it takes too long; once, by CAS
}

// outcome is how a round ended for those who wait.
type outcome struct {
	err   error
	hangs bool // the round goes on
}

// end makes the outcome known, if there is none yet.
func (r *round) end(err error, hangs bool) {
	if r.outcome.CompareAndSwap(nil, &outcome{err, hangs}) {
		r.done.Fire()
	}
}

// until waits until the store knows all of g. It returns an error if a round
// that should have told it has failed, or takes too long, or if ctx has ended. In
// the last two cases the store is told when the round has ended; and so it is if ctx,
// which may be a user's, panics, stalls or ends the goroutine.
//
// It goes round again only if a round has ended that began too early for g, or
// that had something to tell which comes before.
func (k *rounds) until(ctx context.Context, g goal) error {
	for !k.has(g) {
		r := k.round.Load()
		if r == nil {
			if r = k.begin(); r == nil {
				continue // another caller has begun one
			}
		} else if ctx != context.Background() {
			k.kick() // the round may have begun too early, and a user's context may keep the caller
		}
		if err := r.done.WaitContext(ctx); err != nil {
			if k.has(g) {
				break
			}
			k.kick() // who leaves has been heard
			return k.failed("wait", context.Cause(ctx))
		}
		if o := r.outcome.Load(); o.err != nil && (o.hangs || g.within(r.goal)) && !k.has(g) {
			if o.hangs {
				k.kick()
			}
			return o.err
		}
	}
	return nil
}

// kick sees to it that a round begins after this, and waits for nothing.
//
// Nothing is stranded: a round that is seen to be on is asked to be followed by
// another one, and asked in time if it still is on afterwards. If not, one that
// has begun since then has begun after this.
func (k *rounds) kick() {
	if r := k.round.Load(); r != nil {
		if !r.again.Load() {
			r.again.Store(true)
		}
		if k.round.Load() != nil {
			return
		}
	}
	k.begin()
}

// begin begins a round, or returns nil if there is one.
func (k *rounds) begin() *round {
	r := &round{done: atomics.MakeEvent()}
	if !k.round.CompareAndSwap(nil, r) {
		return nil
	}
	atomics.Go(func() { k.run(r) })
	return r
}

// run is a round, from its beginning to the moment at which the next may begin.
func (k *rounds) run(r *round) {
	err := errStoreExited
	defer func() {
		err = k.explain(r.method, err, recover())
		k.round.Store(nil)
		r.end(err, false)
		if r.again.Load() {
			k.begin() // or another caller has
		}
	}()
	err = k.catchUp(r)
}

// call calls the store. If that takes too long, those who wait for r need not
// wait any more; the call is waited for nevertheless.
func (k *rounds) call(r *round, method string, f func(context.Context) error) error {
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
func (k *rounds) bound(r *round, method string) (ctx context.Context, leave, stop func()) {
	if k.timeout == 0 {
		ctx, cancel := atomics.WithCancel(context.Background())
		return ctx, func() {}, cancel
	}
	slow := k.failed(method, errStoreHangs)
	ctx, cancel := atomics.WithTimeoutCause(context.Background(), k.timeout, slow)
	leave = func() { r.end(slow, true) }
	unwatched := atomics.AfterFunc(ctx, leave)
	return ctx, leave, func() { unwatched(); cancel() }
}

// explain returns how a call of the store ended that may have panicked, or left
// its goroutine.
func (k *rounds) explain(method string, err error, thrown any) error {
	switch {
	case thrown != nil:
		return k.failed(method, panicked{thrown})
	case err == errStoreExited:
		return k.failed(method, err)
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
func (k *rounds) failed(method string, err error) error {
	return &StoreError{ChangesetID: k.id, Method: method, Err: err}
}
