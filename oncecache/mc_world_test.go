//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// The protocols in this file are explored for what must never happen, rather
// than for an order that explains them: callers come and go by their contexts,
// values are held and closed, and the cache is closed.

// world is one execution of such a protocol.
type world struct {
	m    *mc.M
	c    *oncecache.Cache[string, int]
	rule rule

	ctx   [3]context.Context // 0 and 1 can end, the last one cannot
	leave [2]context.CancelFunc
	left  [2]mc.Tally

	running   atomics.Int32       // create functions
	closed    [40]atomics.Uint32  // by value: how often the Close function was called
	born      [40]mc.Tally        // by value: how often create returned it
	brought   [40]mc.Tally        // by value: how often the cache took it from Set
	discarded [40]mc.Tally        // by value: how many discarded it
	had       [40]mc.Tally        // by value: who got it
	exited    mc.Tally            // create functions that called runtime.Goexit
	told      [40]mc.Tally        // by value: who got the error of the creation that was to make it
	flights   [40]context.Context // by value: the context that its create function got
	waited    mc.Tally            // calls of Close that waited for all
	returned  mc.Tally            // errors that these returned
}

// never is the number of the context that cannot end.
const never = 2

// rule says what may happen in a protocol.
type rule struct {
	closes   bool // there is a Close function
	overlap  bool // create functions may overlap: Set or Delete ends creations
	shutdown bool // some thread closes the cache
	replaces bool // threads discard values, and then acquire others
	exits    bool // the Close function calls runtime.Goexit
	explore  extent
}

// deed is what a thread does.
type deed struct {
	name string
	do   func(*world)
}

// refused is the error of the creation of a value.
type refused int

func (v refused) Error() string { return fmt.Sprint("refused ", int(v)) }

// inhabit explores threads that do their deeds to one key, after those of
// first, and whatever else the cache starts.
func inhabit(t *testing.T, r rule, first []deed, threads ...[]deed) {
	t.Helper()
	before := ""
	if len(first) > 0 {
		before = "after " + mc.Listed([][]deed{first}, deed.String) + ": "
	}
	mc.Check(t, r.explore.of(before+mc.Listed(threads, deed.String)), func(m *mc.M) {
		w := &world{m: m, rule: r}
		config := oncecache.Config[string, int]{}
		if r.closes {
			config.Close = w.close
		}
		w.c = oncecache.MustNew(config)
		for i := range w.leave {
			w.ctx[i], w.leave[i] = atomics.WithCancel(context.Background())
		}
		w.ctx[never] = context.Background()
		for _, d := range first {
			d.do(w)
		}
		for _, deeds := range threads {
			m.Go(func() {
				for _, d := range deeds {
					d.do(w)
				}
			})
		}
		m.Final(w.end)
	})
}

func (d deed) String() string { return d.name }

// close is the Close function.
func (w *world) close(k string, v int) error {
	if w.closed[v].Add(1) != 1 {
		w.m.Failf("%d is closed twice", v)
	}
	if w.rule.exits {
		runtime.Goexit()
	}
	return nil
}

// end looks at what is left when everyone is done.
func (w *world) end() {
	creating, entries := oncecache.Creating(w.c)
	v, present := w.c.Get(key)
	if creating != 0 || (entries == 1) != present || entries > 1 {
		w.m.Failf("%d entries, %d of them being created", entries, creating)
	}
	if present && w.made(v) == 0 {
		w.m.Failf("the value is %d, which nobody made", v)
	}
	if present && w.closed[v].Load() != 0 {
		w.m.Failf("the value %d is closed", v)
	}
	for v, ctx := range w.flights {
		if ctx != nil && ctx.Done() != nil {
			w.cancelled(v, context.Cause(ctx) == context.Canceled)
		}
	}
	exited := w.rule.exits
	w.rule.exits = false
	err := w.c.Close(context.Background())
	if err != nil && !exited && !strings.Contains(err.Error(), "function panicked: refused") {
		w.m.Failf("Close returns %v", err)
	}
	if !exited && w.returned.Value() != w.waited.Value()*joinedIn(err) { // those of a Set may come later
		w.m.Failf("Close has waited for all, and did not return %v", err)
	}
	w.empty()
	if n := oncecache.Pending(w.c); n != 0 {
		w.m.Failf("%d still pending", n)
	}
	if w.rule.replaces {
		w.replaced(present)
	}
	if w.rule.closes {
		for v := range w.born {
			if made, closed := w.made(v), int(w.closed[v].Load()); made != closed {
				w.m.Failf("%d was made %d times and closed %d times", v, made, closed)
			}
		}
	}
}

