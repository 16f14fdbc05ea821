//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
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

// Callers of one creation come and go. Nobody gets the end of another's
// context, or an error that may come from a cancellation; create functions do
// not overlap; nobody waits for ever. A caller is written with its context: a
// and b can end, ∞ cannot.
func TestProtocolsOfCallers(t *testing.T) {
	type threads = [][]deed
	none := []deed(nil)
	for _, tt := range []struct {
		name    string
		rule    rule
		first   []deed
		threads threads
	}{
		{"all endings", rule{}, none, threads{{askFor(0, 1, inError, inPanic, inGoexit)}, {askFor(1, 2, inError)}}},
		{"on the caller's goroutine", rule{}, none, threads{{askFor(never, 1, inError, inPanic, inGoexit)}, {askFor(0, 2, inError)}, {leaves(0)}}},
		{"the only one leaves", rule{}, none, threads{{askFor(0, 1, inError, inPanic, inGoexit)}, {leaves(0)}}},
		{"one of two leaves", rule{}, none, threads{{askFor(0, 1, inError)}, {askFor(1, 2)}, {leaves(0)}}},
		{"both leave", rule{}, none, threads{{askFor(0, 1, inError)}, {askFor(1, 2)}, {leaves(0), leaves(1)}}},
		{"an heir", rule{}, none, threads{{askFor(0, 1, inError, inPanic, inGoexit)}, {leaves(0), askFor(1, 2)}}},
		{"an heir who leaves", rule{}, none, threads{{askFor(0, 1, inError)}, {leaves(0), askFor(1, 2)}, {leaves(1)}}},
		{"a plain heir", rule{}, none, threads{{askFor(0, 1, inError)}, {leaves(0)}, {plain(2, inError)}}},
		{"a plain creator", rule{}, none, threads{{plain(1, inError)}, {askFor(0, 2, inError)}, {leaves(0)}}},
		{"Set", rule{overlap: true}, none, threads{{askFor(0, 1, inError, inPanic)}, {sets(5)}, {leaves(0)}}},
		{"Set and a waiter", rule{overlap: true}, none, threads{{askFor(0, 1, inError)}, {askFor(1, 2)}, {sets(5)}}},
		{"Delete", rule{overlap: true}, none, threads{{askFor(0, 1, inError, inPanic)}, {deletes}, {leaves(0)}}},
		{"Delete and an heir", rule{overlap: true}, none, threads{{askFor(0, 1, inError), deletes}, {leaves(0), askFor(1, 2)}}},
		{"Delete and then an heir", rule{overlap: true}, none, threads{{askFor(0, 1, inError)}, {deletes, leaves(0), askFor(1, 2)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { inhabit(t, tt.rule, tt.first, tt.threads...) })
	}
}

// Values are held and removed: each is closed once, never while a lease is
// held, and none is left open when the cache is closed in the end.
func TestProtocolsOfLeases(t *testing.T) {
	type threads = [][]deed
	var (
		none   = []deed(nil)
		seven  = []deed{sets(7)}
		closes = rule{closes: true}
		ended  = rule{closes: true, overlap: true}

		replaces = rule{closes: true, replaces: true}
		exits    = rule{closes: true, overlap: true, exits: true}
	)
	for _, tt := range []struct {
		name    string
		rule    rule
		first   []deed
		threads threads
	}{
		{"two users", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}}},
		{"two users and Delete", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {deletes}}},
		{"a user and Set", closes, seven, threads{{hold(never, 1)}, {sets(5)}, {sets(6)}}},
		{"two discard", replaces, seven, threads{{discard(never, 1)}, {discard(never, 2)}}},
		{"two discard, one goes on", replaces, seven, threads{{discard(never, 1), hold(never, 2)}, {discard(never, 3)}}},
		{"Discard where nothing is closed", rule{replaces: true}, seven, threads{{discard(never, 1), hold(never, 2)}, {discard(never, 3), hold(never, 4)}}},
		{"one discards, one uses", closes, seven, threads{{discard(never, 1)}, {hold(never, 2), deletes}}},
		{"three users", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {hold(never, 3)}}},
		{"two users, and one discards", closes, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {discard(never, 3)}}},
		{"creation", closes, none, threads{{hold(never, 1, inError)}, {hold(never, 2)}}},
		{"creation and Delete", ended, none, threads{{hold(never, 1, inError)}, {hold(never, 2)}, {deletes}}},
		{"creation and Set", ended, none, threads{{hold(never, 1, inError)}, {hold(never, 2)}, {sets(5)}}},
		{"creation without leases and Delete", ended, none, threads{{plain(1, inError)}, {hold(never, 2)}, {deletes}}},
		{"creation left", closes, none, threads{{hold(0, 1, inError)}, {leaves(0)}}},
		{"creation left by one", closes, none, threads{{hold(0, 1)}, {hold(1, 2)}, {leaves(0)}}},
		{"creation left and Delete", ended, none, threads{{hold(0, 1)}, {leaves(0)}, {deletes}}},
		{"creation left and Set", ended, none, threads{{hold(0, 1)}, {leaves(0)}, {sets(5)}}},
		{"SetIfAbsent and Delete", closes, none, threads{{setsIfAbsent(5)}, {hold(never, 1)}, {deletes}}},
		{"CompareAndDelete", closes, seven, threads{{drops(7)}, {hold(never, 1)}, {sets(5)}}},
		{"creation and Delete, and Goexit", exits, none, threads{{plain(1)}, {plain(2)}, {deletes}}},
	} {
		t.Run(tt.name, func(t *testing.T) { inhabit(t, tt.rule, tt.first, tt.threads...) })
	}
}

