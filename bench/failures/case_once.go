package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// once lets 1,000 goroutines ask for one key before its creation may end. Pass:
// one creation runs, and everybody gets its value. The least that these caches
// are for.
func once(t *trial) {
	const n = 1000
	d := t.open()
	callers := t.askMany(n, "a")
	t.settle()
	d.release()
	t.join("callers", callers...)
	if got := d.count(); got != 1 {
		t.end(fail, "%d creations for %d callers", got, n)
	}
	for _, c := range callers {
		if c.v == nil || c.v != callers[0].v {
			t.end(wrong, "a caller %v", c)
		}
	}
}

// publication lets a caller who has not found the key go on only after another
// one has created its value. Pass: it gets that value and creates no second
// one. Otter, eko/gocache (three times), moka and parca had this reported, and
// it made two engines for one URL where this library comes from. Where a caller
// cannot be held there, three goroutines ask for one new key after the other,
// which takes luck to fail.
func publication(t *trial) {
	if _, lacking := t.peer.lacks[stops]; lacking {
		publicationByLuck(t)
		return
	}
	var misses atomic.Int32
	missed, goOn := make(chan struct{}), make(chan struct{})
	d := t.openWith(config[string, *engine]{missed: func() {
		if misses.Add(1) == 1 {
			close(missed)
			<-goOn
		}
	}})
	d.release()
	late := t.ask("a")
	<-missed
	creator := t.ask("a")
	t.join("the creator", creator)
	close(goOn)
	t.join("the late caller", late)
	if n := d.count(); n != 1 {
		t.end(fail, "%d creations: who had missed the key before the first one ended runs another", n)
	}
	if late.v != creator.v {
		t.end(wrong, "the late caller %v, the creator %v", late, creator)
	}
}

func publicationByLuck(t *trial) {
	const workers = 3
	t.rounds = 50_000
	keys := make([]string, t.rounds)
	for round := range keys {
		keys[round] = strconv.Itoa(round)
	}
	created := make([]atomic.Int32, t.rounds)
	c := t.peer.open(config[string, *engine]{create: func(_ context.Context, key string) (*engine, error) {
		round, err := strconv.Atoi(key)
		if err != nil {
			return nil, err
		}
		return &engine{key, int(created[round].Add(1))}, nil
	}})
	inRounds(workers, t.rounds, func(worker, round int) {
		for late := round % 50 * worker; late > 0; late-- { // not all at the same time
			created[round].Load()
		}
		_, _ = c.get(context.Background(), keys[round])
	})
	for round := range created {
		if n := created[round].Load(); n != 1 {
			t.end(fail, "a key is created twice in some of %s rounds", grouped(t.rounds))
		}
	}
}

// inRounds runs f on several goroutines, which begin each round together.
func inRounds(workers, rounds int, f func(worker, round int)) {
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for round := range rounds {
				arrived.Add(1)
				for arrived.Load() < int64(workers*(round+1)) {
					runtime.Gosched()
				}
				f(worker, round)
			}
		})
	}
	wg.Wait()
}

// setInFlight sets a value while another is being created: a program that
// creates in one place and stores in another. Pass: in the end there is one
// instance: who asked for the key has the one that the cache keeps, and it is
// the one set, unless Set waited for the creation and replaced its value. Two
// engines for one URL were the defect that this library answers.
func setInFlight(t *trial) {
	d := t.open()
	creator := t.ask("a")
	creation := d.await(1)
	waiter := t.ask("a")
	t.settle()
	given := &engine{key: "a"}
	set := t.do(func() { t.cache.set("a", given) })
	t.settle()
	waited := !set.ended()
	creation.returns()
	d.release()
	t.join("creator, waiter and setter", creator, waiter, set)
	kept := t.kept("a")
	if waited && kept == given {
		t.remark("`Set` waits for the creation and replaces its value")
		return
	}
	for who, c := range map[string]*caller{"creator": creator, "waiter": waiter} {
		if c.v == nil {
			t.end(wrong, "the %s %v", who, c)
		}
	}
	switch {
	case kept != given:
		t.end(fail, "the value created replaces the one that was set meanwhile")
	case creator.v != given || waiter.v != given:
		t.end(fail, "two instances: the callers hold the one created, the cache keeps the one set")
	}
}

// successor deletes a key while it is being created, starts the next creation,
// and lets the first one end. Pass: who asks now joins the second creation, and
// its value stays. Reported of singleflight itself (Forget), and of lazycache:
// the end of the first removed whatever had the key.
func successor(t *trial) {
	d := t.open()
	first := t.ask("a")
	d.await(1)
	deletion := t.do(func() { t.cache.delete("a") })
	t.settle()
	second := t.ask("a")
	t.settle()
	if !deletion.ended() || d.count() == 1 {
		d.release()
		t.join("callers", first, second, deletion)
		t.end(na, "observed: a deletion does not end a creation under way")
	}
	d.await(1).returns()
	t.settle()
	third := t.ask("a")
	t.settle()
	n := d.count()
	d.release()
	t.join("callers", first, second, third)
	if n > 2 || third.v == nil || second.v == nil {
		t.end(fail, "the end of the first creation removed the second, and a third began")
	}
	if kept := t.kept("a"); kept != second.v || third.v != second.v {
		t.end(wrong, "the second caller %v, the third %v, and the cache keeps engine %d", second, third, kept.serial)
	}
}

