package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// batchOverlap lets a batch of a and b wait for its function, and another one
// of b and c come meanwhile. Pass: each key is made once, and both get their
// two values.
func batchOverlap(t *trial) {
	d := t.open()
	one := t.askBatch("a", "b")
	d.await(1)
	other := t.askBatch("b", "c")
	t.settle()
	d.release()
	t.join("batches", one.caller, other.caller)
	onceEach(t, "a", "b", "c")
	if one.got["a"] == nil || one.got["b"] == nil || other.got["b"] != one.got["b"] || other.got["c"] == nil {
		t.end(wrong, "the batches get %d and %d values, or not the same of the key that they share", len(one.got), len(other.got))
	}
}

// onceEach ends the case unless each key was created once.
func onceEach(t *trial, keys ...string) {
	for _, key := range keys {
		if n := t.studio.made(key); n != 1 {
			t.end(fail, "a key is created %d times", n)
		}
	}
}

// batchOpposite lets two goroutines ask for the same eight new keys in opposite
// order, 2,000 times over. Pass: each key is made once, and neither waits for
// ever. Who claims keys one by one and waits on the way hangs here. It takes
// luck.
func batchOpposite(t *trial) {
	const n = 8
	t.rounds = 2000
	created := make([]atomic.Int32, t.rounds*n)
	c := t.peer.open(config[string, *engine]{createMany: func(_ context.Context, keys []string) (map[string]*engine, error) {
		made := make(map[string]*engine)
		for _, key := range keys {
			i, err := strconv.Atoi(key)
			if err != nil {
				return nil, err
			}
			created[i].Add(1)
			made[key] = &engine{key: key}
		}
		return made, nil
	}}).(batcher)
	var silent atomic.Bool
	batches := t.do(func() {
		inRounds(2, t.rounds, func(worker, round int) {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprint(round*n + i)
			}
			if worker == 1 {
				slices.Reverse(keys)
			}
			if got, err := c.getMany(context.Background(), keys); err == nil && len(got) != n {
				silent.Store(true)
			}
		})
	})
	t.join("batches", batches)
	if silent.Load() {
		t.end(wrong, "a batch gets fewer values than it has keys, and no error")
	}
	for i := range created {
		if k := created[i].Load(); k != 1 {
			t.end(fail, "a key is created more than once in some of %s rounds", grouped(t.rounds))
		}
	}
}

// batchAndSingle lets a batch of a and b come while a is created for a single
// caller, and then a single caller for b. Pass: each key is made once, whoever
// asks for it.
func batchAndSingle(t *trial) {
	d := t.open()
	a := t.ask("a")
	d.await(1)
	both := t.askBatch("a", "b")
	t.settle()
	b := t.ask("b")
	t.settle()
	d.release()
	t.join("callers", a, both.caller, b)
	onceEach(t, "a", "b")
	if both.got["a"] == nil || both.got["a"] != a.v || both.got["b"] != b.v {
		t.end(wrong, "batch and single callers get different values")
	}
}

// batchFails lets the function of a batch fail, for one of whose keys others
// wait. Pass: all get to know, by an error, and the next caller of any of the
// keys begins anew.
func batchFails(t *trial) {
	batchIsNoPoison(t, func(c *creation) { c.fails(errCreate) })
}

// batchPanics lets it panic. Pass: all who wait get to know, by an error or a
// panic of their own, and no key is poisoned. Found by reading hot's
// singleflightx, where the keys after the first are never finished.
func batchPanics(t *trial) {
	batchIsNoPoison(t, (*creation).panics)
}

// batchExits lets it call runtime.Goexit. Pass: as after a panic.
func batchExits(t *trial) {
	batchIsNoPoison(t, (*creation).exits)
}

func batchIsNoPoison(t *trial, end func(*creation)) {
	d := t.open()
	one := t.askBatch("a", "b", "c")
	creation := d.await(1)
	other := t.askBatch("b")
	t.settle()
	end(creation)
	t.settle()
	d.release()
	t.join("batches", one.caller, other.caller)
	if one.returned && !one.told() || other.returned && !other.told() {
		t.end(wrong, "a batch gets no value and no error")
	}
	if !other.told() {
		t.end(fail, "a batch that waits gets neither value nor error: its goroutine is ended too")
	}
	for _, key := range []string{"a", "b", "c"} {
		t.kept(key)
	}
	batch := t.askBatch("a", "b", "c")
	t.join("the next batch", batch.caller)
	if len(batch.got) != 3 {
		t.end(fail, "the next batch gets %d of 3 values", len(batch.got))
	}
}

// batchJoinsFailure lets a batch of a and b wait for another one of a, which
// fails, 20 times over. Pass: it gets to know, and what its own function made of
// b is kept.
func batchJoinsFailure(t *trial) {
	t.rounds = 20 // because it may look at one of the two before the other
	for range t.rounds {
		d := t.open()
		one := t.askBatch("a")
		creation := d.await(1)
		other := t.askBatch("a", "b")
		d.await(2)
		t.settle()
		creation.fails(errCreate)
		d.release()
		t.join("batches", one.caller, other.caller)
		if other.returned && other.got["a"] == nil && other.err == nil {
			t.end(wrong, "a batch gets no value of a key, and no error")
		}
		if t.kept("b"); d.made("b") != 1 {
			t.end(fail, "what the batch made is not kept")
		}
	}
}

// batchLeaves cancels the caller of a batch for one of whose keys another batch
// waits. Pass: the other one gets its value, as with single keys.
func batchLeaves(t *trial) {
	d := t.open()
	ctx, cancel := context.WithCancel(context.Background())
	one := t.askBatchWith(ctx, "a", "b")
	creation := d.await(1)
	other := t.askBatch("b")
	t.settle()
	cancel()
	t.settle()
	if creation.ctx.Err() != nil {
		creation.fails(creation.ctx.Err())
	}
	d.release()
	t.join("batches", one.caller, other.caller)
	if other.v == nil {
		t.end(fail, "a batch with a live context gets %q", other.err)
	}
}

