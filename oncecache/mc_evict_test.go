//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A value whose creation others have awaited may be evicted as soon as it is there,
// but not from those that hold it, and it is closed once.
func TestProtocolsOfAwaitedEntries(t *testing.T) {
	for name, call := range map[string]func(e *estate){
		"Acquire": func(e *estate) {
			l, err := e.c.Acquire(context.Background(), 1, e.make(3))
			e.wantError(err)
			if _, ok := e.c.Get(1); !ok || e.shut[l.Value()].Load() != 0 {
				e.m.Failf("%d is in use; the key has a value: %v", l.Value(), ok)
			}
			l.Release()
		},
		"GetOrCreateMany": func(e *estate) {
			_, err := e.c.GetOrCreateMany(context.Background(), []int{1}, func(context.Context, []int) (map[int]int, error) {
				e.made[3] = true
				return map[int]int{1: 3}, nil
			})
			e.wantError(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("MaxEntries is 1: GetOrCreate ∥ "+name+" of the same key ∥ Set of another"), func(m *mc.M) {
				e := settle(m, oncecache.Config[int, int]{MaxEntries: 1})
				m.Go(func() { e.c.GetOrCreate(1, func() (int, error) { return e.make(1)(nil, 1) }) })
				m.Go(func() { call(e) })
				m.Go(func() { e.set(2, 2) })
				m.Final(e.over)
			})
		})
	}
	t.Run("Acquire where nothing is closed", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "MaxEntries is 1: Acquire ∥ Set of another key"}, func(m *mc.M) {
			c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
			m.Go(func() {
				l, err := c.Acquire(context.Background(), 1, makesOne)
				if _, ok := c.Get(1); !ok || err != nil {
					m.Failf("%d is in use; the key has a value: %v, %v", l.Value(), ok, err)
				}
				l.Release()
			})
			m.Go(func() { c.Set(2, 2) })
		})
	})
}

// Callers that want leases are counted before the value can be evicted: who creates a value
// holds that very value, and so does who has joined the creation. So each call of Acquire
// creates once at most.
func TestAcquireCreatesOnce(t *testing.T) {
	for _, bound := range []struct {
		name string
		oncecache.Config[int, int]
	}{
		{"MaxEntries is 1", oncecache.Config[int, int]{MaxEntries: 1}},
		{"MaxWeight is 1", oncecache.Config[int, int]{MaxWeight: 1, Weight: func(int, int) int64 { return 1 }}},
	} {
		for name, call := range map[string]func(*oncecache.Cache[int, int]){
			"Set":         func(c *oncecache.Cache[int, int]) { c.Set(2, 2) },
			"GetOrCreate": func(c *oncecache.Cache[int, int]) { c.GetOrCreate(2, func() (int, error) { return 2, nil }) },
		} {
			t.Run(name+", "+bound.name, func(t *testing.T) {
				mc.Check(t, mc.Config{Operations: bound.name + ": Acquire ∥ " + name + " of another key"}, func(m *mc.M) {
					c := oncecache.MustNew(bound.Config)
					m.Go(func() { acquiresOnce(m, c) })
					m.Go(func() { call(c) })
				})
			})
		}
		t.Run("Acquire, "+bound.name, func(t *testing.T) {
			mc.Check(t, twice.of(bound.name+": Acquire ∥ Acquire of the same key ∥ Set of another"), func(m *mc.M) {
				c := oncecache.MustNew(bound.Config)
				for range 2 {
					m.Go(func() { acquiresOnce(m, c) })
				}
				m.Go(func() { c.Set(2, 2) })
			})
		})
	}
}

// acquiresOnce acquires key 1, and fails m if the creation is repeated, or if the value is not
// there while it is leased.
func acquiresOnce(m *mc.M, c *oncecache.Cache[int, int]) {
	created := 0
	l, err := c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) {
		created++
		return 1, nil
	})
	if _, ok := c.Get(1); !ok || err != nil || created > 1 {
		m.Failf("created %d times, %v; the key has a value: %v", created, err, ok)
	}
	l.Release()
}