// The cache is closed while others use it. When Close has returned, no create
// function runs, and every value that one made is closed.
func TestProtocolsOfClose(t *testing.T) {
	type threads = [][]deed
	var (
		none   = []deed(nil)
		seven  = []deed{sets(7)}
		opened = rule{shutdown: true}
		closes = rule{shutdown: true, closes: true}
		ended  = rule{shutdown: true, closes: true, overlap: true}
		wide   = rule{shutdown: true, closes: true, explore: twice}
		exits  = rule{shutdown: true, closes: true, overlap: true, exits: true, explore: twice}
	)
	for _, tt := range []struct {
		name    string
		rule    rule
		first   []deed
		threads threads
	}{
		{"two Close", closes, seven, threads{{shuts}, {shuts}}},
		{"two Close and a user", wide, seven, threads{{hold(never, 1)}, {shuts}, {shuts}}},
		{"a user", closes, seven, threads{{hold(never, 1)}, {shuts}}},
		{"a user, and no patience", wide, seven, threads{{hold(never, 1)}, {shutsSoon, shuts}, {leaves(1)}}},
		{"two users", wide, seven, threads{{hold(never, 1)}, {hold(never, 2)}, {shuts}}},
		{"creation", closes, none, threads{{hold(never, 1, inError, inPanic, inGoexit)}, {shuts}}},
		{"creation where nothing is closed", opened, none, threads{{plain(1, inError, inPanic)}, {shuts}}},
		{"creation and a waiter", wide, none, threads{{plain(1)}, {hold(never, 2)}, {shuts}}},
		{"creation of its own", closes, none, threads{{askFor(0, 1, inError, inPanic)}, {shuts}}},
		{"creation left", closes, none, threads{{hold(0, 1)}, {shuts}, {leaves(0)}}},
		{"creation left, and a panic", opened, none, threads{{askFor(0, 1, inPanic)}, {shuts}, {leaves(0)}}},
		{"Set", closes, seven, threads{{sets(5)}, {shuts}}},
		{"Set and Set", wide, none, threads{{sets(5)}, {sets(6)}, {shuts}}},
		{"Set and a user", closes, none, threads{{sets(5), hold(never, 1)}, {shuts}}},
		{"Set where nothing is closed", opened, none, threads{{sets(5)}, {plain(1)}, {shuts}}},
		{"SetIfAbsent", closes, none, threads{{setsIfAbsent(5)}, {setsIfAbsent(6)}, {shuts}}},
		{"Delete", wide, seven, threads{{deletes}, {hold(never, 1)}, {shuts}}},
		{"Delete of a creation", ended, none, threads{{hold(0, 1, inError)}, {deletes}, {shuts}}},
		{"Delete of a creation that is left", ended, none, threads{{hold(0, 1)}, {deletes, shuts}, {leaves(0)}}},
		{"Discard", closes, seven, threads{{discard(never, 1)}, {shuts}}},
		{"Set, and Goexit", exits, seven, threads{{sets(5)}, {shuts}}},
		{"Set and a creation, and Goexit", exits, none, threads{{plain(1)}, {sets(5)}, {shuts}}},
	} {
		t.Run(tt.name, func(t *testing.T) { inhabit(t, tt.rule, tt.first, tt.threads...) })
	}
}

