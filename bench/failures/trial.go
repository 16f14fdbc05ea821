package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// patience is a trial's. Caches have goroutines that wake up by themselves,
	// though not one of those compared here wakes callers so.
	patience = time.Second
	// limit is how long a trial waits if somebody is busy all the time.
	limit = 15 * time.Second
)

// trial is one case with one cache, in a process of its own.
type trial struct {
	peer   *peer
	cache  cache[string, *engine]
	studio *studio
	// patience is how long it waits before it asks whether anybody could still
	// wake those it waits for.
	patience time.Duration
	note     string
	rounds   int
}

// run runs c and returns how it ended. Only what c itself does can panic here:
// what callers and create functions do, and how that ends, is observed.
func (t *trial) run(c *testCase) (o outcome) {
	for _, f := range c.needs {
		if why, lacking := t.peer.lacks[f]; lacking {
			return outcome{Status: na, Note: why}
		}
	}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case verdict:
			o = v.outcome
		default:
			panic(v)
		}
		o.Rounds = t.rounds
	}()
	c.run(t)
	return outcome{Status: pass, Note: t.note}
}

func (t *trial) end(s status, format string, args ...any) {
	panic(verdict{outcome{Status: s, Note: fmt.Sprintf(format, args...)}})
}

// remark is added to a pass.
func (t *trial) remark(format string, args ...any) { t.note = fmt.Sprintf(format, args...) }

// open makes the cache with a create function that the studio directs.
func (t *trial) open() *studio {
	return t.openWith(config[string, *engine]{})
}

func (t *trial) openWith(c config[string, *engine]) *studio {
	t.studio = newStudio(t)
	c.create, c.createMany = t.studio.create, t.studio.createMany
	t.cache = t.peer.open(c)
	return t.studio
}

// caller is a call of the cache on a goroutine of its own, and how it ended.
type caller struct {
	done     chan struct{}
	v        *engine
	err      error
	panicked any  // what the call panicked with
	returned bool // false if it panicked or called runtime.Goexit
}

// ask asks for key.
func (t *trial) ask(key string) *caller { return t.askWith(context.Background(), key) }

func (t *trial) askWith(ctx context.Context, key string) *caller {
	return t.call(func() (*engine, error) { return t.cache.get(ctx, key) })
}

// askMany asks for key n times at once.
func (t *trial) askMany(n int, key string) []*caller {
	all := make([]*caller, n)
	for i := range all {
		all[i] = t.ask(key)
	}
	return all
}

// batch is a call for several keys, and what it got.
type batch struct {
	*caller
	got map[string]*engine
}

// askBatch asks for keys.
func (t *trial) askBatch(keys ...string) *batch {
	return t.askBatchWith(context.Background(), keys...)
}

func (t *trial) askBatchWith(ctx context.Context, keys ...string) *batch {
	b := new(batch)
	c := t.cache.(batcher)
	b.caller = t.call(func() (e *engine, err error) {
		b.got, err = c.getMany(ctx, keys)
		return b.got[keys[0]], err
	})
	return b
}

// askTogether asks for key n times as nearly at once as can be, each with a
// context of its own.
func (t *trial) askTogether(n int, key string, ctx func(int) context.Context) []*caller {
	var ready atomic.Int32
	all := make([]*caller, n)
	for i := range all {
		all[i] = t.call(func() (*engine, error) {
			ready.Add(1)
			for int(ready.Load()) < n {
				runtime.Gosched()
			}
			return t.cache.get(ctx(i), key)
		})
	}
	return all
}

// do does something else.
func (t *trial) do(f func()) *caller {
	return t.call(func() (*engine, error) { f(); return nil, nil })
}

func (t *trial) call(f func() (*engine, error)) *caller {
	c := &caller{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() { c.panicked = recover() }()
		c.v, c.err = f()
		c.returned = true
	}()
	return c
}

// ended reports whether the call has ended.
func (c *caller) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// told reports whether the call ended with an error or a panic, or with a
// value: anything but a value that is none, or no word at all.
func (c *caller) told() bool {
	return c.panicked != nil || c.returned && (c.err != nil || c.v != nil)
}

func (c *caller) String() string {
	switch {
	case !c.ended():
		return "does not return"
	case c.panicked != nil:
		return "panics"
	case !c.returned:
		return "has its goroutine ended"
	case c.err != nil:
		return "gets an error"
	case c.v == nil:
		return "gets (nil, nil)"
	}
	return fmt.Sprintf("gets engine %d", c.v.serial)
}

// settle waits until nobody can go on without the case: every caller has
// ended or waits, every create function waits for the studio.
func (t *trial) settle() {
	for range 5 { // in a row, because one look may fall between two steps
		for !quiet() {
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// join waits for calls that nothing holds up any more, and ends the case if
// one of them hangs. Who says whose calls they are.
func (t *trial) join(who string, callers ...*caller) {
	if !t.wait(callers...) {
		left := 0
		for _, c := range callers {
			if !c.ended() {
				left++
			}
		}
		switch {
		case len(callers) == 1:
			t.end(hang, "%s does not return", who)
		case left == len(callers):
			t.end(hang, "the %s do not return", who)
		default:
			t.end(hang, "%d of the %d %s do not return", left, len(callers), who)
		}
	}
}

// wait waits until the calls have ended, and returns false if they never will.
func (t *trial) wait(callers ...*caller) bool {
	return t.waitFor(func() bool {
		for _, c := range callers {
			if !c.ended() {
				return false
			}
		}
		return true
	})
}

// waitFor waits until done, and returns false if everybody waits for somebody
// else, or if it takes longer than anything here can take.
func (t *trial) waitFor(done func() bool) bool {
	begun, still := time.Now(), 0
	for !done() {
		time.Sleep(time.Millisecond)
		if still++; !quiet() {
			still = 0
		}
		if since := time.Since(begun); since > t.patience && still > 50 || since > limit {
			return done()
		}
	}
	return true
}

// kept asks for key once more and returns the engine that the cache has now.
func (t *trial) kept(key string) *engine {
	c := t.ask(key)
	t.join("who asks afterwards", c)
	if c.v == nil {
		t.end(fail, "who asks afterwards %v", c)
	}
	return c.v
}

// isContextError reports whether err is a context's.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
