//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// An estate is a cache of several keys that owns its values, each of which is
// made once and must be closed once. In the end there is nothing left of it.
type estate struct {
	m     *mc.M
	c     *oncecache.Cache[int, int]
	keeps func(int, error) time.Duration

	ordered bool // there is an order
	made    [20]bool
	shut    [20]atomics.Uint32
}

func settle(m *mc.M, config oncecache.Config[int, int]) *estate {
	e := &estate{m: m, keeps: config.ErrorTTLFunc}
	e.ordered = config.MaxEntries > 0 || config.MaxWeight > 0 || config.TTLFunc != nil || config.ErrorTTLFunc != nil
	config.Close = func(_, v int) error {
		if e.shut[v].Add(1) != 1 {
			m.Failf("%d is closed twice", v)
		}
		return nil
	}
	e.c = oncecache.MustNew(config)
	return e
}

// make returns a create function of v.
func (e *estate) make(v int) func(context.Context, int) (int, error) {
	return func(context.Context, int) (int, error) {
		e.made[v] = true
		return v, nil
	}
}

func (e *estate) set(k, v int) {
	e.made[v] = true
	e.c.Set(k, v)
}

// hold uses the value of k, which must not be closed meanwhile.
func (e *estate) hold(k, v int) {
	l, err := e.c.Acquire(context.Background(), k, e.make(v))
	if err != nil {
		return
	}
	if e.shut[l.Value()].Load() != 0 {
		e.m.Failf("%d is in use, and closed", l.Value())
	}
	l.Release()
}

// wantError checks that err is nil or one of these.
func (e *estate) wantError(err error, possible ...error) {
	for _, p := range append(possible, nil) {
		if err == p || p != nil && errors.Is(err, p) {
			return
		}
	}
	e.m.Failf("error %v", err)
}

// over closes the cache, and checks what is left.
func (e *estate) over() {
	// Kept errors are there without a value.
	if creating, entries := oncecache.Creating(e.c); creating != 0 && e.keeps == nil || entries != e.c.Len()+creating {
		e.m.Failf("%d entries without a value, of %d", creating, entries)
	}
	if n := oncecache.Hidden(e.c); n != 0 {
		e.m.Failf("%d functions that have ended are kept", n)
	}
	if names := oncecache.Named(e.c); len(names) != 0 {
		e.m.Failf("%v are named, and nothing is left of them", names)
	}
	if err := e.c.Close(context.Background()); err != nil {
		e.m.Failf("Close returns %v", err)
	}
	if n := e.places(); n != 0 {
		e.m.Failf("%d places are left after Close", n)
	}
	if creating, entries := oncecache.Creating(e.c); creating != 0 || entries != 0 {
		e.m.Failf("%d entries without a value, of %d, after Close", creating, entries)
	}
	if n := oncecache.Pending(e.c); n != 0 {
		e.m.Failf("%d are pending", n)
	}
	for v, made := range e.made {
		if n := e.shut[v].Load(); made != (n == 1) {
			e.m.Failf("%d was made: %v, and closed %d times", v, made, n)
		}
	}
}

// places returns how many places the order has, if there is one.
func (e *estate) places() int {
	if e.ordered {
		return oncecache.Places(e.c)
	}
	return 0
}

// A scene is what some threads do in an estate.
type scene struct {
	name    string
	config  oncecache.Config[int, int]
	before  func(*estate)
	threads []func(*estate)
	after   func(*estate)
}

func (s scene) run(t *testing.T) { s.explore(t, everything) }

func (s scene) explore(t *testing.T, how extent) {
	t.Run(s.name, func(t *testing.T) {
		mc.Check(t, how.of(fmt.Sprint(len(s.threads), " threads: ", s.name)), func(m *mc.M) {
			e := settle(m, s.config)
			if s.before != nil {
				s.before(e)
			}
			for _, f := range s.threads {
				m.Go(func() { f(e) })
			}
			m.Final(func() {
				if s.after != nil {
					s.after(e)
				}
				e.over()
			})
		})
	})
}