// A lease that is copied, released and released again by its copies, each of
// which panics: the count is what it was.
func TestLeaseReleasedThreeTimes(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "after Acquire, Release: Release of a copy ∥ Release of another"}, func(m *mc.M) {
		closed := 0
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { closed++; return nil }})
		c.Set(key, 7)
		acquire := func() *oncecache.Lease[string, int] {
			l, _ := c.Acquire(context.Background(), key, func(context.Context, string) (int, error) { return failing() })
			return &l
		}
		l := acquire()
		for _, again := range []*oncecache.Lease[string, int]{oncecache.CopyLease(l), oncecache.CopyLease(l)} {
			m.Go(func() {
				defer func() {
					if recover() == nil {
						m.Failf("a lease is released again, and that does not panic")
					}
				}()
				again.Release()
			})
		}
		l.Release()
		m.Final(func() {
			l := acquire()
			c.Delete(key)
			if closed != 0 {
				m.Failf("the value is in use, and closed")
			}
			l.Release()
			if closed != 1 {
				m.Failf("the value is closed %d times", closed)
			}
		})
	})
}

// One of three releases of two leases panics, and the count of users is as before.
func TestLeaseReleasedTwiceBesideAcquire(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "after Acquire, Release: Release of a copy ∥ Acquire"}, func(m *mc.M) {
		closed, panics := 0, 0
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { closed++; return nil }})
		c.Set(key, 7)
		acquire := func() oncecache.Lease[string, int] {
			l, _ := c.Acquire(context.Background(), key, func(context.Context, string) (int, error) { return failing() })
			return l
		}
		release := func(l *oncecache.Lease[string, int]) {
			defer func() {
				if recover() != nil {
					panics++
				}
			}()
			l.Release()
		}
		first := acquire()
		oncecache.SpreadUsers(&first)
		first.Release()
		l := acquire()
		again := oncecache.CopyLease(&l)
		l.Release()
		m.Go(func() { release(again) })
		m.Go(func() { l = acquire() })
		m.Final(func() {
			c.Delete(key)
			release(&l)
			if closed != 1 || panics != 1 {
				m.Failf("the value is closed %d times, after %d panics", closed, panics)
			}
		})
	})
}

// Info counts no more leases than there may be, while Delete takes the value away.
func TestInfoBesideDelete(t *testing.T) {
	mc.Check(t, everything.of("Info ∥ Acquire, Release ∥ Acquire, Release, Delete"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		m.Go(func() {
			if i, _ := c.Info(1); i.Leases > 2 {
				m.Failf("%d leases", i.Leases)
			}
		})
		use := func() {
			l, _ := c.Acquire(context.Background(), 1, makesOne)
			l.Release()
		}
		m.Go(use)
		m.Go(func() { use(); c.Delete(1) })
	})
}

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

// A creation takes effect twice: when it begins, so that others join it or
// find no value, and when it ends. mc.Linearizable knows operations that take
// effect once, so this file explains histories of another kind: of events, of
// which a GetOrCreate is two.

// key is the only key of the protocols: keys share nothing but counters.
const key = "k"

// action is one operation of a thread.
type action struct {
	name string
	do   func(*history)
}

// history is what happened in one execution, to one thread or to all.
type history struct {
	m         *mc.M
	c         *oncecache.Cache[string, int]
	events    []event
	creations []creationSeen
	running   [8]int // create functions, by thread
}

// event is a moment at which an operation takes effect, some time between
// begin and end, and after the event before it in the history if it follows.
type event struct {
	begin, end int64
	name, got  string
	model      func(*sequential) string
	follows    bool
	ends       bool // Set or Delete, which end creations that still run
}

// creationSeen is a call that ran its create function, from ran[0] to ran[1].
type creationSeen struct {
	called int64
	ran    [2]int64
}

func (h *history) do(actions []action) {
	for _, a := range actions {
		a.do(h)
	}
}

// once returns an operation that takes effect once. If it ends creations, that
// is Set or Delete.
func once(name string, ends bool, do func(*history) string, model func(*sequential) string) action {
	return action{name, func(h *history) {
		e := event{name: name, model: model, ends: ends, begin: h.m.Begin()}
		e.got = do(h)
		e.end = h.m.End()
		h.events = append(h.events, e)
	}}
}

func found(v int, ok bool) string { return fmt.Sprint(v, " ", ok) }

var (
	get = once("Get", false, func(h *history) string { return found(h.c.Get(key)) }, (*sequential).get)

	// all is a Get too: there is one key.
	all = once("All", false, func(h *history) string {
		for _, v := range h.c.All() {
			return found(v, true)
		}
		return found(0, false)
	}, (*sequential).get)

	remove = once("Delete", true, func(h *history) string { return found(h.c.Delete(key)) },
		func(s *sequential) string { return found(s.cache.Delete(modelKey)) })
)