// A key that is being created, and then has a value, which Set replaces while it is being
// evicted, is never absent, and Wait finds a value.
func TestProtocolsOfWaitForWhatIsEvicted(t *testing.T) {
	mc.Check(t, twice.of("MaxEntries is 1: GetOrCreate ∥ Wait ∥ it is evicted, and Set meanwhile"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
		begun, waits, created := atomics.MakeEvent(), atomics.MakeEvent(), atomics.MakeEvent()
		absent, replaced := false, false
		m.Go(func() {
			c.GetOrCreate(1, func() (int, error) {
				begun.Fire()
				waits.Wait()
				return 1, nil
			})
			created.Fire()
		})
		m.Go(func() {
			begun.Wait()
			v, err := c.Wait(context.Background(), 1)
			if absent = err == oncecache.ErrNotFound; !absent && (err != nil || v != 1 && v != 5) {
				m.Failf("Wait returns %d, %v", v, err)
			}
		})
		m.Go(func() {
			begun.Wait()
			waits.Fire()
			created.Wait()
			finish := oncecache.StartEviction(c, 1)
			_, replaced = c.Set(1, 5)
			finish()
		})
		m.Final(func() {
			if absent && replaced {
				m.Failf("Wait has not found the key, which was there all the time")
			}
		})
	})
}

// An estate is a cache of several keys that owns its values, each of which is
// made once and must be closed once. In the end there is nothing left of it.
type estate struct {
	m     *mc.M
	c     *oncecache.Cache[int, int]
	keeps func(int, error) time.Duration

	ordered bool // there is an order
	bounded bool // and it has all that is in the table
	made    [20]bool
	shut    [20]atomics.Uint32
}

func settle(m *mc.M, config oncecache.Config[int, int]) *estate {
	e := &estate{m: m, keeps: config.ErrorTTLFunc}
	e.ordered = config.MaxEntries > 0 || config.MaxWeight > 0 || config.TTLFunc != nil || config.ErrorTTLFunc != nil
	e.bounded = config.MaxEntries > 0 && !config.CloseBeforeCreate
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
	present := 0
	for range e.c.All() {
		present++
	}
	if n := e.c.Len(); n != present {
		e.m.Failf("%d values are there, and Len is %d", present, n)
	}
	if n := e.places(); e.bounded && n != present {
		e.m.Failf("%d values are there, and %d places", present, n)
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
	refresh := func(v int, err error) func(*estate) {
		return func(e *estate) {
			_, got := e.c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) {
				e.made[v] = err == nil
				return v, err
			}))
			e.wantError(got, err)
		}
	}
	scene{"one comes, the other is refreshed", one, full, []func(*estate){set(2, 2), refresh(3, nil)}, atMost(2)}.explore(t, twice)
	scene{"one comes, the other is refreshed in vain", one, full, []func(*estate){set(2, 2), refresh(3, errRefused)}, atMost(2)}.explore(t, twice)
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