// pairsThatPrintAlike asks for {"a b", "c"} and, while that is being created,
// for {"a", "b c"}. Pass: each gets its own value. Found by reading ttlcache,
// which joins callers by what fmt.Sprint makes of their keys.
func pairsThatPrintAlike(t *trial) {
	goOn := make(chan struct{})
	var begun atomic.Int32
	c := t.peer.pairs(config[pair, *engine]{create: func(_ context.Context, key pair) (*engine, error) {
		if begun.Add(1) == 1 {
			<-goOn
		}
		return &engine{key: key.first}, nil
	}})
	ask := func(key pair) *caller {
		return t.call(func() (*engine, error) { return c.get(context.Background(), key) })
	}
	one := ask(pair{"a b", "c"})
	t.settle()
	other := ask(pair{"a", "b c"})
	t.settle()
	close(goOn)
	t.join("callers", one, other)
	if other.v == nil || other.v.key != "a" {
		t.end(wrong, "who asks for one of two keys that print alike gets the value of the other")
	}
}

// nilPointer creates a nil pointer without an error, and asks again. Pass: it
// is a value like any other, with no error and no second creation.
func nilPointer(t *trial) {
	created := 0
	c := t.peer.open(config[string, *engine]{create: func(context.Context, string) (*engine, error) {
		created++
		return nil, nil
	}})
	for range 2 {
		call := t.call(func() (*engine, error) { return c.get(context.Background(), "a") })
		t.join("a caller", call)
		if !call.returned || call.err != nil {
			t.end(fail, "a caller %v instead", call)
		}
	}
	if created != 1 {
		t.end(fail, "it is created %d times", created)
	}
}

// nilInterface does the same where values are of an interface type, where nil
// has no type to be asserted. Pass: as above.
func nilInterface(t *trial) {
	created := 0
	c := t.peer.anys(config[string, any]{create: func(context.Context, string) (any, error) {
		created++
		return nil, nil
	}})
	for range 2 {
		call := t.call(func() (*engine, error) {
			v, err := c.get(context.Background(), "a")
			if v != nil {
				err = fmt.Errorf("got %v", v)
			}
			return nil, err
		})
		t.join("a caller", call)
		if call.panicked != nil {
			t.end(fail, "a caller panics: %v", call.panicked)
		}
		if !call.returned || call.err != nil {
			t.end(fail, "a caller gets the error %q", call.err)
		}
	}
	if created != 1 {
		t.end(fail, "it is created %d times", created)
	}
}

// peekInFlight looks for a key, without creating it, while it is absent, while
// it is being created, and when it is there. Pass: only the last finds it, no
// look waits and none begins a creation. Reported of any-sync, where removing
// what was still being loaded ended in a crash, and of lazycache, which counts
// it.
func peekInFlight(t *trial) {
	d := t.open()
	p := t.cache.(peeker)
	look := func(when string) (*engine, bool) {
		var e *engine
		found := false
		c := t.do(func() { e, found = p.peek("a") })
		if !t.wait(c) {
			d.release()
			t.end(fail, "a look %s waits", when)
		}
		return e, found
	}
	if _, found := look("for an absent key"); found || d.count() > 0 {
		t.end(fail, "a look for an absent key creates it")
	}
	creator := t.ask("a")
	d.await(1)
	t.settle()
	e, found := look("during the creation")
	if found {
		t.end(wrong, "a look during the creation finds %v", e)
	}
	d.release()
	t.join("the creator", creator)
	if e, found := look("afterwards"); !found || e != creator.v {
		t.end(fail, "a look afterwards does not find the value")
	}
}

// waitOnly waits for a key without creating it, while it is absent and while it
// is being created. Pass: the former returns with an error at once, the latter
// gets the value of that creation, and none begins one.
func waitOnly(t *trial) {
	d := t.open()
	wait := func() *caller {
		return t.call(func() (*engine, error) { return t.cache.(waiter).wait(context.Background(), "a") })
	}
	absent := wait()
	t.join("who waits for an absent key", absent)
	if absent.err == nil || d.count() > 0 {
		t.end(fail, "who waits for an absent key %v, with %d creations", absent, d.count())
	}
	creator := t.ask("a")
	d.await(1)
	waiter := wait()
	t.settle()
	d.release()
	t.join("callers", creator, waiter)
	if d.count() != 1 || waiter.v == nil || waiter.v != creator.v {
		t.end(fail, "who waits during the creation %v, the creator %v", waiter, creator)
	}
}