func set(v int) action {
	return once(fmt.Sprintf("Set(%d)", v), true, func(h *history) string { return found(h.c.Set(key, v)) },
		func(s *sequential) string { return found(s.cache.Set(modelKey, v)) })
}

func setIfAbsent(v int) action {
	return once(fmt.Sprintf("SetIfAbsent(%d)", v), false, func(h *history) string { return fmt.Sprint(stored(h.c.SetIfAbsent(key, v))) },
		func(s *sequential) string { return fmt.Sprint(stored(s.cache.SetIfAbsent(modelKey, v))) })
}

func compareAndDelete(v int) action {
	return once(fmt.Sprintf("CompareAndDelete(%d)", v), false,
		func(h *history) string { return fmt.Sprint(oncecache.CompareAndDelete(h.c, key, v)) },
		func(s *sequential) string { return fmt.Sprint(s.cache.CompareAndDelete(modelKey, v)) })
}

// ending is how a create function ends.
type ending int

const (
	inValue ending = iota
	inError
	inPanic
	inGoexit
	joined // it was not called
)

func (e ending) String() string {
	return [...]string{"value", "error", "panic", "Goexit", "joined"}[e]
}

// outcome prints what GetOrCreate returns.
func outcome(v int, err error) string {
	switch err := err.(type) {
	case *oncecache.PanicError:
		return fmt.Sprint("PanicError ", err.Value)
	case *oncecache.CycleError:
		return fmt.Sprint("CycleError ", err.Path)
	}
	return fmt.Sprint(v, " ", err)
}

// shared is what those get who take part in a creation of v and do not run it.
func (e ending) shared(v int) (int, error) {
	if e == inValue {
		return v, nil
	}
	return 0, [...]error{inError: errRefused, inPanic: &oncecache.PanicError{Value: errRefused}, inGoexit: oncecache.ErrGoexit}[e]
}

// create asks for the key with a function that returns v, or in other
// executions ends in one of the ways given.
func create(v int, endings ...ending) action { return createWith(nil, v, endings...) }

// createWith is create with a function that does some actions first.
func createWith(inside []action, v int, endings ...ending) action {
	name := fmt.Sprintf("GetOrCreate(%d", v)
	for _, a := range inside {
		name += "; in it " + a.name
	}
	for _, e := range endings {
		name += fmt.Sprint(" or ", e)
	}
	return action{name + ")", func(h *history) {
		id, how, got := new(int), joined, "exits"
		seen := creationSeen{called: h.m.Begin()}
		defer func() {
			if p := recover(); p != nil {
				got = fmt.Sprint("panics ", p)
			}
			h.twice(id, v, seen, how, got, h.running[mc.Core()] > 0)
		}()
		got = outcome(h.c.GetOrCreate(key, func() (int, error) {
			how = inValue
			h.running[mc.Core()]++
			defer func() { h.running[mc.Core()]-- }()
			seen.ran[0] = h.m.End() // from here on, others must see that it has begun
			h.do(inside)
			defer func() { seen.ran[1] = h.m.Begin() }()
			if i := h.m.Choose(len(endings) + 1); i > 0 {
				how = endings[i-1]
			}
			switch how {
			case inError:
				return 99, errRefused
			case inPanic:
				panic(errRefused)
			case inGoexit:
				runtime.Goexit()
			}
			return v, nil
		}))
	}}
}

// twice records the two events of a GetOrCreate. The second may be earlier
// than the end of the create function: see DESIGN.md, two steps that act as
// one.
func (h *history) twice(id *int, v int, seen creationSeen, how ending, got string, within bool) {
	end := h.m.End()
	begun := end
	if how != joined {
		begun = seen.ran[0]
		h.creations = append(h.creations, seen)
	}
	h.events = append(h.events,
		event{begin: seen.called, end: begun, name: "GetOrCreate creates", got: fmt.Sprint(how != joined),
			model: func(s *sequential) string { return fmt.Sprint(s.begin(id)) }},
		event{begin: seen.called, end: end, name: fmt.Sprintf("GetOrCreate(%d, %v)", v, how), got: got, follows: true,
			model: func(s *sequential) string { return s.end(id, v, how, within) }})
}

// sequential is what a cache does for one key, one event at a time.
type sequential struct {
	cache *model.Cache
	calls map[*int]*model.Flight // what they take part in
}

// modelKey stands for key in the model.
const modelKey = 1

// begin reports whether the call creates.
func (s *sequential) begin(id *int) (creates bool) {
	s.calls[id], creates = s.cache.Begin(modelKey)
	return creates
}