// One use starts the renewal of a value that is due, whatever else happens to its mark.
func TestProtocolsOfDueMarks(t *testing.T) {
	type mark = oncecache.Mark
	for name, tt := range map[string]struct {
		before, other func(*mark)
	}{
		"the end of a lease":               {nil, (*mark).Held},
		"an eviction":                      {nil, func(m *mark) { m.Doom(false) }},
		"an eviction that finds a lease":   {nil, func(m *mark) { m.Doom(true) }},
		"an eviction that finds it in use": {(*mark).Touch, func(m *mark) { m.Doom(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "it is due, a hit ∥ " + name + "; then a hit"}, func(m *mc.M) {
				var of mark
				if tt.before != nil {
					tt.before(&of)
				}
				of.MakeDue()
				m.Go(func() {
					if !of.Renews() {
						m.Failf("no renewal")
					}
				})
				m.Go(func() { tt.other(&of) })
				m.Final(func() {
					if of.Renews() {
						m.Failf("a second renewal")
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

// Nor is what GetOrCreateMany holds.
func TestProtocolsOfIdlenessOfMany(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1, 2), which finds 1, and whose function sweeps ∥ a sweep after that"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		swept := atomics.MakeEvent()
		m.Go(func() {
			c.GetOrCreateMany(context.Background(), []int{1, 2}, func(context.Context, []int) (map[int]int, error) {
				oncecache.SweepIdle(c) // so that nothing says that 1 was used but the lease
				swept.Fire()
				return map[int]int{2: 2}, nil
			})
		})
		m.Go(func() {
			swept.Wait()
			oncecache.SweepIdle(c)
		})
		m.Final(func() {
			if c.Len() != 2 {
				m.Failf("%d of two values that were in use are left", c.Len())
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

// Nor does the old value evict another if it comes to the order when a Refresh has taken its place.
func TestRefreshedBeforeItComesEvictsNobody(t *testing.T) {
	mc.Check(t, twice.of("two entries at most, one there; Set ∥ Refresh of the other"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
		c.Set(2, 2)
		m.Go(func() { c.Set(1, 1) })
		m.Go(func() {
			if _, err := c.Refresh(context.Background(), 1, anew(makesTwo)); err != nil {
				m.Failf("%v", err)
			}
		})
		m.Final(func() {
			if evicted := c.Stats().Evicted; c.Len() != 2 || evicted != 0 {
				m.Failf("%d entries, %d evicted", c.Len(), evicted)
			}
		})
	})
}

// A use counts at the moment when the timer makes the value due for renewal.
func TestUseOfWhatIsMadeDueCounts(t *testing.T) {
	mc.Check(t, twice.of("two entries at most, and there: Get of the older ∥ it is made due; then Set of a third"), func(m *mc.M) {
		config := endless
		config.MaxEntries, config.RenewAhead = 2, time.Hour
		config.Renew = func(context.Context, int, int) (int, error) { return 1, nil }
		c := oncecache.MustNew(config)
		c.Set(1, 1)
		c.Set(2, 2)
		m.Go(func() { c.Get(1) })
		m.Go(func() { oncecache.MakeDue(c, 1) })
		m.Final(func() {
			c.Set(3, 3)
			if _, ok := c.Get(1); !ok {
				m.Failf("the value that was used has gone")
			}
		})
	})
}

// A value that comes when the bound has been lowered below its weight makes no other call evict anything.
func TestTooHeavyByNowEvictsNobody(t *testing.T) {
	mc.Check(t, twice.of("a bound of 10, two values of 5: Set of another one, of 50, which was weighed before ∥ Set of one of them"), func(m *mc.M) {
		var c *oncecache.Cache[int, int]
		c = oncecache.MustNew(oncecache.Config[int, int]{
			MaxWeight: 100,
			Weight:    func(_, v int) int64 { return int64(v) },
			TTLFunc: func(_, v int) time.Duration {
				if v == 50 {
					c.SetMaxWeight(10)
				}
				return math.MaxInt64
			},
		})
		c.Set(1, 5)
		m.Go(func() { c.Set(2, 50) })
		m.Go(func() { c.Set(3, 5) })
		m.Final(func() {
			if s := c.Stats(); c.Len() != 2 || s.Evicted != 1 || s.Weight != 10 {
				m.Failf("%d values, %+v", c.Len(), s)
			}
		})
	})
}

// A Refresh that finds that its value has left the order, because it has become too heavy, does what is left of the
// removal, and does not call its function until another has.
func TestTooHeavyByNowIsRefreshed(t *testing.T) {
	mc.Check(t, twice.of("Set of a value of 50, after whose weighing the bound becomes 10 ∥ Refresh, not modified"), func(m *mc.M) {
		var c *oncecache.Cache[int, int]
		c = oncecache.MustNew(oncecache.Config[int, int]{
			MaxWeight: 100,
			Weight:    func(int, int) int64 { return 50 },
			TTLFunc: func(int, int) time.Duration {
				c.SetMaxWeight(10)
				return math.MaxInt64
			},
		})
		m.Go(func() { c.Set(1, 1) })
		m.Go(func() {
			calls := 0
			c.Refresh(context.Background(), 1, func(_ context.Context, _, _ int, exists bool) (int, error) {
				if calls++; calls > 2 {
					m.Failf("%d calls", calls)
				}
				if exists {
					return 0, oncecache.ErrNotModified
				}
				return 0, errRefused
			})
		})
	})
}

// A value that has become too heavy while it came, and is leaving, is leased, and set again: if Set finds it there, it
// is closed once, and after the lease.
func TestTooHeavyByNowIsSetAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(c *oncecache.Cache[int, *int])
		after  func(c *oncecache.Cache[int, *int])
	}{
		{"Set", func(*oncecache.Cache[int, *int]) {}, func(*oncecache.Cache[int, *int]) {}},
		{"SetMaxWeight(50), Set, Delete", func(c *oncecache.Cache[int, *int]) { c.SetMaxWeight(50) }, func(c *oncecache.Cache[int, *int]) { c.Delete(1) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, everything.of("Set of a value of 50 ∥ Acquire, SetMaxWeight(10), "+tt.name+", Release: the same value"), func(m *mc.M) {
				closed, found := 0, false
				c := oncecache.MustNew(oncecache.Config[int, *int]{
					MaxWeight: 100,
					Weight:    func(int, *int) int64 { return 50 },
					Close:     func(int, *int) error { closed++; return nil },
				})
				v := new(int)
				m.Go(func() { c.Set(1, v) })
				m.Go(func() {
					l, err := c.Acquire(context.Background(), 1, func(context.Context, int) (*int, error) { return nil, errRefused })
					if err != nil {
						return
					}
					c.SetMaxWeight(10)
					tt.before(c)
					_, found = c.Set(1, v)
					tt.after(c)
					if found && closed > 0 {
						m.Failf("closed while it is leased")
					}
					l.Release()
				})
				m.Final(func() {
					if c.Delete(1); found && closed != 1 {
						m.Failf("closed %d times", closed)
					}
				})
			})
		})
	}
}

// Nor does it do so where another call is faster.
func TestOvertakenRefreshEvictsNobody(t *testing.T) {
	for name, goes := range map[string]func(c *oncecache.Cache[int, int]){
		"Set":    func(c *oncecache.Cache[int, int]) { c.Set(1, 3) },
		"Delete": func(c *oncecache.Cache[int, int]) { c.Delete(1) },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("two entries, as many as MaxEntries; Refresh ∥ "+name+" of one"), func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
				c.Set(2, 2)
				c.Set(1, 1)
				m.Go(func() {
					c.Refresh(context.Background(), 1, func(_ context.Context, _, old int, _ bool) (int, error) {
						if old != 1 {
							return 0, oncecache.ErrNotModified // so that nothing comes beside what goes
						}
						return 2, nil
					})
				})
				m.Go(func() { goes(c) })
				m.Final(func() {
					if _, ok := c.Get(2); !ok || c.Stats().Evicted != 0 {
						m.Failf("the other entry is there: %t; %d evicted", ok, c.Stats().Evicted)
					}
				})
			})
		})
	}
}

// A value that a Refresh replaces before it has come to the order makes no other leave.
func TestReplacedBeforeItComesEvictsNobody(t *testing.T) {
	mc.Check(t, twice.of("one entry, MaxEntries is 2: GetOrCreate of another ∥ Refresh of that"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
		c.Set(2, 2)
		m.Go(func() { c.GetOrCreate(1, func() (int, error) { return 1, nil }) })
		m.Go(func() {
			c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 10, nil }))
		})
		m.Final(func() {
			if n := c.Len(); n != 2 {
				m.Failf("%d values are left: %v", n, maps.Collect(c.All()))
			}
		})
	})
}

// What a Refresh makes of a value that is being evicted leaves with that, or makes one other leave: not both.
func TestRefreshOfWhatLeavesEvictsOne(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: "MaxEntries is 2: Refresh, whose old value is about to be evicted when it ends ∥ Refresh, which fails"}
	mc.Check(t, cfg, func(m *mc.M) {
		var c *oncecache.Cache[int, int]
		var finish func()
		c = oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2, TTLFunc: func(_, v int) time.Duration {
			if v == 10 && finish == nil {
				finish = oncecache.StartEviction(c, 1)
				c.Set(3, 3)
			}
			return math.MaxInt64
		}})
		c.Set(1, 1)
		c.Set(2, 2)
		m.Go(func() {
			c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 10, nil }))
		})
		m.Go(func() {
			c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 0, errRefused }))
		})
		m.Final(func() {
			if finish != nil {
				finish()
				if n := c.Len(); n != 2 {
					m.Failf("%d values are left: %v", n, maps.Collect(c.All()))
				}
			}
		})
	})
}

