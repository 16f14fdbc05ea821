package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// errNested is how a create function ends that could not get the key it asked
// for in turn.
var errNested = errors.New("create got no value")

// ownKey lets a create function ask for the key that it creates. It cannot get
// a value. Pass: it gets an error instead of waiting for itself. Otter and
// sync.Once warn of it in their documentation.
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

// cycle lets two goroutines create two keys, each of which needs the other.
// Pass: at least one gets an error, and nobody waits for ever. Ben Manes, of
// Caffeine: "a fast fail is much better than a deadlock".
func cycle(t *trial) {
	goesRound(t, func(ctx context.Context, get func(context.Context, string) (*engine, error), key string) (*engine, error) {
		return get(ctx, key)
	})
}

// cycleWithoutContext does the same with create functions that do not hand on
// their context, as many do not. Pass: as above.
func cycleWithoutContext(t *trial) {
	goesRound(t, func(_ context.Context, get func(context.Context, string) (*engine, error), key string) (*engine, error) {
		return get(context.Background(), key)
	})
}

// goesRound lets a need b and b need a, by need.
func goesRound(t *trial, need func(context.Context, func(context.Context, string) (*engine, error), string) (*engine, error)) {
	var begun atomic.Int32
	both := make(chan struct{})
	other := map[string]string{"a": "b", "b": "a"}
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, key string) (*engine, error) {
		if begun.Add(1) == 2 {
			close(both)
		}
		<-both
		return need(ctx, t.cache.get, other[key])
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

// cycleOfCaches lets a key of one cache need a key of another one, which needs
// the first. Pass: the caller gets an error, and does not wait for ever.
func cycleOfCaches(t *trial) {
	var second cache[string, *engine]
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, _ string) (*engine, error) {
		return second.get(ctx, "of the second")
	}})
	second = t.peer.open(config[string, *engine]{create: func(ctx context.Context, _ string) (*engine, error) {
		return t.cache.get(ctx, "a")
	}})
	c := t.ask("a")
	t.join("the caller", c)
	if !c.told() {
		t.end(wrong, "the caller %v", c)
	}
}

// diamond lets a need b and c at a time, on goroutines of its own, and both of
// them need d, 100 times over. Pass: that is no cycle, and everybody gets a
// value.
func diamond(t *trial) {
	const n = 100
	needs := map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}
	var joined [n]sync.WaitGroup
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, key string) (*engine, error) {
		var name string
		var round int
		if _, err := fmt.Sscan(key, &name, &round); err != nil {
			return nil, err
		}
		if name == "b" || name == "c" { // both have begun before either asks for d
			joined[round].Done()
			joined[round].Wait()
		}
		var parts sync.WaitGroup
		errs := make([]error, len(needs[name]))
		for i, part := range needs[name] {
			parts.Go(func() { _, errs[i] = t.cache.get(ctx, fmt.Sprint(part, " ", round)) })
		}
		parts.Wait()
		return &engine{key: key}, errors.Join(errs...)
	}})
	for round := range n {
		joined[round].Add(2)
		c := t.ask(fmt.Sprint("a ", round))
		if !t.wait(c) {
			t.end(hang, "the caller does not return, in one of %d cases", n)
		}
		if c.v == nil {
			t.end(fail, "the caller %v", c)
		}
	}
}

// laterSelf lets a create function start a goroutine that asks for the key with
// the context of create, and does not wait for it: something that uses the value
// once it is there. Pass: it gets the value, because nobody would wait for
// ever.
func laterSelf(t *trial) {
	var later *caller
	started := make(chan struct{})
	goOn := make(chan struct{})
	t.cache = t.peer.open(config[string, *engine]{create: func(ctx context.Context, key string) (*engine, error) {
		if later == nil {
			later = t.askWith(context.WithoutCancel(ctx), key)
			close(started)
		}
		<-goOn
		return &engine{key: key}, nil
	}})
	c := t.ask("a")
	<-started
	t.settle()
	close(goOn)
	t.join("callers", c, later)
	if c.v == nil || later.v != c.v {
		t.end(fail, "what create has started, and does not wait for, %v", later)
	}
}
