package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// sharedError lets a creation fail for which ten callers wait. Pass: all get
// that very error from that one creation. If every waiter tried again in its
// turn, a source that fails slowly would be asked ten times one after the
// other, as was reported of providers of credentials behind a mutex.
func sharedError(t *trial) {
	d := t.open()
	creator := t.ask("a")
	creation := d.await(1)
	waiters := t.askMany(10, "a")
	t.settle()
	creation.fails(errCreate)
	d.release()
	t.join("callers", append(waiters, creator)...)
	for _, c := range append(waiters, creator) {
		if c.v != nil {
			t.end(fail, "who has waited begins another creation, in its turn")
		}
		if !errors.Is(c.err, errCreate) || c.v != nil {
			t.end(fail, "a caller %v instead", c)
		}
	}
	if n := d.count(); n != 1 {
		t.end(fail, "%d creations for one failure", n)
	}
}

// forgottenError lets a creation fail and asks again. Pass: the next one runs.
func forgottenError(t *trial) {
	d := t.open()
	first := t.ask("a")
	d.await(1).fails(errCreate)
	t.join("the first caller", first)
	if first.err == nil {
		t.end(wrong, "the first caller %v", first)
	}
	d.release()
	if kept := t.kept("a"); kept.serial != 2 {
		t.end(fail, "the next caller gets engine %d", kept.serial)
	}
}

// staleError lets creations fail at once, and some goroutines ask for one key
// and, as soon as they have their error, again. Pass: nobody gets the same
// error twice: a failure is over when somebody has heard of it. Reported of
// Dart's async cache, where waiters are woken before the flight is removed. It
// takes luck, and other goroutines that ask for other keys meanwhile.
func staleError(t *trial) {
	const workers, askers = 8, 4
	t.rounds = 20_000
	c := t.peer.open(config[string, *engine]{create: func(_ context.Context, key string) (*engine, error) {
		runtime.Gosched() // so that somebody joins
		return nil, fmt.Errorf("%w: %s", errCreate, key)
	}})
	var stale atomic.Bool
	var wg sync.WaitGroup
	for worker := range workers {
		key := "a"
		if worker >= askers {
			key = strconv.Itoa(worker)
		}
		wg.Go(func() {
			for range t.rounds {
				_, first := c.get(context.Background(), key)
				_, second := c.get(context.Background(), key)
				if first != nil && first == second { // the same pointer: an error of the same creation
					stale.Store(true)
				}
			}
		})
	}
	wg.Wait()
	if stale.Load() {
		t.end(fail, "who has got an error and asks again gets the same one, without a creation, in some of %s rounds", grouped(t.rounds))
	}
}

// panicWaiters lets a creation panic for which others wait. Pass: they get to
// know, by an error or by a panic of their own; none hangs, and none gets nil
// without an error. Singleflight hung here once; hugo, go-zero, trickster and
// moka had it reported, and what groupcache does still hangs.
func panicWaiters(t *trial) {
	waitersGetToKnow(t, (*creation).panics)
}

// panicKey lets a creation panic and asks again. Pass: the next one runs, and
// the key is not poisoned.
func panicKey(t *trial) {
	keyIsUsableAfter(t, (*creation).panics)
}

// goexitWaiters lets a creation call runtime.Goexit, as testing.T.FailNow does,
// while others wait. Pass: each gets an error. A caller whose own goroutine
// ends in turn has not got to know: whoever waits for it waits for ever.
// Reported of singleflight's DoChan and of minio.
func goexitWaiters(t *trial) {
	waitersGetToKnow(t, (*creation).exits)
}

// goexitKey lets a creation call runtime.Goexit and asks again. Pass: the next
// one runs.
func goexitKey(t *trial) {
	keyIsUsableAfter(t, (*creation).exits)
}

// waitersGetToKnow lets four callers come at once and two more during the
// creation, 50 times over: in some caches the latter wait for a lock rather
// than for the flight.
func waitersGetToKnow(t *trial, end func(*creation)) {
	t.rounds = 50
	for range t.rounds {
		d := t.open()
		callers := t.askTogether(4, "a", func(int) context.Context { return context.Background() })
		creation := d.await(1)
		callers = append(callers, t.askMany(2, "a")...)
		t.settle()
		end(creation)
		d.release()
		t.join("callers", callers...)
		silent, panicked := 0, 0
		for _, c := range callers {
			switch {
			case c.returned && !c.told():
				t.end(wrong, "a caller %v", c)
			case !c.told():
				silent++
			case c.panicked != nil:
				panicked++
			}
		}
		if silent > 1 { // the creator's goroutine may end, as its function wanted
			t.end(fail, "waiters get neither value nor error: their goroutines are ended too")
		}
		if panicked > 1 {
			t.remark("waiters panic too")
		}
	}
}