// cancelled looks at a creation by whether its context has ended. Whoever has
// left does not get the error, and whoever came after that does not get it
// either; and if nobody has got anything, all have left.
func (w *world) cancelled(v int, ended bool) {
	heard := w.told[v].Value() > 0
	if ended && heard {
		w.m.Failf("creation %d was cancelled, and somebody got its error", v)
	}
	if !ended && !heard && w.had[v].Value() == 0 && w.exited.Value() == 0 && !w.rule.overlap && !w.rule.shutdown {
		w.m.Failf("all have left creation %d, and it was not cancelled", v)
	}
}

// replaced looks at whether the values that came are those that were discarded,
// and the one that is present.
func (w *world) replaced(present bool) {
	left := 0
	for v := range w.born {
		left += w.made(v) - min(w.discarded[v].Value(), 1)
	}
	if left != 0 && left != 1 || (left == 1) != present {
		w.m.Failf("%d values are left, present: %t", left, present)
	}
}

// made returns how often the cache has got v.
func (w *world) made(v int) int { return w.born[v].Value() + w.brought[v].Value() }

// empty looks at a cache that is closed, and whose Close has waited.
func (w *world) empty() {
	if w.running.Load() != 0 {
		w.m.Failf("Close returned before a create function")
	}
	for v := range w.born {
		if w.rule.closes && w.born[v].Value() > 0 && w.closed[v].Load() == 0 {
			w.m.Failf("Close returned before %d was closed", v)
		}
	}
}

// attempts numbers the creations of a caller, who may have to try again.
const attempts = 10

// make is a create function that returns v, or ends otherwise.
func (w *world) make(ctx context.Context, v int, endings []ending) (int, error) {
	if w.running.Add(1) != 1 && !w.rule.overlap {
		w.m.Failf("two creations at once")
	}
	w.flights[v] = ctx
	defer w.running.Add(-1)
	if i := w.m.Choose(len(endings) + 1); i > 0 {
		switch endings[i-1] {
		case inError:
			return 0, refused(v)
		case inPanic:
			panic(refused(v))
		case inGoexit:
			w.exited.Add(1)
			runtime.Goexit()
		}
	}
	w.born[v].Add(1)
	return v, nil
}

// got checks what a call of a caller with context i returned.
func (w *world) got(i int, v int, err error) {
	var failure refused
	switch {
	case err == nil:
		w.had[v].Add(1)
		if w.made(v) == 0 {
			w.m.Failf("got %d, which nobody made", v)
		}
	case err == context.Canceled:
		if i == never || w.left[i].Value() == 0 {
			w.m.Failf("a caller got the end of another's context")
		}
	case err == oncecache.ErrClosed:
		if !w.rule.shutdown {
			w.m.Failf("closed")
		}
	case errors.As(err, &failure):
		w.told[failure].Add(1)
	case err != oncecache.ErrGoexit:
		w.m.Failf("got %v", err)
	}
}

// guard calls f, which may panic or exit with what a create function did.
func (w *world) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			var failure refused
			if err, ok := p.(error); !ok || !errors.As(err, &failure) {
				panic(p)
			}
			w.told[failure].Add(1)
		}
	}()
	f()
}
