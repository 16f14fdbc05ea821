package main

import (
	"context"
	"errors"
)

// errLate is how a creation fails that was not told why.
var errLate = errors.New("create was cancelled")

// who is the key of a context's value: the number of its caller.
type who struct{}

// creatorCancelled lets four callers come at once and two more during the
// creation, and cancels the one whose function runs. Pass: the others get a
// value, of this creation or of another one, and no error of a context that is
// not theirs. Reported of spicedb, any-sync, docker, buildbuddy and otter. 50
// times over, because who comes at once may wait elsewhere than who comes
// later.
func creatorCancelled(t *trial) {
	const together = 4
	t.rounds = 50
	for range t.rounds {
		d := t.open()
		d.obedient = true
		var ctx [together]context.Context
		var cancel [together]context.CancelFunc
		for i := range together {
			ctx[i], cancel[i] = context.WithCancel(context.WithValue(context.Background(), who{}, i))
		}
		callers := t.askTogether(together, "a", func(i int) context.Context { return ctx[i] })
		creator, ok := d.await(1).ctx.Value(who{}).(int)
		if !ok {
			t.end(na, "observed: the context of create is not that of a caller")
		}
		callers = append(callers, t.askMany(2, "a")...)
		t.settle()
		cancel[creator]()
		t.settle()
		d.release()
		t.join("callers", callers...)
		for i, c := range callers {
			if i != creator && c.v == nil {
				t.end(fail, "who waits with a live context gets %q", c.err)
			}
		}
	}
}

// creatorLeaves cancels the caller whose function runs. Pass: it returns,
// although the function does not listen to its context. Buildbuddy counts this
// among the three ways in which one caller's context goes wrong.
func creatorLeaves(t *trial) {
	d := t.open()
	ctx, cancel := context.WithCancel(context.Background())
	creator := t.askWith(ctx, "a")
	d.await(1)
	cancel()
	left := t.wait(creator)
	d.release()
	t.join("the creator", creator)
	if !left {
		t.end(fail, "the creator returns only when the creation has ended")
	}
}

// waiterLeaves cancels a caller who waits for the creation of another one.
// Pass: it returns with its context's error.
func waiterLeaves(t *trial) {
	d := t.open()
	creator := t.ask("a")
	d.await(1)
	ctx, cancel := context.WithCancel(context.Background())
	waiter := t.askWith(ctx, "a")
	t.settle()
	cancel()
	left := t.wait(waiter)
	d.release()
	t.join("callers", creator, waiter)
	switch {
	case !left:
		t.end(fail, "a waiter whose context has ended returns only when the creation has")
	case !isContextError(waiter.err):
		t.end(fail, "the waiter %v", waiter)
	}
}

// allLeft cancels the creator and a waiter. Pass: the context of the create
// function ends, because it works for nobody any more. Buildbuddy's third way.
func allLeft(t *trial) {
	d := t.open()
	ctx, cancel := context.WithCancel(context.Background())
	creator, waiter := t.askWith(ctx, "a"), t.askWith(ctx, "a")
	creation := d.await(1)
	t.settle()
	cancel()
	ended := t.waitFor(func() bool { return creation.ctx.Err() != nil })
	d.release()
	t.join("callers", creator, waiter)
	if !ended {
		t.end(fail, "the context of create does not end")
	}
}

// newcomer asks for a key whose creation was cancelled because its callers had
// left, and has not ended yet. Pass: it gets a value. The cancellation is none
// of its business. Reported of tailscale's singleflight and of Go's name
// resolution ("operation was canceled").
func newcomer(t *trial) {
	creation, late := cancelledCreation(t)
	if creation.ctx.Err() != nil {
		creation.fails(errLate) // which does not say that it is a context's
	}
	t.studio.release()
	t.join("the newcomer", late)
	if late.v == nil {
		t.end(fail, "the newcomer gets %q", late.err)
	}
}

// overlap looks how the create functions of one key run in such a case: they
// may open a port or a file. Pass: one after the other. Reported of janos'
// singleflight.
func overlap(t *trial) {
	creation, late := cancelledCreation(t)
	if creation.ctx.Err() != nil {
		creation.fails(errLate)
	}
	t.studio.release()
	t.join("the newcomer", late)
	if n := t.studio.overlap("a"); n > 1 {
		t.end(fail, "%d creations of the key run at the same time", n)
	}
}

// cancelledCreation returns a creation whose only caller has been cancelled,
// and that has not ended yet, and a caller who has come since.
func cancelledCreation(t *trial) (*creation, *caller) {
	d := t.open()
	ctx, cancel := context.WithCancel(context.Background())
	t.askWith(ctx, "a")
	creation := d.await(1)
	cancel()
	t.settle()
	late := t.ask("a")
	t.settle()
	return creation, late
}

// lateValue lets a creation succeed whose caller has been cancelled. Pass: the
// value is there for the next caller. Gopls' cache throws it away in such a
// case, and MySQL's driver had a connection leak of this kind reported.
func lateValue(t *trial) {
	d := t.open()
	ctx, cancel := context.WithCancel(context.Background())
	creator := t.askWith(ctx, "a")
	creation := d.await(1)
	cancel()
	t.settle()
	creation.returns()
	t.settle()
	t.join("the creator", creator)
	d.release()
	if kept := t.kept("a"); kept.serial != 1 {
		t.end(fail, "the value is dropped, and another one created")
	}
}