func keyIsUsableAfter(t *trial, end func(*creation)) {
	d := t.open()
	creator := t.ask("a")
	end(d.await(1))
	d.release()
	if !t.wait(creator) {
		t.note = "the creator itself does not return"
	}
	next := t.ask("a")
	t.join("the next caller", next)
	if next.v == nil {
		t.end(fail, "the next caller %v, without a creation", next)
	}
}

// keptError opens a cache that keeps errors, and lets a creation fail. Pass:
// who asks soon gets the error without another creation, who asks later a
// value. A source that is down should not be asked by every caller, nor be
// believed to be down for ever.
func keptError(t *trial) {
	d := t.openWith(config[string, *engine]{keepsErrors: true})
	first := t.ask("a")
	d.await(1).fails(errCreate)
	t.join("the first caller", first)
	d.release()
	soon := t.askMany(10, "a")
	t.join("who asks soon", soon...)
	for _, c := range soon {
		if c.err == nil {
			t.end(fail, "who asks soon %v", c)
		}
	}
	t.cache.(expirer).expire()
	if kept := t.kept("a"); kept.serial != 2 {
		t.end(fail, "%d creations until there is a value", kept.serial)
	}
}

// keptErrorSet sets a value while an error is kept. Pass: who asks gets the
// value.
func keptErrorSet(t *trial) {
	d := t.openWith(config[string, *engine]{keepsErrors: true})
	first := t.ask("a")
	d.await(1).fails(errCreate)
	t.join("the first caller", first)
	given := &engine{key: "a"}
	t.cache.set("a", given)
	d.release()
	if t.kept("a") != given {
		t.end(fail, "who asks gets another value than the one that was set")
	}
}

// keptCancellation cancels the only caller of a creation, in such a cache, and
// lets the creation fail for that reason. Pass: the next caller gets a value:
// that somebody has left says nothing about the key.
func keptCancellation(t *trial) {
	d := t.openWith(config[string, *engine]{keepsErrors: true})
	ctx, cancel := context.WithCancel(context.Background())
	creator := t.askWith(ctx, "a")
	creation := d.await(1)
	cancel()
	t.settle()
	creation.fails(context.Canceled)
	t.join("the creator", creator)
	t.settle()
	d.release()
	next := t.ask("a")
	t.join("the next caller", next)
	if next.v == nil {
		t.end(fail, "the next caller %v", next)
	}
}

// hookExits lets the function that is told of the first creation call
// runtime.Goexit, as a failed assertion in a test does, on the goroutine that asked
// for the value and meant to return it. Pass: the next caller gets a value, and when
// the cache is closed, or the key deleted where there is no closing, each value is
// told to the listener once: nothing counts as in use.
func hookExits(t *trial) {
	var exited atomic.Bool
	var told told
	d := t.openWith(config[string, *engine]{left: told.left, created: func() {
		if exited.CompareAndSwap(false, true) {
			runtime.Goexit()
		}
	}})
	d.release()
	ask := func() (e *engine, err error) {
		l, ok := t.cache.(lessor)
		if !ok {
			return t.cache.get(context.Background(), "a")
		}
		e, release, err := l.acquire(context.Background(), "a")
		if err == nil {
			release()
		}
		return e, err
	}
	t.wait(t.call(ask)) // who does not return, like its goroutine, does not hold up others
	next := t.call(ask)
	t.join("the next caller", next)
	if next.v == nil {
		t.end(fail, "the next caller %v", next)
	}
	t.emptied("a")
	t.eachToldOnce(&told, d.count(), nil)
}

// emptied closes the cache, or deletes the keys if it cannot be closed.
func (t *trial) emptied(keys ...string) {
	if c, ok := t.cache.(closer); ok {
		t.join("who closes", t.do(func() { c.close(context.Background()) }))
		return
	}
	for _, key := range keys {
		t.join("who deletes", t.do(func() { t.cache.delete(key) }))
	}
}

// eachToldOnce ends the case unless the listener is told once of the values 1 to n. Of
// those that callers got it need not be told.
func (t *trial) eachToldOnce(l *told, n int, got map[int]bool) {
	times := func() map[int]int {
		times := make(map[int]int)
		for _, serial := range l.serials() {
			times[serial]++
		}
		return times
	}
	t.waitFor(func() bool {
		times := times()
		for serial := 1; serial <= n; serial++ {
			if times[serial] == 0 && !got[serial] {
				return false
			}
		}
		return true
	})
	for serial, times := 1, times(); serial <= n; serial++ {
		if times[serial] > 1 || times[serial] == 0 && !got[serial] {
			t.end(fail, "the listener is told %d times of a value", times[serial])
		}
	}
}