// batchOmits lets the function leave out a key for which another batch and a
// single caller wait. Pass: nobody gets nil for a value without an error, the
// key that was made is returned, and the next caller of the other one begins
// anew.
func batchOmits(t *trial) {
	d := t.open()
	one := t.askBatch("a", "b")
	creation := d.await(1)
	other := t.askBatch("b")
	single := t.ask("b")
	t.settle()
	creation.returnsEdited(func(made map[string]*engine) { delete(made, "b") })
	t.settle()
	d.release()
	t.join("callers", one.caller, other.caller, single)
	for _, b := range []*batch{one, other} {
		if e, ok := b.got["b"]; ok && e == nil {
			t.end(wrong, "a batch gets nil for the key that was left out")
		}
	}
	if single.returned && !single.told() {
		t.end(wrong, "a single caller %v", single)
	}
	if one.got["a"] == nil {
		t.end(fail, "the batch does not get the value that was made")
	}
	if kept := t.kept("b"); kept.serial == 1 {
		t.end(wrong, "the key that was left out has a value of that creation")
	}
}

// batchAdds lets the function add a key that it was not asked for, and that is
// set while it runs. Pass: the batch gets its own keys only, and the value that
// was set stays: it is newer. Of a key that has no value either is right: it is
// kept, or it is not.
func batchAdds(t *trial) {
	d := t.open()
	one := t.askBatch("a", "b")
	creation := d.await(1)
	given := &engine{key: "c"}
	set := t.do(func() { t.cache.set("c", given) })
	t.settle()
	creation.returnsEdited(func(made map[string]*engine) {
		made["c"], made["d"] = &engine{"c", 1}, &engine{"d", 1}
	})
	t.join("the batch, and who sets", one.caller, set)
	t.settle()
	d.release()
	if t.kept("c") != given {
		t.end(fail, "a key that nobody asked for replaces the value that was set meanwhile")
	}
	if len(one.got) != 2 {
		t.end(fail, "a batch of 2 keys gets %d values", len(one.got))
	}
	if t.kept("d").serial == 1 {
		t.remark("a key that nobody asked for, and that has no value, is kept")
	}
}

// batchAddsFlight lets the function add a key that is being created for
// somebody else. Pass: that creation goes on, and in the end there is one
// instance: its caller has the one that the cache keeps.
func batchAddsFlight(t *trial) {
	d := t.open()
	one := t.askBatch("a", "b")
	creation := d.await(1)
	single := t.ask("c")
	d.await(2)
	t.settle()
	creation.returnsEdited(func(made map[string]*engine) { made["c"] = &engine{"c", 1} })
	t.join("the batch", one.caller)
	t.settle()
	d.release()
	t.join("the other caller", single)
	if kept := t.kept("c"); kept != single.v {
		t.end(fail, "two instances: the caller of the key %v, the cache keeps engine %d", single, kept.serial)
	}
}

// batchNeedsItself lets the function of a batch ask for one of its own keys.
// Pass: it gets an error instead of waiting for itself.
func batchNeedsItself(t *trial) {
	var once sync.Once
	t.cache = t.peer.open(config[string, *engine]{
		create: func(_ context.Context, key string) (*engine, error) { return &engine{key: key}, nil },
		createMany: func(ctx context.Context, keys []string) (_ map[string]*engine, err error) {
			once.Do(func() { _, err = t.cache.(batcher).getMany(ctx, keys[:1]) })
			return nil, err
		},
	})
	b := t.askBatch("a", "b")
	t.join("the batch", b.caller)
	if !b.told() {
		t.end(wrong, "the batch gets no value and no error")
	}
}

// batchBeside lets the function of a batch of two keys return a value of one of
// them beside an error. Pass: the batch gets to know of the error, and the value
// is not lost: the caller has it, it is in the cache, or it is told to the listener
// that closes values.
func batchBeside(t *trial) {
	var told told
	d := t.openWith(config[string, *engine]{left: told.left})
	b := t.askBatch("a", "b")
	d.await(1).failsBeside(errCreate, func(made map[string]*engine) { delete(made, "b") })
	t.join("the batch", b.caller)
	t.settle()
	d.release()
	if b.returned && b.err == nil {
		t.end(wrong, "the batch gets no error")
	}
	if b.got["a"] != nil || slices.Contains(told.serials(), 1) {
		return
	}
	if t.kept("a").serial != 1 {
		t.end(fail, "the value is dropped: neither caller nor cache has it, and no listener is told")
	}
}

// batchBeyondBound asks for 2,000 keys at once in a cache that is bound to 1,000,
// and nobody else uses it. Pass: the batch gets all values, and the listener that
// closes values is told of none of them before somebody else comes, because the
// caller has only just got them. So there are too many until then.
func batchBeyondBound(t *trial) {
	var mu sync.Mutex
	closed := map[*engine]bool{}
	d := t.openWith(config[string, *engine]{bound: full, left: func(_ string, e *engine) {
		mu.Lock()
		closed[e] = true
		mu.Unlock()
	}})
	d.release()
	keys := make([]string, 2*full)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	b := t.askBatch(keys...)
	t.join("the batch", b.caller)
	t.settle()
	if len(b.got) != len(keys) {
		t.end(fail, "the batch does not get all values")
	}
	mu.Lock()
	defer mu.Unlock()
	for _, e := range b.got {
		if closed[e] {
			t.end(fail, "the listener is told of some values that the batch has just got")
		}
	}
}