// end returns what the call gets. Within says that the create function of the
// same key makes it.
func (s *sequential) end(id *int, v int, how ending, within bool) string {
	f := s.calls[id]
	switch {
	case how != joined:
		v, err := how.shared(v)
		s.cache.End(modelKey, f, v, err)
	case !f.Over && within:
		return outcome(0, &oncecache.CycleError{Path: []any{key, key}})
	case !f.Over:
		return "must wait"
	}
	switch how {
	case inPanic:
		return fmt.Sprint("panics ", errRefused)
	case inGoexit:
		return "exits"
	}
	return outcome(f.Value, f.Err)
}

func (s *sequential) get() string { return found(s.cache.Get(modelKey)) }

// protocol explores threads that use a cache together after the actions of
// first, which for an unused cache are none. In every execution, what the operations return and leave behind must be explained by
// some order of their events that agrees with real time; the counters must
// come out even; and create functions may overlap only if a Set or Delete may
// have ended one creation before the function of the other began.
func protocol(t *testing.T, first []action, threads ...[]action) {
	t.Helper()
	protocolOf(t, everything, first, threads...)
}

// protocolOf is protocol to an extent.
func protocolOf(t *testing.T, how extent, first []action, threads ...[]action) {
	t.Helper()
	verdicts := map[string]bool{} // of the histories seen so far
	operations := mc.Listed(threads, func(a action) string { return a.name })
	mc.Check(t, how.of(operations), func(m *mc.M) {
		c := new(cache)
		h := &history{m: m, c: c}
		h.do(first)
		histories := make([]history, len(threads))
		for i := range histories {
			histories[i] = history{m: m, c: c}
			m.Go(func() { histories[i].do(threads[i]) })
		}
		m.Final(func() {
			for i := range histories {
				h.events = append(h.events, histories[i].events...)
				h.creations = append(h.creations, histories[i].creations...)
			}
			v, present := c.Get(key)
			h.events = append(h.events, event{begin: math.MaxInt64, end: math.MaxInt64, name: "Get at the end",
				got: found(v, present), model: (*sequential).get})

			class := h.class()
			explained, seen := verdicts[class]
			if !seen {
				explained = h.explained(nil, 0)
				verdicts[class] = explained
			}
			if !explained {
				m.Failf("no order of events explains\n%v", h)
			}
			if h.overlap() {
				m.Failf("create functions overlap in\n%v", h)
			}
			want := 0
			if present {
				want = 1
			}
			if creating, entries := oncecache.Creating(c); creating != 0 || entries != want || c.Len() != want {
				m.Failf("%d entries, %d of them being created, Len() = %d, want %d", entries, creating, c.Len(), want)
			}
		})
	})
}

// overlap reports whether two create functions ran together for no reason.
func (h *history) overlap() bool {
	for _, a := range h.creations {
		for _, b := range h.creations {
			if a.ran[0] < b.ran[0] && b.ran[0] < a.ran[1] && !slices.ContainsFunc(h.events, func(e event) bool {
				return e.ends && min(a.called, b.called) < e.end && e.begin < b.ran[0]
			}) {
				return true
			}
		}
	}
	return false
}

// explained reports whether order, of which done is the set, can be completed.
func (h *history) explained(order []int, done uint) bool {
	if !h.agrees(order) {
		return false
	}
	for i, e := range h.events {
		if done>>i&1 == 0 && h.mayComeNext(i, e, done) && h.explained(append(order, i), done|1<<i) {
			return true
		}
	}
	return len(order) == len(h.events)
}

// mayComeNext reports whether e, the i-th event, has nothing before it that is
// still to come.
func (h *history) mayComeNext(i int, e event, done uint) bool {
	for j, o := range h.events {
		if done>>j&1 == 0 && (o.end < e.begin || e.follows && j == i-1) {
			return false
		}
	}
	return true
}

// agrees runs order on a fresh model and compares the last result: those
// before were compared when the order was shorter.
func (h *history) agrees(order []int) bool {
	s := sequential{model.NewCache(), map[*int]*model.Flight{}}
	got, want := "", ""
	for _, i := range order {
		got, want = h.events[i].model(&s), h.events[i].got
	}
	return got == want
}

// class is equal for histories with the same verdict.
func (h *history) class() string {
	var text strings.Builder
	for _, e := range h.events {
		before := uint(0)
		for i, o := range h.events {
			if o.end < e.begin {
				before |= 1 << i
			}
		}
		fmt.Fprintln(&text, e.name, e.got, before)
	}
	return text.String()
}

func (h *history) String() string {
	var text strings.Builder
	for _, e := range h.events {
		fmt.Fprintf(&text, "\t[%d, %d] %s = %s\n", e.begin, e.end, e.name, e.got)
	}
	return text.String()
}