// A Refresh that fails leaves nothing, also if its value expires at the same moment, and the Refresh
// would become the creation of the key.
func TestRefreshFailsWhileItsValueExpires(t *testing.T) {
	mc.Check(t, extent(3).of("Refresh, which fails ∥ its value expires"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
		c.Set(1, 1)
		begun := atomics.MakeEvent()
		var finish func()
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				finish = oncecache.StartExpiry(c, 1)
				begun.Fire()
				return 0, errRefused
			})
		})
		m.Go(func() {
			begun.Wait()
			finish()
		})
		m.Final(func() {
			if creating, entries := oncecache.Creating(c); creating != 0 || entries != 0 || c.Len() != 0 {
				m.Failf("%d entries, %d of them being created, Len %d", entries, creating, c.Len())
			}
		})
	})
}

// Who finds that a key has lost its value, which a Refresh has not modified, does not get it any more.
func TestNotModifiedBesideEviction(t *testing.T) {
	mc.Check(t, twice.of("MaxEntries is 1: Refresh, which finds nothing modified ∥ Set of another key, then GetOrCreate if it is evicted"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
		c.Set(1, 1)
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(_ context.Context, _, _ int, exists bool) (int, error) {
				if !exists {
					return 2, nil
				}
				return 0, oncecache.ErrNotModified
			})
		})
		m.Go(func() {
			c.Set(2, 2)
			if _, ok := c.Peek(1); ok {
				return
			}
			if v, err := c.GetOrCreate(1, func() (int, error) { return 3, nil }); err != nil || v == 1 {
				m.Failf("%d, %v after it was gone", v, err)
			}
		})
	})
}