// Values have to make room while others come, are used and are removed.
func TestProtocolsOfEviction(t *testing.T) {
	one := oncecache.Config[int, int]{MaxEntries: 1}
	full := func(e *estate) { e.set(1, 1) }
	atMost := func(n int) func(*estate) {
		return func(e *estate) {
			if e.c.Len() > n {
				e.m.Failf("%d entries", e.c.Len())
			}
		}
	}
	set := func(k, v int) func(*estate) { return func(e *estate) { e.set(k, v) } }
	hold := func(k, v int) func(*estate) { return func(e *estate) { e.hold(k, v) } }
	for _, s := range []scene{
		{"two keys come to an empty cache", one, nil, []func(*estate){set(1, 1), set(2, 2)}, atMost(1)},
		{"two keys come to a full one", one, full, []func(*estate){set(2, 2), set(3, 3)}, atMost(1)},
		{"one comes, the other goes", one, full, []func(*estate){set(2, 2), func(e *estate) { e.c.Delete(1) }}, atMost(1)},
		{"one comes, the other is used", one, full, []func(*estate){set(2, 2), hold(1, 3)}, atMost(2)},
		{"one comes, the other is hit again and again", one, full, []func(*estate){set(2, 2), func(e *estate) {
			e.c.Get(1)
			e.c.Get(1)
			e.c.Get(1)
		}}, atMost(1)},
		{"one comes and goes", one, full, []func(*estate){set(2, 2), func(e *estate) { e.c.Delete(2) }}, atMost(1)},
		{"a creation, and one that goes", one, full, []func(*estate){hold(2, 2), func(e *estate) { e.c.Delete(2) }}, atMost(2)},
	} {
		s.run(t)
	}
	scene{"one comes, the other is replaced", one, full, []func(*estate){set(2, 2), set(1, 3)}, atMost(1)}.explore(t, twice)
	scene{"Close", one, full, []func(*estate){set(2, 2), func(e *estate) { e.c.Close(context.Background()) }}, atMost(0)}.explore(t, twice)
}

// Whoever asks whether an entry was used takes nothing from the other who asks.
func TestProtocolsOfMarks(t *testing.T) {
	type mark = oncecache.Mark
	for _, tt := range []struct {
		name        string
		asks, other func(*mark) bool
		uses        func(*mark)
	}{
		{"a hit", (*mark).AskedByIdle, (*mark).AskedBySieve, (*mark).Touch},
		{"the end of a lease", (*mark).AskedBySieve, (*mark).AskedByIdle, (*mark).Held},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "one asks ∥ " + tt.name + "; then the other asks"}, func(m *mc.M) {
				var used mark
				used.Touch()
				tt.other(&used)
				m.Go(func() {
					if !tt.asks(&used) {
						m.Failf("not used")
					}
				})
				m.Go(func() { tt.uses(&used) })
				m.Final(func() {
					if !tt.other(&used) {
						m.Failf("the use is lost")
					}
				})
			})
		})
	}
}

// Leases are seen wherever they are counted: what somebody holds does not make room.
func TestProtocolsOfHeldEntries(t *testing.T) {
	type cache = *oncecache.Cache[int, int]
	full := func() cache {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		return c
	}
	acquire := func(c cache, l *oncecache.Lease[int, int]) {
		*l, _ = c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) { return 0, errRefused })
	}
	push := func(m *mc.M, c cache) {
		c.Set(2, 2)
		if _, ok := c.Get(1); !ok {
			m.Failf("a value that is in use had to make room")
		}
	}
	t.Run("two come and one goes", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Acquire ∥ Acquire; then one Release, and Set of another key"}, func(m *mc.M) {
			c := full()
			var users [2]oncecache.Lease[int, int]
			for i := range users {
				m.Go(func() { acquire(c, &users[i]) })
			}
			m.Final(func() {
				users[0].Release()
				push(m, c)
				users[1].Release()
			})
		})
	})
	t.Run("two come meanwhile", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "after Acquire: Acquire ∥ Acquire ∥ Set of another key"}, func(m *mc.M) {
			c := full()
			var users [3]oncecache.Lease[int, int]
			acquire(c, &users[0])
			m.Go(func() { acquire(c, &users[1]) })
			m.Go(func() { acquire(c, &users[2]) })
			m.Go(func() { push(m, c) })
		})
	})
}

