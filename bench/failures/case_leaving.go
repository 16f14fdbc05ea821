package main

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"
)

// deleteInFlight deletes a key while it is being created, because its source
// has changed, and asks again. Pass: who asks after the deletion gets a value
// that was created after it, and the older one is not kept; who asked before it
// gets a value or an error. Open in Guava since 2014, for which Trino wrote a
// cache of its own.
func deleteInFlight(t *trial) {
	isFreshAfter(t, "Delete", func() { t.cache.delete("a") })
}

// clearInFlight deletes all keys while one is being created, and asks for that
// one again. Pass: as after its own deletion: who asks later gets a value that was
// created later, and the older one is not kept.
func clearInFlight(t *trial) {
	isFreshAfter(t, "Clear", func() { t.cache.(clearer).clear() })
}

// isFreshAfter lets remove, which has this name, run during a creation.
func isFreshAfter(t *trial, name string, remove func()) {
	d := t.open()
	before := t.askMany(2, "a")
	d.await(1)
	t.settle()
	stale := d.count()
	deletion := t.do(remove)
	t.settle()
	if !deletion.ended() {
		t.remark("`%s` waits for the creation", name)
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

// lateAfterClear looks for orphans when all keys are deleted during a creation.
// Pass: each value that was created is in the cache, with a caller, or told to the
// listener that would close it.
func lateAfterClear(t *trial) {
	orphans(t, func() { t.cache.(clearer).clear() })
}

// lateAfterSet looks for orphans when a value is set during a creation. Pass:
// as above. A cache whose listener is not told of values that Set replaces is
// not asked.
func lateAfterSet(t *trial) {
	needsNoticeOfSet(t)
	orphans(t, func() { t.cache.set("a", &engine{"a", 100}) })
}

// needsNoticeOfSet ends the case unless the listener is told of a value that Set
// replaces.
func needsNoticeOfSet(t *trial) {
	var told atomic.Bool
	t.openWith(config[string, *engine]{left: func(string, *engine) { told.Store(true) }})
	t.cache.set("a", &engine{"a", 1})
	t.cache.set("a", &engine{"a", 2})
	if !t.waitFor(told.Load) {
		t.end(na, "observed: the listener is not told of a value that `Set` replaces")
	}
}

// setSame sets the very value that is there, as two callers do who have made the
// same handle, and deletes the key afterwards. Pass: the listener that closes
// values is not told of it while it is there, and once when it has left. A cache
// whose listener is not told of values that Set replaces is not asked.
func setSame(t *trial) {
	needsNoticeOfSet(t)
	var told told
	d := t.openWith(config[string, *engine]{left: told.left})
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	t.join("who sets", t.do(func() { t.cache.set("a", first.v) }))
	t.settle()
	if kept := t.kept("a"); kept != first.v {
		t.end(fail, "the value does not stay")
	}
	if len(told.serials()) > 0 {
		t.end(wrong, "the listener is told of the value that is there")
	}
	t.join("who deletes", t.do(func() { t.cache.delete("a") }))
	t.waitFor(func() bool { return len(told.serials()) > 0 })
	t.settle()
	if n := len(told.serials()); n != 1 {
		t.end(fail, "the listener is told %d times of the value", n)
	}
}

// setSameParts sets the value that is there 20 times again where values are structs
// with padding, and what nobody can see of them differs each time; then it deletes the
// key. Pass: the listener that closes values is not told of it while it is there, and
// once when it has left. A cache whose listener is not told of values that Set replaces
// is not asked.
func setSameParts(t *trial) {
	needsNoticeOfSet(t)
	var told atomic.Int32
	c := t.peer.parts(config[string, part]{
		create: func(context.Context, string) (part, error) { return part{}, errCreate },
		left:   func(string, part) { told.Add(1) },
	})
	setter := t.do(func() {
		for dirt := range 20 {
			c.set("a", dirty(byte(dirt)))
		}
	})
	t.join("who sets", setter)
	t.settle()
	if told.Load() > 0 {
		t.end(wrong, "the listener is told of the value that is there")
	}
	t.join("who deletes", t.do(func() { c.delete("a") }))
	t.waitFor(func() bool { return told.Load() > 0 })
	t.settle()
	if n := told.Load(); n != 1 {
		t.end(fail, "the listener is told %d times of the value", n)
	}
}

// dirty returns a part with the same fields each time, and this byte in its padding.
func dirty(dirt byte) part {
	var p part
	// Safety: a part has no pointers, and all of its bytes are its own.
	for i := range unsafe.Sizeof(p) {
		*(*byte)(unsafe.Add(unsafe.Pointer(&p), i)) = dirt
	}
	p.kind, p.serial, p.rest = 1, 2, [2]int64{3, 4}
	return p
}

// writeBack counts in a value how often it was used, in a cache whose listener writes
// the count back to where create reads the next one: a session, a counter, a page of a
// file. It deletes the key after one use, and uses it again while the listener writes.
// Pass: in the end the count is two.
func writeBack(t *trial) {
	var mu sync.Mutex
	var closing atomic.Bool
	source, goOn := 0, make(chan struct{})
	t.cache = t.peer.open(config[string, *engine]{
		writesBack: true,
		create: func(_ context.Context, key string) (*engine, error) {
			mu.Lock()
			defer mu.Unlock()
			return &engine{key, source}, nil
		},
		left: func(_ string, e *engine) {
			mu.Lock()
			n := e.serial
			mu.Unlock()
			closing.Store(true)
			<-goOn
			mu.Lock()
			source = n
			mu.Unlock()
		},
	})
	use := func() (*engine, error) {
		release := func() {}
		e, err := (*engine)(nil), error(nil)
		if l, ok := t.cache.(lessor); ok {
			e, release, err = l.acquire(context.Background(), "a")
		} else {
			e, err = t.cache.get(context.Background(), "a")
		}
		if err != nil {
			return nil, err
		}
		mu.Lock()
		e.serial++
		mu.Unlock()
		release()
		return e, nil
	}
	first := t.call(use)
	t.join("the first user", first)
	deletion := t.do(func() { t.cache.delete("a") })
	if !t.waitFor(closing.Load) {
		t.end(fail, "the listener is not told")
	}
	second := t.call(use)
	t.settle()
	close(goOn)
	t.join("who uses the value, and who deletes it", deletion, second)
	t.settle()
	kept := t.kept("a")
	mu.Lock()
	defer mu.Unlock()
	if kept.serial != 2 {
		t.end(wrong, "of two uses, %d is left", kept.serial)
	}
}

// exclusive deletes a key whose value takes long to close, and asks for it again
// meanwhile: what holds a lock, a file or a port cannot be there twice. Pass: the
// next creation begins when the listener that closes values has returned.
func exclusive(t *trial) {
	var closing atomic.Bool
	goOn := make(chan struct{})
	d := t.openWith(config[string, *engine]{exclusive: true, left: func(string, *engine) {
		closing.Store(true)
		<-goOn
	}})
	d.others()
	first := t.ask("a")
	t.join("the first caller", first)
	deletion := t.do(func() { t.cache.delete("a") })
	if !t.waitFor(closing.Load) {
		t.end(fail, "the listener is not told")
	}
	next := t.ask("a")
	t.settle()
	n := d.count()
	close(goOn)
	t.join("callers", deletion, next)
	if n > 1 {
		t.end(fail, "the next value is created while the old one is being closed")
	}
	if next.v == nil || next.v == first.v {
		t.end(wrong, "who asks again %v", next)
	}
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

// closeHung closes the cache while the listener that closes values hangs, and
// while a value is being created for two callers, which then ends; the closer
// gives up in the end, where closing takes a context. Pass: the callers return
// before that, with a value or an error, and so does the closer, after that at
// the latest.
func closeHung(t *trial) {
	d := t.openWith(config[string, *engine]{left: new(hung).left})
	for i, key := range []string{"a", "b"} {
		c := t.ask(key)
		d.await(i + 1).returns()
		t.join("the first callers", c)
	}
	callers := t.askMany(2, "c")
	d.await(3)
	t.do(func() { t.cache.delete("a") }) // which may wait for the listener
	t.settle()
	ctx, cancel := context.WithCancel(context.Background())
	closing := t.do(func() { t.cache.(closer).close(ctx) })
	t.settle()
	d.release()
	t.join("callers", callers...)
	for _, c := range callers {
		if !c.told() {
			t.end(wrong, "a caller %v", c)
		}
	}
	cancel()
	t.join("who closes", closing)
}