// What a Refresh has made too late to take its key's place is closed after the Refresh that has
// taken the old value away has ended, whatever its Close function does.
func TestHeavyRefreshThoughCloseExits(t *testing.T) {
	mc.Check(t, twice.of("MaxWeight is 6: heavy Refresh(1, 7) ∥ Refresh(1, 4), whose Close function calls runtime.Goexit"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{
			MaxWeight: 6, Weight: func(_, v int) int64 { return int64(v) },
			Close: func(_, v int) error {
				if v == 4 {
					runtime.Goexit()
				}
				return nil
			},
		})
		c.Set(1, 3)
		for _, v := range []int{7, 4} {
			m.Go(func() {
				c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return v, nil }))
			})
		}
		m.Final(func() { _ = c.Close(context.Background()) })
	})
}

// A use of the new value is noted, though a Refresh gives it the uses of the old one at the same moment.
func TestRefreshedNotesUses(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Refresh ∥ Get, then a sweep"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
		c.Set(1, 1) // which is no use
		used := 0
		m.Go(func() { refresh(c) })
		m.Go(func() { used, _ = c.Get(1) })
		m.Final(func() {
			if oncecache.SweepIdle(c); used == 2 && c.Len() != 1 {
				m.Failf("the new value was used, and is removed")
			}
		})
	})
}

// No more makes room than has to, though several calls look for it, and bounds change.
func TestProtocolsOfRoom(t *testing.T) {
	type cache = *oncecache.Cache[int, int]
	weighed := oncecache.Config[int, int]{MaxWeight: 6, Weight: func(_, v int) int64 { return int64(v) }}
	one := func(c cache) { c.SetMaxEntries(1) }
	for _, tt := range []struct {
		name    string
		config  oncecache.Config[int, int]
		before  []int // keys that are their values
		threads []func(cache)
		left    int
	}{
		{"MaxEntries is 3: SetMaxEntries(1) ∥ SetMaxEntries(1)", oncecache.Config[int, int]{MaxEntries: 3}, []int{1, 2, 3}, []func(cache){one, one}, 1},
		{"MaxWeight is 6: SetMaxWeight(4) ∥ Set(1, 1)", weighed, []int{3}, []func(cache){func(c cache) { c.SetMaxWeight(4) }, func(c cache) { c.Set(1, 1) }}, 2},
		{"MaxWeight is 6: Refresh(3, 5) ∥ Set(1, 1)", weighed, []int{3, 2}, []func(cache){
			func(c cache) {
				c.Refresh(context.Background(), 3, anew(func(context.Context, int) (int, error) { return 5, nil }))
			},
			func(c cache) { c.Set(1, 1) },
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, twice.of(tt.name+", after "+fmt.Sprint("Set of ", tt.before)), func(m *mc.M) {
				c := oncecache.MustNew(tt.config)
				for _, k := range tt.before {
					c.Set(k, k)
				}
				for _, f := range tt.threads {
					m.Go(func() { f(c) })
				}
				m.Final(func() {
					if n := c.Len(); n != tt.left {
						m.Failf("%d values are left, of %d for which there was room", n, tt.left)
					}
				})
			})
		})
	}
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
		{"a creation with a lease, and Delete", brief, nil, []func(*estate){func(e *estate) { e.hold(1, 1) }, func(e *estate) { e.c.Delete(1) }}, nil},
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
	absent := func(e *estate) {
		v, ok := e.c.SetIfAbsent(1, 5)
		if e.made[5] = ok; !ok && v != 0 && v != 6 {
			e.m.Failf("SetIfAbsent returns %d, which came with an error", v)
		}
	}
	found := func(e *estate) {
		if v, ok := e.c.SetIfAbsent(1, 5); ok != (v == 5) || !ok && v != 6 {
			e.m.Failf("SetIfAbsent returns %d, %t", v, ok)
		} else {
			e.made[5] = ok
		}
	}
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
		{"SetIfAbsent", keeps, nil, []func(*estate){fail, absent}, nil},
		{"SetIfAbsent, Set", keeps, failed, []func(*estate){absent, func(e *estate) { e.set(1, 6) }}, nil},
		{"SetIfAbsent of an absent key, Set", keeps, nil, []func(*estate){found, func(e *estate) { e.set(1, 6) }}, nil},
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