// What is in use when a sweep begins, or later, is not idle.
func TestProtocolsOfIdleness(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "after Acquire: Release ∥ a sweep"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error { return nil }})
		l, err := c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) { return 1, nil })
		if err != nil {
			m.Failf("%v", err)
		}
		oncecache.SweepIdle(c) // so that nothing says that it was used but the lease
		m.Go(l.Release)
		m.Go(func() { oncecache.SweepIdle(c) })
		m.Final(func() {
			if c.Len() != 1 {
				m.Failf("the value was in use, and is removed")
			}
		})
	})
}

// Nor is what Refresh holds, though it does not note a use.
func TestProtocolsOfRefreshedEntries(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Refresh ∥ a sweep"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error { return nil }})
		c.Set(1, 1) // which is no use
		m.Go(func() {
			_, err := c.Refresh(context.Background(), 1, func(_ context.Context, _, _ int, exists bool) (int, error) {
				if _, ok := c.Get(1); ok != exists {
					m.Failf("Refresh holds a value: %v; the key has one: %v", exists, ok)
				}
				return 2, nil
			})
			if err != nil {
				m.Failf("%v", err)
			}
		})
		m.Go(func() { oncecache.SweepIdle(c) })
	})
}

// Whichever of its callers puts what a Refresh has made in the place of the old value, the new
// one gets the old one's place in the order. So it is not one too many, and evicts nobody.
func TestRefreshedEvictsNobody(t *testing.T) {
	mc.Check(t, twice.of("two entries, as many as MaxEntries; Refresh ∥ Refresh of one"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
		c.Set(2, 2)
		c.Set(1, 1)
		for range 2 {
			m.Go(func() {
				if _, err := c.Refresh(context.Background(), 1, anew(makesTwo)); err != nil {
					m.Failf("%v", err)
				}
			})
		}
		m.Final(func() {
			if evicted := c.Stats().Evicted; c.Len() != 2 || evicted != 0 {
				m.Failf("%d entries, %d evicted", c.Len(), evicted)
			}
		})
	})
}

// Creations end by a timer, and their functions later.
func TestProtocolsOfTimeouts(t *testing.T) {
	brief := oncecache.Config[int, int]{CreateTimeout: 1}
	create := func(v int) func(*estate) {
		return func(e *estate) {
			got, err := e.c.GetOrCreate(1, func() (int, error) { return e.make(v)(nil, 1) })
			e.wantError(err, oncecache.ErrCreateTimeout, oncecache.ErrClosed)
			if err == nil && got == 0 {
				e.m.Failf("no value and no error")
			}
		}
	}
	// alone waits for its own creation, which has a goroutine of its own.
	alone := func(v int) func(*estate) {
		return func(e *estate) {
			ctx, _ := atomics.WithCancel(context.Background())
			got, err := e.c.GetOrCreateContext(ctx, 1, e.make(v))
			e.wantError(err, oncecache.ErrCreateTimeout)
			if err == nil && got != v {
				e.m.Failf("value %d", got)
			}
		}
	}
	again := func(v int) func(*estate) {
		return func(e *estate) {
			_, err := e.c.Refresh(context.Background(), 1, anew(e.make(v)))
			e.wantError(err, oncecache.ErrCreateTimeout)
		}
	}
	for _, s := range []scene{
		{"a creation", brief, nil, []func(*estate){create(1)}, nil},
		{"a creation and a waiter", brief, nil, []func(*estate){create(1), create(2)}, nil},
		{"a creation that is waited for, and Delete", brief, nil, []func(*estate){alone(1), func(e *estate) { e.c.Delete(1) }}, nil},
		{"a creation and Delete", brief, nil, []func(*estate){create(1), func(e *estate) { e.c.Delete(1) }}, nil},
		{"a creation and Set", brief, nil, []func(*estate){create(1), func(e *estate) { e.set(1, 5) }}, nil},
		{"Refresh and Set", brief, func(e *estate) { e.set(1, 1) }, []func(*estate){again(2), func(e *estate) { e.set(1, 5) }}, nil},
		{"a creation and Close", brief, nil, []func(*estate){create(1), func(e *estate) { e.c.Close(context.Background()) }}, nil},
	} {
		s.run(t)
	}
	scene{"two Refresh", brief, func(e *estate) { e.set(1, 1) }, []func(*estate){again(2), again(3)}, nil}.explore(t, twice)
}

