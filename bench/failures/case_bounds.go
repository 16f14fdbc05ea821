package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// full is the bound of the cases about bounds.
const full = 1000

// boundKept lets four goroutines create 25,000 keys each in a cache that is
// bound to 1,000. Pass: when all is quiet, no more than 1,000 can be found, and
// who asks for a key always gets its own value.
func boundKept(t *trial) {
	const workers, each = 4, 25_000
	c := t.peer.open(config[string, *engine]{
		bound:  full,
		create: func(_ context.Context, key string) (*engine, error) { return &engine{key: key}, nil },
	})
	var other atomic.Bool
	callers := make([]*caller, workers)
	for worker := range callers {
		callers[worker] = t.do(func() {
			for i := range each {
				key := fmt.Sprint(worker, " ", i)
				if e, err := c.get(context.Background(), key); err != nil || e.key != key {
					other.Store(true)
				}
			}
		})
	}
	t.join("callers", callers...)
	if other.Load() {
		t.end(wrong, "a caller gets no value, or that of another key")
	}
	found := func() (n int) {
		c.(ranger).each(func(string) bool { n++; return true })
		return n
	}
	if !t.waitFor(func() bool { return found() <= full }) {
		t.end(fail, "%d values stay", found())
	}
	if n := found(); n < full/2 {
		t.remark("fewer than half of the %d values that may stay do so", full)
	}
}

// evictedTold lets four goroutines create 25,000 keys each in such a cache, and
// delete every tenth. Pass: the listener that closes values is told of each
// value that has left, once, and of none that is still there. Reported of
// golang-lru, whose listener was not always called, and of vitess, where
// connections stayed open. It takes luck.
func evictedTold(t *trial) {
	const workers, each = 4, 25_000
	t.rounds = workers * each
	var serial atomic.Int32
	told := make([]atomic.Int32, 2*workers*each)
	c := t.peer.open(config[string, *engine]{
		bound: full,
		create: func(_ context.Context, key string) (*engine, error) {
			return &engine{key, int(serial.Add(1))}, nil
		},
		left: func(_ string, e *engine) { told[e.serial].Add(1) },
	})
	callers := make([]*caller, workers)
	for worker := range callers {
		callers[worker] = t.do(func() {
			for i := range each {
				key := fmt.Sprint(worker, " ", i)
				_, _ = c.get(context.Background(), key)
				if i%10 == 0 {
					c.delete(key)
				}
			}
		})
	}
	t.join("callers", callers...)
	there := func() map[int]bool {
		var keys []string
		c.(ranger).each(func(key string) bool { keys = append(keys, key); return true })
		found := map[int]bool{}
		for _, key := range keys {
			if e, err := c.get(context.Background(), key); err == nil {
				found[e.serial] = true
			}
		}
		return found
	}
	silent := func() (n int) {
		found := there()
		for i := 1; i <= int(serial.Load()); i++ {
			if told[i].Load() == 0 && !found[i] {
				n++
			}
		}
		return n
	}
	twice := func() {
		for i := range told {
			if told[i].Load() > 1 {
				t.end(fail, "the listener is told of a value more than once")
			}
		}
	}
	twice()
	if !t.waitFor(func() bool { return silent() == 0 }) {
		t.end(fail, "the listener is not told of some of %s values", grouped(t.rounds))
	}
	twice()
	found := there()
	for i := range told {
		if told[i].Load() > 0 && found[i] {
			t.end(wrong, "the listener is told of a value that is still there")
		}
	}
}

// evictedCallback lets the listener that is told of evicted values use the
// cache: ask for a key that is there, and delete one that is not. Pass: whoever
// creates does not hang, and the listener is told. Reported of golang-lru,
// which called it under its lock.
func evictedCallback(t *trial) {
	var told atomic.Int32
	d := t.openWith(config[string, *engine]{bound: full, left: func(key string, _ *engine) {
		t.cache.delete("absent")
		if key != "used" {
			_, _ = t.cache.get(context.Background(), "used")
		}
		told.Add(1)
	}})
	d.release()
	creator := t.do(func() {
		for i := range 2 * full {
			_, _ = t.cache.get(context.Background(), "used")
			_, _ = t.cache.get(context.Background(), fmt.Sprint(i))
		}
	})
	t.join("who creates", creator)
	if !t.waitFor(func() bool { return told.Load() >= full/2 }) {
		t.end(hang, "the listener does not return")
	}
}