// Values that weigh what they are come, replace each other, are refreshed, go, and are too
// heavy: at rest the weight is the sum of what is there, and within the bound; each value is
// told once.
func TestProtocolsOfWeights(t *testing.T) {
	type threads = []func(*bureau)
	set := func(k, v int) func(*bureau) { return func(b *bureau) { b.set(k, v) } }
	create := func(k, v int) func(*bureau) { return func(b *bureau) { b.create(k, v) } }
	refresh := func(k, v int) func(*bureau) { return func(b *bureau) { b.refresh(k, v) } }
	deletes := func(b *bureau) { b.delete(1) }
	for _, tt := range []struct {
		name    string
		explore extent
		threads threads
	}{
		{"Set(2, 5) ∥ Delete(1)", everything, threads{set(2, 5), deletes}},
		{"Set(2, 5) ∥ Set(1, 4)", twice, threads{set(2, 5), set(1, 4)}},
		{"Set(2, 5) ∥ Delete(1) ∥ Set(1, 4)", twice, threads{set(2, 5), deletes, set(1, 4)}},
		{"Refresh(1, 4) ∥ Set(2, 5)", twice, threads{refresh(1, 4), set(2, 5)}},
		{"heavy Set(1, 7) ∥ GetOrCreate(1, 2)", everything, threads{set(1, 7), create(1, 2)}},
		{"heavy Set(1, 7) ∥ Delete(1) ∥ GetOrCreate(1, 2)", twice, threads{set(1, 7), deletes, create(1, 2)}},
		{"heavy Set(2, 7) ∥ GetOrCreate(2, 2)", everything, threads{set(2, 7), create(2, 2)}},
		{"heavy GetOrCreate(2, 7) ∥ GetOrCreate(2, 5)", everything, threads{create(2, 7), create(2, 5)}},
		{"heavy GetOrCreate(2, 7) ∥ Set(2, 5)", everything, threads{create(2, 7), set(2, 5)}},
		{"heavy GetOrCreate(2, 7) ∥ Acquire(2, 5)", everything, threads{create(2, 7), func(b *bureau) { b.hold(2, 5, false) }}},
		{"heavy Refresh(1, 7) ∥ Set(1, 5)", twice, threads{refresh(1, 7), set(1, 5)}},
		{"heavy Refresh(1, 7) ∥ Set(2, 5)", twice, threads{refresh(1, 7), set(2, 5)}},
		{"heavy Refresh(1, 7) ∥ Refresh(1, 4)", twice, threads{refresh(1, 7), refresh(1, 4)}},
		{"heavy Set(1, 7) ∥ Close", twice, threads{set(1, 7), func(b *bureau) { _ = b.c.Close(context.Background()) }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of(fmt.Sprint("MaxWeight is 6: ", tt.name)), func(m *mc.M) {
				b := listen(m, oncecache.Config[int, int]{MaxWeight: 6, Weight: func(_, v int) int64 { return int64(v) }})
				b.set(1, 3)
				for _, f := range tt.threads {
					m.Go(func() { f(b) })
				}
				m.Final(func() {
					sum, present := int64(0), 0
					for _, v := range b.c.All() {
						sum += int64(v)
						present++
					}
					if n := b.c.Len(); n != present {
						m.Failf("%d values are there, and Len is %d", present, n)
					}
					if got := b.c.Stats().Weight; got != sum || sum > 6 {
						m.Failf("weight %d, the values weigh %d", got, sum)
					}
					b.over(oncecache.ReasonEvicted, oncecache.ReasonDiscarded, oncecache.ReasonReplaced)
				})
			})
		})
	}
}

