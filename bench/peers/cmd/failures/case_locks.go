package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// errNested is how a create function ends that could not get the key it asked
// for in turn.
var errNested = errors.New("create got no value")

const others = 2000

// slowKey creates 2,000 other keys while one creation does not end. None waits
// for it. Caffeine, ttlcache and xsync had such waits reported, where keys
// share a lock that is held during a creation.
func slowKey(t *trial) {
	d := t.open()
	slow := t.ask("slow")
	creation := d.await(1)
	d.others()
	othersAsk(t, creation, "create another key")
	t.join("the slow caller", slow)
}

// slowHit asks for 2,000 keys that are there, while the creation of another one
// does not end.
func slowHit(t *trial) {
	d := t.open()
	for i := range others {
		t.cache.set(fmt.Sprint(i), &engine{key: fmt.Sprint(i)})
	}
	slow := t.ask("slow")
	creation := d.await(1)
	d.others()
	othersAsk(t, creation, "find a key that is there")
	t.join("the slow caller", slow)
}

// othersAsk asks for the other keys, then ends the slow creation, and ends the
// case if somebody had to wait for that.
func othersAsk(t *trial, slow *creation, what string) {
	callers := make([]*caller, others)
	for i := range callers {
		callers[i] = t.ask(fmt.Sprint(i))
	}
	delayed := !t.wait(callers...)
	slow.returns()
	t.join("callers", callers...)
	if delayed {
		t.end(fail, "some of 2,000 callers who would %s wait until the slow creation ends", what)
	}
	for _, c := range callers {
		if c.v == nil {
			t.end(wrong, "a caller %v", c)
		}
	}
}

// otherKey lets create functions ask the same cache for other keys, 500 times
// over: a client that needs a token, a plan that needs its parts. Caffeine,
// Guava, Elasticsearch, Symfony and Java's maps had the hangs reported that
// follow where a lock is held.
func otherKey(t *trial) {
	const n = 500
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, key string) (*engine, error) {
		if part, ok := strings.CutPrefix(key, "whole "); ok {
			return t.cache.get(ctx, "part "+part)
		}
		return &engine{key: key}, nil
	}})
	for i := range n {
		c := t.ask(fmt.Sprint("whole ", i))
		if !t.wait(c) {
			t.end(hang, "create waits for another key, in one of %d cases", n)
		}
		if c.v == nil {
			t.end(fail, "the caller %v", c)
		}
	}
}

// ownKey lets a create function ask for the key that it creates. It cannot get
// a value; it gets an error instead of waiting for itself. Otter and sync.Once
// warn of it in their documentation.
func ownKey(t *trial) {
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, key string) (*engine, error) {
		e, err := t.cache.get(ctx, key)
		return e, errors.Join(errNested, err)
	}})
	c := t.ask("a")
	t.join("create", c)
	if !c.told() {
		t.end(wrong, "the caller %v", c)
	}
}

// cycle lets two goroutines create two keys, each of which needs the other. At
// least one gets an error, and nobody waits for ever. Ben Manes, of Caffeine:
// "a fast fail is much better than a deadlock".
func cycle(t *trial) {
	var begun atomic.Int32
	both := make(chan struct{})
	need := map[string]string{"a": "b", "b": "a"}
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, key string) (*engine, error) {
		if begun.Add(1) == 2 {
			close(both)
		}
		<-both
		return t.cache.get(ctx, need[key])
	}})
	callers := []*caller{t.ask("a"), t.ask("b")}
	if !t.waitFor(func() bool { return begun.Load() >= 2 }) {
		t.remark("one of the two does not begin: their keys share a lock")
		close(both)
	}
	t.join("callers", callers...)
	for _, c := range callers {
		if !c.told() {
			t.end(wrong, "a caller %v", c)
		}
	}
}

// callback lets the listener that is told of 1,000 deleted values use the
// cache: create, set and delete other keys. It is told of all, and nobody
// hangs. Reported of golang-lru, which called it under its lock.
func callback(t *trial) {
	const n = 1000
	var told atomic.Int32
	d := t.openWith(config[string, *engine]{left: func(key string, _ *engine) {
		if !strings.HasPrefix(key, "old ") {
			return
		}
		_, _ = t.cache.get(context.Background(), "created for "+key)
		t.cache.set("set for "+key, &engine{key: key})
		t.cache.delete("created for " + key)
		told.Add(1)
	}})
	d.release()
	deleter := t.do(func() {
		for i := range n {
			t.cache.set(fmt.Sprint("old ", i), &engine{})
		}
		for i := range n {
			t.cache.delete(fmt.Sprint("old ", i))
		}
	})
	t.join("who deletes", deleter)
	if !t.waitFor(func() bool { return told.Load() == n }) {
		t.end(hang, "the listener does not return")
	}
}

// loop deletes and creates keys within a loop over all keys.
func loop(t *trial) {
	const n = 100
	d := t.open()
	d.release()
	for i := range n {
		t.cache.set(fmt.Sprint(i), &engine{})
	}
	seen := 0
	looper := t.do(func() {
		t.cache.(ranger).each(func(key string) bool {
			seen++
			t.cache.delete(key)
			_, _ = t.cache.get(context.Background(), "new")
			return seen < 10*n
		})
	})
	t.join("the loop", looper)
	if looper.panicked != nil {
		t.end(fail, "the loop panics: %v", looper.panicked)
	}
	if seen < n {
		t.end(fail, "the loop ends early: it does not see every key that was there before it began")
	}
}
