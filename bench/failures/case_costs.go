package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"
)

// failedKeys lets the creation of 100,000 different keys fail. Pass: afterwards
// the heap has grown by less than 16 bytes for each. Failing keys are what
// strangers choose.
func failedKeys(t *trial) {
	c := t.peer.open(config[string, *engine]{create: func(context.Context, string) (*engine, error) {
		return nil, errCreate
	}})
	leavesNoMemory(t, func(keys []string) {
		for _, key := range keys {
			if _, err := c.get(context.Background(), key); err == nil {
				t.end(wrong, "a caller gets no error")
			}
		}
	})
	runtime.KeepAlive(c)
}

// deletedKeys creates 100,000 different keys, and deletes them. Pass: afterwards
// the heap has grown by less than 16 bytes for each. Go's own maps keep their
// room, which was reported of them as a leak.
func deletedKeys(t *trial) {
	c := t.peer.open(config[string, *engine]{create: func(context.Context, string) (*engine, error) {
		return new(engine), nil
	}})
	leavesNoMemory(t, func(keys []string) {
		for _, key := range keys {
			if _, err := c.get(context.Background(), key); err != nil {
				t.end(wrong, "a caller gets an error")
			}
		}
		for _, key := range keys {
			c.delete(key)
		}
	})
	runtime.KeepAlive(c)
}

// keptErrorKeys lets the creation of 100,000 different keys fail where errors are
// kept, and their time pass, in which the cache looks for what is too old. Pass:
// afterwards the heap has grown by less than 16 bytes for each, as where errors are
// not kept. Go's own maps keep their room here too.
func keptErrorKeys(t *trial) {
	c := t.peer.open(config[string, *engine]{keepsErrors: true, create: func(context.Context, string) (*engine, error) {
		return nil, errCreate
	}})
	leavesNoMemory(t, func(keys []string) {
		for _, key := range keys {
			if _, err := c.get(context.Background(), key); err == nil {
				t.end(wrong, "a caller gets no error")
			}
		}
		c.(expirer).expire()
		c.(expirer).sweep()
	})
	runtime.KeepAlive(c)
}

// leavesNoMemory uses 100,000 keys and looks how much the heap has grown.
func leavesNoMemory(t *trial, use func(keys []string)) {
	const n, most = 100_000, 16
	heap := func() int64 {
		t.settle() // some caches go on by themselves
		runtime.GC()
		runtime.GC() // what pools kept through the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	use([]string{"first"})
	before := heap()
	use(keys)
	grown := heap() - before
	runtime.KeepAlive(keys)
	if grown > n*most {
		t.end(fail, "more than %d bytes are left of each", most)
	}
}

// leftWaiters lets 1,000 callers wait for a creation that hangs, and cancels
// them. Pass: while it still hangs there are as many goroutines as before they
// came. Reported of souin, where each caller of a key that hung left one.
func leftWaiters(t *trial) {
	d := t.open()
	creator := t.ask("a")
	d.await(1)
	before := goroutines(t)
	ctx, cancel := context.WithCancel(context.Background())
	waiters := make([]*caller, 1000)
	for i := range waiters {
		waiters[i] = t.askWith(ctx, "a")
	}
	t.settle()
	cancel()
	t.wait(waiters...)
	n := goroutines(t) - before
	d.release()
	t.join("callers", append(waiters, creator)...)
	if n > 0 {
		t.end(fail, "%d goroutines are left", n)
	}
}

// failedCallers lets 1,000 callers of 10 keys get an error. Pass: afterwards
// there are as many goroutines as before. Reported of an AWS client: callers of
// a provider that fails piled up until memory was full.
func failedCallers(t *trial) {
	d := t.open()
	before := goroutines(t)
	var callers []*caller
	for i := range 10 {
		callers = append(callers, t.askMany(100, fmt.Sprint(i))...)
	}
	t.settle()
	for i := range 10 {
		d.await(i + 1).fails(errCreate)
	}
	d.release()
	t.join("callers", callers...)
	if n := goroutines(t) - before; n > 0 {
		t.end(fail, "%d goroutines are left", n)
	}
}

// dropped makes 100 caches, uses them, closes them where that is possible, and
// drops them. Pass: after collections their goroutines are gone. Reported of
// otter and of ccache.
func dropped(t *trial) {
	before := goroutines(t)
	for range 100 {
		d := t.open()
		d.release()
		t.join("a caller", t.ask("a"))
		if c, ok := t.cache.(closer); ok {
			c.close(context.Background())
		}
	}
	t.cache, t.studio = nil, nil
	t.waitFor(func() bool {
		runtime.GC()
		return runtime.NumGoroutine() <= before
	})
	if n := goroutines(t) - before; n > 0 {
		t.end(fail, "%d goroutines are left of 100 caches", n)
	}
}

// goroutines returns how many goroutines there are when all is done.
func goroutines(t *trial) int {
	t.settle()
	return runtime.NumGoroutine()
}

// hit counts the allocations of a hit with the create function given
// beforehand, or one made once.
func hit(t *trial) {
	d := t.open()
	d.release()
	t.join("the creator", t.ask("a"))
	allocs := testing.AllocsPerRun(1000, func() { _, _ = t.cache.get(context.Background(), "a") })
	t.end(count, "%v", allocs)
}

// capturingHit counts them with a create function that is made at the call and
// captures a variable, as most do.
func capturingHit(t *trial) {
	d := t.open()
	d.release()
	t.join("the creator", t.ask("a"))
	serial := 0
	allocs := testing.AllocsPerRun(1000, func() {
		serial++
		if err := t.cache.(capturer).hit("a", serial); err != nil {
			panic(err)
		}
	})
	t.end(count, "%v", allocs)
}
