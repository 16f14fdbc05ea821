package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// deleteInFlight deletes a key while it is being created, because its source
// has changed, and asks again. Pass: who asks after the deletion gets a value
// that was created after it, and the older one is not kept; who asked before it
// gets a value or an error. Open in Guava since 2014, for which Trino wrote a
// cache of its own.
func deleteInFlight(t *trial) {
	d := t.open()
	before := t.askMany(2, "a")
	d.await(1)
	t.settle()
	stale := d.count()
	deletion := t.do(func() { t.cache.delete("a") })
	t.settle()
	if !deletion.ended() {
		t.remark("`Delete` waits for the creation")
		d.await(1).returns()
		t.join("callers", append(before, deletion)...)
	}
	after := t.ask("a")
	t.settle()
	if d.count() > stale { // the next creation ends first, so that the stale one is the last to store
		d.await(stale + 1).returns()
		t.join("who asks after the deletion", after)
	}
	d.await(1).returns()
	t.settle()
	d.release()
	t.join("callers", append(before, after)...)
	for _, c := range before {
		if !c.told() {
			t.end(wrong, "who asked before the deletion %v", c)
		}
	}
	if !after.told() || after.v != nil && after.v.serial <= stale {
		t.end(wrong, "who asks after the deletion gets the value whose creation began before it")
	}
	if t.kept("a").serial <= stale {
		t.end(wrong, "the value whose creation began before the deletion is kept")
	}
}

// lateAfterDelete looks where every value is that was created in such a case.
// Pass: in the cache, with a caller, or told to the listener that would close
// it. Reported of ClickHouse's and MySQL's drivers: a connection that nobody
// has is never closed. A listener that is told of entries need not know of a
// value that never was one, but whoever relies on it to close values leaks this
// one.
func lateAfterDelete(t *trial) {
	orphans(t, func() { t.cache.delete("a") })
}

// lateAfterSet looks for orphans when a value is set during a creation. Pass:
// as above. A cache whose listener is not told of values that Set replaces is
// not asked.
func lateAfterSet(t *trial) {
	var told atomic.Bool
	t.openWith(config[string, *engine]{left: func(string, *engine) { told.Store(true) }})
	t.cache.set("a", &engine{"a", 1})
	t.cache.set("a", &engine{"a", 2})
	if !t.waitFor(told.Load) {
		t.end(na, "observed: the listener is not told of a value that `Set` replaces")
	}
	orphans(t, func() { t.cache.set("a", &engine{"a", 100}) })
}

// orphans lets interfere run during a creation and looks for a value that
// nobody has in the end.
func orphans(t *trial, interfere func()) {
	var mu sync.Mutex
	known := map[int]bool{} // serials of engines that somebody has, or had notice of
	note := func(e *engine) {
		mu.Lock()
		defer mu.Unlock()
		if e != nil {
			known[e.serial] = true
		}
	}
	d := t.openWith(config[string, *engine]{left: func(_ string, e *engine) { note(e) }})
	callers := t.askMany(2, "a")
	d.await(1)
	t.settle()
	interference := t.do(interfere)
	t.settle()
	d.release()
	t.join("callers", append(callers, interference)...)
	t.settle()
	note(t.kept("a"))
	for _, c := range callers {
		note(c.v)
	}
	t.settle() // listeners may run later
	mu.Lock()
	defer mu.Unlock()
	for serial := 1; serial <= d.count(); serial++ {
		if !known[serial] {
			t.end(fail, "a value that was created is dropped: no caller has it and the listener is not told")
		}
	}
}

// inUse deletes a key whose value two callers use, and lets them return it one
// after the other. Pass: it is closed when the second one has, once. Substrate
// and vitess had connections reported that were closed under a running call;
// pebble's cache panics.
func inUse(t *trial) {
	var mu sync.Mutex
	closed := 0
	now := func() int {
		mu.Lock()
		defer mu.Unlock()
		return closed
	}
	d := t.openWith(config[string, *engine]{left: func(string, *engine) {
		mu.Lock()
		closed++
		mu.Unlock()
	}})
	d.release()
	release := make([]func(), 2)
	for i := range release {
		_, r, err := t.cache.(lessor).acquire(context.Background(), "a")
		if err != nil {
			t.end(fail, "no lease: %v", err)
		}
		release[i] = r
	}
	t.cache.delete("a")
	release[0]()
	if n := now(); n != 0 {
		t.end(fail, "the value is closed while it is in use")
	}
	release[1]()
	release[1]()
	if n := now(); n != 1 {
		t.end(fail, "the value is closed %d times", n)
	}
}

// closeInFlight closes the cache while a value is being created for two
// callers. Pass: everybody returns with a value or an error, and so does who
// asks later; a value that was created for nobody is told to the listener.
// Reported of go-zero, which panics and leaks the new value, and of pebble's
// cache.
func closeInFlight(t *trial) {
	var mu sync.Mutex
	closed := false
	d := t.openWith(config[string, *engine]{left: func(string, *engine) {
		mu.Lock()
		closed = true
		mu.Unlock()
	}})
	callers := t.askMany(2, "a")
	d.await(1)
	t.settle()
	closing := t.do(func() { t.cache.(closer).close(context.Background()) })
	t.settle()
	d.release()
	t.join("callers and closer", append(callers, closing)...)
	got := false
	for _, c := range append(callers, closing) {
		if c.panicked != nil {
			t.end(fail, "a call panics: %v", c.panicked)
		}
		if c != closing && !c.told() {
			t.end(wrong, "a caller %v", c)
		}
		got = got || c.v != nil
	}
	t.settle()
	mu.Lock()
	defer mu.Unlock()
	if !got && !closed {
		t.end(fail, "no caller has the value and the listener is not told")
	}
	later := t.ask("a")
	t.join("who asks later", later)
	if later.panicked != nil || later.err == nil {
		t.end(fail, "who asks a closed cache %v", later)
	}
}