// Errors stay in the place of values, which others put there or remove.
func TestProtocolsOfKeptErrors(t *testing.T) {
	keeps := oncecache.Config[int, int]{ErrorTTLFunc: func(int, error) time.Duration { return -1 }}
	alone := keeps
	alone.CloseBeforeCreate = true
	calls := 0
	fail := func(e *estate) {
		v, err := e.c.GetOrCreate(1, func() (int, error) { calls++; return 9, errRefused })
		if err == nil && v != 5 {
			e.m.Failf("value %d", v)
		}
	}
	failed := func(e *estate) { fail(e) }
	fresh := func(*estate) { calls = 0 }
	kept := func(e *estate) {
		if calls != 1 {
			e.m.Failf("%d calls", calls)
		}
		if _, err := e.c.GetOrCreate(1, func() (int, error) { return 0, nil }); err == nil {
			e.m.Failf("the error was not kept")
		}
	}
	for _, s := range []scene{
		{"two fail", keeps, fresh, []func(*estate){fail, fail}, kept},
		{"Set", keeps, nil, []func(*estate){fail, func(e *estate) { e.set(1, 5) }}, nil},
		{"Delete", keeps, nil, []func(*estate){fail, func(e *estate) { e.c.Delete(1) }}, nil},
		{"Close", keeps, nil, []func(*estate){fail, func(e *estate) { e.c.Close(context.Background()) }}, nil},
		{"an error, and a caller, with CloseBeforeCreate", alone, fresh, []func(*estate){fail, fail}, kept},
		{"Set, with CloseBeforeCreate", alone, nil, []func(*estate){fail, func(e *estate) { e.set(1, 5) }}, nil},
		{"Delete, with CloseBeforeCreate", alone, nil, []func(*estate){fail, func(e *estate) { e.c.Delete(1) }}, nil},
		{"Set, Delete and a caller", keeps, failed, []func(*estate){fail, func(e *estate) { e.set(1, 5) }, func(e *estate) { e.c.Delete(1) }}, nil},
		{"Sweep", keeps, func(e *estate) {
			fresh(e)
			e.c.GetOrCreate(2, func() (int, error) { return 0, errRefused }) // so that there is something to look for
		}, []func(*estate){fail, func(e *estate) { oncecache.Sweep(e.c) }}, kept},
		{"SetIfAbsent twice", keeps, failed, []func(*estate){
			func(e *estate) { e.made[5] = stored(e.c.SetIfAbsent(1, 5)) },
			func(e *estate) { e.made[6] = stored(e.c.SetIfAbsent(1, 6)) },
		}, func(e *estate) {
			if e.made[5] == e.made[6] {
				e.m.Failf("both or none have stored")
			}
		}},
	} {
		s.run(t)
	}
}

// What Set stores while Close empties the table is closed, though the Close
// function of what would have to make room for it exits.
func TestEvictionExitsBesideClose(t *testing.T) {
	for first, next := range map[int]int{1: 2, 2: 1} {
		t.Run(fmt.Sprintf("%d makes room", first), func(t *testing.T) {
			mc.Check(t, twice.of("Set, whose eviction calls runtime.Goexit ∥ Close"), func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(k, _ int) error {
					if k == first {
						runtime.Goexit()
					}
					return nil
				}})
				c.Set(first, 1)
				m.Go(func() { c.Set(next, 2) })
				m.Go(func() { _ = c.Close(context.Background()) })
			})
		})
	}
}
