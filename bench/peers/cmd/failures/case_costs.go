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
	const n, most = 100_000, 16
	c := t.peer.open(config[string, *engine]{create: func(context.Context, string) (*engine, error) {
		return nil, errCreate
	}})
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what pools kept through the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	ask := func(i int) {
		if _, err := c.get(context.Background(), fmt.Sprint("key ", i)); err == nil {
			t.end(wrong, "a caller gets no error")
		}
	}
	ask(-1)
	before := heap()
	for i := range n {
		ask(i)
	}
	if grown := heap() - before; grown > n*most {
		t.end(fail, "more than %d bytes are left of each", most)
	}
	runtime.KeepAlive(c)
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
