//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/oncecache"
)

// label names a deed after its context and what its create function may do.
func label(name string, i, v int, endings []ending) string {
	s := fmt.Sprintf("%s(%s, %d", name, [...]string{"a", "b", "∞"}[i], v)
	for _, e := range endings {
		s += fmt.Sprint(" or ", e)
	}
	return s + ")"
}

// askFor is a GetOrCreateContext with context i.
func askFor(i, v int, endings ...ending) deed {
	return deed{label("Ask", i, v, endings), func(w *world) {
		w.guard(func() {
			got, err := w.c.GetOrCreateContext(w.ctx[i], key, func(ctx context.Context, _ string) (int, error) {
				return w.make(ctx, v, endings)
			})
			w.got(i, got, err)
		})
	}}
}

// plain is a GetOrCreate.
func plain(v int, endings ...ending) deed {
	return deed{label("GetOrCreate", never, v, endings), func(w *world) {
		w.guard(func() {
			got, err := w.c.GetOrCreate(key, func() (int, error) { return w.make(context.Background(), v, endings) })
			w.got(never, got, err)
		})
	}}
}

// hold is an Acquire with context i; what it gets is used and released.
func hold(i, v int, endings ...ending) deed {
	return holdThen("", func(w *world, l *oncecache.Lease[string, int]) { l.Release() }, i, v, endings)
}

// discard is hold, and then Discard.
func discard(i, v int, endings ...ending) deed {
	return holdThen(", Discard", func(w *world, l *oncecache.Lease[string, int]) {
		w.discarded[l.Value()].Add(1)
		l.Discard()
	}, i, v, endings)
}

func holdThen(then string, end func(*world, *oncecache.Lease[string, int]), i, v int, endings []ending) deed {
	return deed{label("Acquire", i, v, endings) + then, func(w *world) {
		w.guard(func() {
			next := v - attempts
			l, err := w.c.Acquire(w.ctx[i], key, func(ctx context.Context, _ string) (int, error) {
				next += attempts
				return w.make(ctx, next, endings)
			})
			if err != nil {
				w.got(i, 0, err)
				return
			}
			got := l.Value()
			w.got(i, got, nil)
			if w.closed[got].Load() != 0 {
				w.m.Failf("%d is in use, and closed", got)
			}
			end(w, &l)
		})
	}}
}

// leaves ends context i.
func leaves(i int) deed {
	return deed{"End(" + [...]string{"a", "b"}[i] + ")", func(w *world) {
		w.left[i].Add(1)
		w.leave[i]()
	}}
}

func sets(v int) deed {
	return deed{fmt.Sprintf("Set(%d)", v), func(w *world) {
		w.brought[v].Add(1)
		w.c.Set(key, v)
	}}
}

func setsIfAbsent(v int) deed {
	return deed{fmt.Sprintf("SetIfAbsent(%d)", v), func(w *world) {
		w.brought[v].Add(1) // for as long as it may be found
		if !stored(w.c.SetIfAbsent(key, v)) {
			w.brought[v].Add(-1)
		}
	}}
}

// drops is a CompareAndDelete.
func drops(v int) deed {
	return deed{fmt.Sprintf("CompareAndDelete(%d)", v), func(w *world) { oncecache.CompareAndDelete(w.c, key, v) }}
}

var (
	deletes = deed{"Delete", func(w *world) { w.c.Delete(key) }}

	// shuts closes the cache and waits for all.
	shuts = closes("∞", never)

	// shutsSoon closes the cache and waits until context b ends.
	shutsSoon = closes("b", 1)
)

// closes closes the cache with context i. Unless that ends it, nothing is left,
// and no more errors come: see world.end.
func closes(name string, i int) deed {
	return deed{"Close(" + name + ")", func(w *world) {
		err := w.c.Close(w.ctx[i])
		if errors.Is(err, context.Canceled) {
			return
		}
		w.empty()
		w.waited.Add(1)
		w.returned.Add(joinedIn(err))
	}}
}

// joinedIn returns the number of errors that Close has joined.
func joinedIn(err error) int {
	if err == nil {
		return 0
	}
	return len(err.(interface{ Unwrap() []error }).Unwrap())
}