// evictedInUse lets two callers use a value while 10,000 others come into such a
// cache, and return it one after the other. Pass: it is closed, if at all, after
// the second one has returned it, and once.
func evictedInUse(t *trial) {
	var closed atomic.Int32
	d := t.openWith(config[string, *engine]{bound: full, left: func(key string, _ *engine) {
		if key == "a" {
			closed.Add(1)
		}
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
	crowd := func() {
		for i := range 10_000 {
			_, _ = t.cache.get(context.Background(), fmt.Sprint("other ", i))
		}
	}
	t.join("others", t.do(crowd), t.do(crowd))
	release[0]()
	if closed.Load() != 0 {
		t.end(fail, "the value is closed while it is in use")
	}
	release[1]()
	crowd()
	if n := closed.Load(); n > 1 {
		t.end(fail, "the value is closed %d times", n)
	}
}

// expired lets 1,000 callers come for a key whose time is over. Pass: one
// creation runs, and none of them gets the old value.
func expired(t *trial) {
	d := t.openWith(config[string, *engine]{expires: true})
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	t.cache.(expirer).expire()
	callers := t.askMany(1000, "a")
	t.settle()
	d.release()
	t.join("callers", callers...)
	for _, c := range callers {
		if c.v == nil || c.v.serial == 1 {
			t.end(wrong, "a caller %v", c)
		}
	}
	if n := d.count(); n != 2 {
		t.end(fail, "%d creations for 1,000 callers", n-1)
	}
}

// expiredInFlight lets a cache look for values that are too old while the next
// value of such a key is being created. Pass: the look does not wait for the
// creation, and the new value stays, whatever happened to the old one.
func expiredInFlight(t *trial) {
	d := t.openWith(config[string, *engine]{expires: true})
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	x := t.cache.(expirer)
	x.expire()
	next := t.ask("a")
	creation := d.await(2)
	d.others()
	sweep := t.do(x.sweep)
	waited := !t.wait(sweep)
	creation.returns()
	t.join("callers", next, sweep)
	if waited {
		t.end(fail, "the look for old values waits for the creation")
	}
	if next.v == nil {
		t.end(wrong, "the caller %v", next)
	}
	if kept := t.kept("a"); kept != next.v {
		t.end(fail, "the value that was created does not stay: another caller gets engine %d", kept.serial)
	}
}

// expiredTold looks, with a cache that looks for old values while the next one
// is created, what the listener is told that closes values. Pass: it is told
// once of the old value, and not of the new one that is there.
func expiredTold(t *trial) {
	var told told
	d := t.openWith(config[string, *engine]{expires: true, left: told.left})
	first := t.ask("a")
	d.await(1).returns()
	t.join("the first caller", first)
	x := t.cache.(expirer)
	x.expire()
	next := t.ask("a")
	creation := d.await(2)
	sweep := t.do(x.sweep)
	t.wait(sweep)
	creation.returns()
	t.join("callers", next, sweep)
	t.waitFor(func() bool { return len(told.serials()) > 0 })
	switch got := told.serials(); {
	case slices.Contains(got, 2):
		t.end(wrong, "the listener is told of the new value")
	case len(got) > 1:
		t.end(fail, "the listener is told %d times of the old value", len(got))
	case len(got) == 0:
		t.end(fail, "the listener is not told of the old value")
	}
}

// setOver sets two values whose time is over while two callers ask for the key, and
// while the cache is closed where that is possible, 500 times over. Pass: everybody
// returns, and in the end the listener that closes values has been told of each value
// that was set, once, and of each that was created, unless a caller got it and the
// cache did not keep it. A cache whose listener is not
// told of values that Set replaces is not asked. It takes luck.
func setOver(t *trial) {
	needsNoticeOfSet(t)
	t.rounds = 500
	for range t.rounds {
		var told told
		var serial, ready atomic.Int32
		t.cache = t.peer.open(config[string, *engine]{
			left:   told.left,
			over:   func(e *engine) bool { return e.key == "over" },
			create: func(context.Context, string) (*engine, error) { return &engine{"created", int(serial.Add(1))}, nil },
		})
		set := func() { t.cache.set("a", &engine{"over", int(serial.Add(1))}) }
		var mu sync.Mutex
		got := make(map[int]bool)
		get := func() {
			if e, err := t.cache.get(context.Background(), "a"); err == nil && e.key == "created" {
				mu.Lock()
				got[e.serial] = true
				mu.Unlock()
			}
		}
		steps := []func(){set, get, set, get}
		if c, ok := t.cache.(closer); ok {
			steps = append(steps, func() { c.close(context.Background()) })
		}
		var callers []*caller
		for _, step := range steps {
			callers = append(callers, t.do(func() {
				ready.Add(1)
				for int(ready.Load()) < len(steps) {
					runtime.Gosched()
				}
				step()
			}))
		}
		t.join("callers", callers...)
		t.emptied("a")
		t.cache.(expirer).sweep()
		t.eachToldOnce(&told, int(serial.Load()), got)
	}
}

// hung is a listener that does not return from the first value that it is told
// of, and counts the others.
type hung struct {
	begun  atomic.Bool
	others atomic.Int32
}

func (h *hung) left(string, *engine) {
	if h.begun.CompareAndSwap(false, true) {
		select {}
	}
	h.others.Add(1)
}

// hungEviction creates 10,000 keys in a cache that is bound to 1,000, where the
// listener that closes values does not return from the first one that is evicted:
// a connection whose peer does not answer. Pass: whoever creates returns, and the
// listener is told of the others.
func hungEviction(t *trial) {
	const keys = 10 * full
	var h hung
	d := t.openWith(config[string, *engine]{bound: full, left: h.left})
	d.release()
	t.join("who creates", t.do(func() {
		for i := range keys {
			_, _ = t.cache.get(context.Background(), fmt.Sprint(i))
		}
	}))
	if !t.waitFor(func() bool { return h.others.Load() >= keys-2*full }) {
		t.end(fail, "the listener is not told of values that were evicted later")
	}
}

// hungExpiry lets the time of ten values pass, where the listener does not return
// from the first one. Pass: it is told of the other nine, and who asks for one of
// the keys gets a new value.
func hungExpiry(t *trial) {
	const keys = 10
	var h hung
	d := t.openWith(config[string, *engine]{expires: true, left: h.left})
	d.release()
	for i := range keys {
		t.join("the first callers", t.ask(fmt.Sprint(i)))
	}
	x := t.cache.(expirer)
	x.expire()
	t.wait(t.do(x.sweep))
	if !t.waitFor(func() bool { return h.others.Load() == keys-1 }) {
		t.end(fail, "the listener is not told of the other values")
	}
	for i := range keys {
		if t.kept(fmt.Sprint(i)).serial <= keys {
			t.end(wrong, "who asks for a key gets the old value")
		}
	}
}

// idleUsed uses each of 20,000 values once more at about the time when it would
// leave because nobody has used it, while the cache looks for such values. Pass:
// who has found a value finds it again a moment later. It takes luck.
func idleUsed(t *trial) {
	const run, users = 16, 2
	t.rounds = 20_000
	c := t.peer.open(config[string, *engine]{idles: true, create: func(_ context.Context, key string) (*engine, error) {
		return &engine{key: key}, nil
	}})
	keys := make([]string, t.rounds)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		if _, err := c.get(context.Background(), keys[i]); err != nil {
			t.end(wrong, "a caller gets an error")
		}
	}
	begin := time.Now().Add(idleLife * 5 / 6)
	var stop, lost atomic.Bool
	p := c.(peeker)
	use := func(mine [][]string) {
		var found []string // of the run before
		var at time.Time
		for i, keys := range mine {
			time.Sleep(time.Until(begin.Add(idleLife * time.Duration(i) / time.Duration(len(mine)))))
			for _, key := range found {
				_, ok := p.peek(key)
				if !ok && time.Since(at) < idleLife/3 {
					lost.Store(true)
				}
			}
			found, at = found[:0], time.Now()
			for _, key := range keys {
				if _, ok := p.peek(key); ok {
					found = append(found, key)
				}
			}
		}
	}
	runs := slices.Collect(slices.Chunk(keys, run))
	var all []*caller
	for user := range users {
		mine := runs[user*len(runs)/users : (user+1)*len(runs)/users]
		all = append(all, t.do(func() { use(mine) }))
	}
	sweeper := t.do(func() {
		for !stop.Load() {
			c.(expirer).sweep()
			runtime.Gosched()
		}
	})
	t.wait(all...)
	stop.Store(true)
	t.join("users", append(all, sweeper)...)
	if lost.Load() {
		t.end(fail, "a value leaves that somebody has used a moment before, in some of %s rounds", grouped(t.rounds))
	}
}

// idleInUse lets a caller use a value for longer than values stay that nobody
// uses, and return it. Pass: it is not closed meanwhile, and who asks for the key
// gets it; when its time is over after that, it is closed once.
func idleInUse(t *trial) {
	var told told
	d := t.openWith(config[string, *engine]{expires: true, idles: true, left: told.left})
	d.release()
	e, release, err := t.cache.(lessor).acquire(context.Background(), "a")
	if err != nil {
		t.end(fail, "no lease: %v", err)
	}
	x := t.cache.(expirer)
	x.expire()
	x.sweep()
	t.settle()
	if len(told.serials()) > 0 {
		t.end(fail, "the value is closed while it is in use")
	}
	if t.kept("a") != e {
		t.end(fail, "who asks for the key meanwhile gets another value")
	}
	release()
	x.expire()
	x.sweep()
	t.waitFor(func() bool { return len(told.serials()) > 0 })
	if n := len(told.serials()); n != 1 {
		t.end(fail, "the value is closed %d times when its time is over", n)
	}
}