// A Refresh that begins when another one has been found too heavy, and before the old value has left, is called off
// by Close.
func TestRefreshBesideAHeavyOne(t *testing.T) {
	mc.Check(t, mc.Config{
		Operations: "MaxWeight is 6: heavy Refresh(1, 7) ∥ Refresh(1), which ends with its context ∥ Close",
		Mode:       mc.Bounded, Preemptions: 1,
	}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: 6, Weight: func(_, v int) int64 { return int64(v) }})
		c.Set(1, 1)
		never := atomics.MakeEvent()
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 7, nil })
		})
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(ctx context.Context, _, _ int, _ bool) (int, error) {
				return 0, never.WaitContext(ctx)
			})
		})
		m.Go(func() { _ = c.Close(context.Background()) })
	})
}

// watched is the context of a caller. It fires waits when it is asked for Done a second time: the caller waits.
type watched struct {
	context.Context
	asked int
	waits atomics.Event
}

func (c *watched) Done() <-chan struct{} {
	if c.asked++; c.asked == 2 {
		c.waits.Fire()
	}
	return c.Context.Done()
}

// Two calls that change a count at once change it twice.
func TestProtocolsOfCounts(t *testing.T) {
	config := endless
	config.RecordStats = true
	create := func(k int, fails bool) func(*estate) {
		return func(e *estate) {
			e.c.GetOrCreate(k, func() (int, error) {
				if fails {
					return 0, errRefused
				}
				return e.make(k)(nil, k)
			})
		}
	}
	var timedOut [3]uint64
	slow := func(k int) func(*estate) {
		return func(e *estate) {
			timedOut[k] = 0
			if _, err := e.c.GetOrCreate(k, func() (int, error) {
				e.m.Advance(short)
				return e.make(k)(nil, k)
			}); err == oncecache.ErrCreateTimeout {
				timedOut[k]++
			}
		}
	}
	panics := func(k int) func(*estate) {
		return func(e *estate) {
			defer func() { recover() }()
			e.c.GetOrCreate(k, func() (int, error) { panic(k) })
		}
	}
	set := func(k int) func(*estate) { return func(e *estate) { e.set(k, k) } }
	few := oncecache.Config[int, int]{MaxEntries: 2}
	late := oncecache.Config[int, int]{CreateTimeout: short}
	refresh := func(k int) func(*estate) {
		return func(e *estate) {
			e.c.Refresh(context.Background(), k, func(_ context.Context, _, _ int, _ bool) (int, error) { return e.make(k+2)(nil, k) })
		}
	}
	modifiesNot := func(k int) func(*estate) {
		return func(e *estate) {
			e.c.Refresh(context.Background(), k, func(context.Context, int, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
		}
	}
	get := func(k int) func(*estate) { return func(e *estate) { e.c.Get(k) } }
	both := func(e *estate) { e.set(1, 1); e.set(2, 2) }
	var ends [3]func()
	expire := func(e *estate) {
		both(e)
		for k := 1; k <= 2; k++ {
			ends[k] = oncecache.StartExpiry(e.c, k)
		}
	}
	expires := func(k int) func(*estate) { return func(*estate) { ends[k]() } }
	counts := func(of string, count func(oncecache.Stats) uint64) func(*estate) {
		return func(e *estate) {
			if n := count(e.c.Stats()); n != 2 {
				e.m.Failf("%d %s, and not 2", n, of)
			}
		}
	}
	for _, s := range []scene{
		{"creations", config, nil, []func(*estate){create(1, false), create(2, false)}, counts("creations", func(s oncecache.Stats) uint64 { return s.Created })},
		{"failures", config, nil, []func(*estate){create(1, true), create(2, true)}, counts("failures", func(s oncecache.Stats) uint64 { return s.Failed })},
		{"values that stay", config, both, []func(*estate){modifiesNot(1), modifiesNot(2)}, counts("creations", func(s oncecache.Stats) uint64 { return s.Created })},
		{"hits", config, both, []func(*estate){get(1), get(2)}, counts("hits", func(s oncecache.Stats) uint64 { return s.Hits })},
		{"misses", config, nil, []func(*estate){get(1), get(2)}, counts("misses", func(s oncecache.Stats) uint64 { return s.Misses })},
		{"panics", config, nil, []func(*estate){panics(1), panics(2)}, counts("panics", func(s oncecache.Stats) uint64 { return s.Panicked })},
		{"expired", config, expire, []func(*estate){expires(1), expires(2)}, counts("expired", func(s oncecache.Stats) uint64 { return s.Expired })},
		{"timeouts", late, nil, []func(*estate){slow(1), slow(2)}, func(e *estate) {
			if n, want := e.c.Stats().TimedOut, timedOut[1]+timedOut[2]; n != want {
				e.m.Failf("%d timeouts, and %d callers got one", n, want)
			}
		}},
		{"times", config, nil, []func(*estate){slow(1), slow(2)}, func(e *estate) {
			if d := e.c.Stats().CreateTime; d < 2*short {
				e.m.Failf("creations took %v, and each %v at least", d, short)
			}
		}},
		{"refreshes", config, both, []func(*estate){refresh(1), refresh(2)}, func(e *estate) {
			if n := e.c.Len(); n != 2 {
				e.m.Failf("%d entries, and not 2", n)
			}
		}},
	} {
		s.run(t)
	}
	evictions := scene{"evictions", few, both, []func(*estate){set(3), set(4)}, counts("evictions", func(s oncecache.Stats) uint64 { return s.Evicted })}
	evictions.explore(t, twice)

	renews := config
	renews.RenewAhead = time.Hour
	var now *estate
	renews.Renew = func(_ context.Context, k, old int) (int, error) { return now.make(k+2)(nil, k) }
	scene{"renewals", renews, func(e *estate) {
		now = e
		both(e)
		oncecache.MakeDue(e.c, 1)
		oncecache.MakeDue(e.c, 2)
	}, []func(*estate){get(1), get(2)}, counts("renewals", func(s oncecache.Stats) uint64 { return s.Renewals })}.run(t)

	var (
		leave   func()
		began   atomics.Event
		callers [2]*watched
		left    [2]atomics.Event
	)
	waiting := func(e *estate, n int) {
		for f := range e.c.InFlight() {
			if f.Waiting != n {
				e.m.Failf("%d wait, and not %d", f.Waiting, n)
			}
		}
	}
	joins := func(i int) func(*estate) {
		return func(e *estate) {
			began.Wait()
			e.c.GetOrCreateContext(callers[i], 1, func(context.Context, int) (int, error) {
				e.m.Failf("a second creation")
				return 0, errRefused
			})
			left[i].Fire()
		}
	}
	scene{"callers that wait, and leave", config, func(*estate) {
		began = atomics.MakeEvent()
		var ctx context.Context
		ctx, leave = atomics.WithCancel(context.Background())
		for i := range callers {
			callers[i], left[i] = &watched{Context: ctx, waits: atomics.MakeEvent()}, atomics.MakeEvent()
		}
	}, []func(*estate){func(e *estate) {
		e.c.GetOrCreate(1, func() (int, error) {
			began.Fire()
			callers[0].waits.Wait()
			callers[1].waits.Wait()
			waiting(e, 2)
			leave()
			left[0].Wait()
			left[1].Wait()
			waiting(e, 0)
			return e.make(1)(nil, 1)
		})
	}, joins(0), joins(1)}, counts("callers that have joined", func(s oncecache.Stats) uint64 { return s.Joined })}.run(t)
}

// Callers of a Refresh whose old value Clear has taken look again when that is not modified. If the cache
// is closed by then, no function is called: who meets another that has looked before has not joined it.
func TestNobodyJoinsAfterClose(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "RecordStats: Refresh ∥ Refresh, which modifies nothing ∥ Clear, Close meanwhile"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{RecordStats: true})
		c.Set(1, 1)
		began, ends := atomics.MakeEvent(), atomics.MakeEvent()
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				began.Fire()
				ends.Wait()
				return 0, oncecache.ErrNotModified
			})
		})
		stays, _ := atomics.WithCancel(context.Background())
		other := &watched{Context: stays, waits: atomics.MakeEvent()}
		m.Go(func() {
			began.Wait()
			_, err := c.Refresh(other, 1, func(context.Context, int, int, bool) (int, error) {
				m.Failf("a second creation")
				return 0, nil
			})
			if err != oncecache.ErrClosed {
				m.Failf("Refresh returns %v", err)
			}
		})
		m.Go(func() {
			other.waits.Wait()
			c.Clear()
			closeAtOnce(m, c)
			ends.Fire()
		})
		m.Final(func() {
			if n := c.Stats().Joined; n != 0 {
				m.Failf("%d have joined", n)
			}
		})
	})
}
