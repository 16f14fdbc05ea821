package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
)

const others = 2000

// slowKey creates 2,000 other keys while one creation does not end. Pass: none
// waits for it. Caffeine, ttlcache and xsync had such waits reported, where
// keys share a lock that is held during a creation.
func slowKey(t *trial) {
	d := t.open()
	slow := t.ask("slow")
	creation := d.await(1)
	d.others()
	othersAsk(t, creation, "create another key")
	t.join("the slow caller", slow)
}

// slowHit asks for 2,000 keys that are there, while the creation of another one
// does not end. Pass: none waits for it.
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
// over: a client that needs a token, a plan that needs its parts. Pass: all get
// their value. Caffeine, Guava, Elasticsearch, Symfony and Java's maps had the
// hangs reported that follow where a lock is held.
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

// callback lets the listener that is told of 1,000 deleted values use the
// cache: create, set and delete other keys. Pass: it is told of all, and nobody
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

// loop deletes and creates keys within a loop over all keys. Pass: the loop
// sees each key that was there before it began, and ends.
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
