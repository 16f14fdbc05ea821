//go:build !modelcheck

package oncecache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

func itself(_ context.Context, k int) (int, error) { return k, nil }

// leaseAll returns leases of n keys, which are looked for as if nobody had used
// them.
func leaseAll(t *testing.T, c *Cache[int, int], n int) []Lease[int, int] {
	t.Helper()
	leases := make([]Lease[int, int], n)
	for k := range leases {
		var err error
		if leases[k], err = c.Acquire(context.Background(), k, itself); err != nil {
			t.Fatal(err)
		}
	}
	o := c.shared().order
	o.mu.Lock()
	defer o.mu.Unlock()
	for n := o.oldest; n != nil; n = n.newer {
		n.entry.mark.bits.Store(0)
	}
	return leases
}

// search looks for a victim once, and returns it and how far the hand has moved.
func (o *order[K, V]) search() (v *node[K, V], moved int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	place := func() int {
		n := 0
		for s := o.oldest; o.hand != nil && s != o.hand; s = s.newer {
			n++
		}
		return n
	}
	before := place()
	v = o.victim(nil)
	return v, (place() - before + o.len) % o.len
}

// However many leases there are, a search passes a few of them, and the next one
// goes on where it was: so it finds the one that nobody holds.
func TestVictimPassesFewLeases(t *testing.T) {
	for name, close := range map[string]func(int, int) error{"nothing is closed": nil, "values are closed": func(int, int) error { return nil }} {
		t.Run(name, func(t *testing.T) {
			const n, free = 1000, 900
			c := MustNew(Config[int, int]{MaxEntries: 2 * n, Close: close})
			leases, s := leaseAll(t, c, n), c.shared().order
			for range 3 * n / manyLeased {
				if v, moved := s.search(); v != nil || moved != manyLeased {
					t.Fatalf("the search passes %d and finds %v, want %d and nothing", moved, v, manyLeased)
				}
			}
			leases[free].Release()
			for searches := 1; ; searches++ {
				v, moved := s.search()
				if moved > manyLeased || searches > n/manyLeased+1 {
					t.Fatalf("search %d passes %d, and finds nothing", searches, moved)
				}
				if v != nil {
					if v.entry.key != free {
						t.Errorf("%d goes, which is leased", v.entry.key)
					}
					break
				}
			}
		})
	}
}

// What is over the bound because leases hold it goes when they do not.
func TestBoundIsKeptAfterManyLeases(t *testing.T) {
	const n, most = 1000, 10
	c := MustNew(Config[int, int]{MaxEntries: most, Close: func(int, int) error { return nil }})
	leases := leaseAll(t, c, n)
	if got := c.Len(); got != n {
		t.Fatalf("%d values are left of %d that leases hold", got, n)
	}
	for k := range leases {
		leases[k].Release()
	}
	c.Set(n, n)
	if got := c.Len(); got != most {
		t.Errorf("%d values are left, want %d", got, most)
	}
	if err := c.Close(context.Background()); err != nil || c.Stats().Closed != n+1 {
		t.Errorf("%v, %d closed", err, c.Stats().Closed)
	}
}

// idlers returns a cache with n keys that were idle for an hour, and whose timer was stopped: so a
// look at what is due is the caller's. Two keys, 1 and 70, were used meanwhile.
func idlers(t *testing.T, n int) (c *Cache[int, int], lease *Lease[int, int]) {
	c = MustNew(Config[int, int]{IdleTimeout: time.Hour})
	for k := range n {
		c.Set(k, k)
	}
	o := c.shared().order
	o.mu.Lock()
	o.rest()
	o.mu.Unlock()
	c.Get(1)
	l, err := c.Acquire(context.Background(), 70, itself)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	return c, &l
}

// The timer holds the mutex for a few entries at a time.
func TestTimerLooksAtFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3*fewAtOnce + 8
		c, lease := idlers(t, n)
		r := c.shared()
		turns := 0
		for more := true; more; turns++ {
			var out []*node[int, int]
			out, more = r.order.few(r, r.order.timer)
			if len(out) > fewAtOnce {
				t.Errorf("%d at once", len(out))
			}
			for _, n := range out {
				if k := n.entry.key; k == 1 || k == 70 || !n.entry.mark.is(doomed) {
					t.Errorf("%d goes, doomed %t", k, n.entry.mark.is(doomed))
				}
			}
			r.evictAll(out)
		}
		synctest.Wait() // for the timer, which may have been faster
		if gone := c.Stats().Idle; turns > 4 || gone != n-2 || c.Len() != 2 {
			t.Errorf("%d go in %d turns, and %d are left", gone, turns, c.Len())
		}
		lease.Release()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The timer finds all that is due, also if an entry leaves or gives its place to another between
// two of its portions.
func TestTimerGoesOn(t *testing.T) {
	for name, between := range map[string]func(c *Cache[int, int], k int){
		"Delete": func(c *Cache[int, int], k int) { c.Delete(k) },
		"Refresh": func(c *Cache[int, int], k int) {
			c.Refresh(context.Background(), k, func(_ context.Context, _, old int, _ bool) (int, error) { return -old, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, lease := idlers(t, 2*fewAtOnce)
				r := c.shared()
				o := r.order
				// No timer looks beside this: it would find the lease of a Refresh.
				o.mu.Lock()
				o.timer = &alarm{stop: func() {}, bubble: atomics.Bubble()}
				o.mu.Unlock()
				for more := true; more; {
					var out []*node[int, int]
					out, more = o.few(r, r.order.timer)
					r.evictAll(out)
					if more {
						o.mu.Lock()
						var next *node[int, int]
						if len(o.heap) > 0 {
							next = o.heap[0].node
						}
						o.mu.Unlock()
						if next != nil && next.entry.key != 1 && next.entry.key != 70 {
							between(c, next.entry.key)
						}
					}
				}
				synctest.Wait()
				if n := c.Len(); n != 2 {
					t.Errorf("%d are left", n)
				}
				lease.Release()
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The timer of a bubble, were it the first, does not stand for one outside, where it is not stopped.
func TestTimerOfTheFirstBubble(t *testing.T) {
	c := MustNew(Config[int, int]{TTL: time.Hour})
	o := c.shared().order
	first := &alarm{bubble: 1, stop: func() { t.Error("it is stopped") }}
	o.timer = first
	c.Set(1, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer == first {
		t.Error("there is no other")
	}
}

// An entry that leaves the table before it has a place in the order gets none.
func TestPlaceThatIsLeftBeforeItIsGiven(t *testing.T) {
	c := MustNew(Config[int, int]{MaxEntries: 1})
	r := c.shared()
	e := &entry[int, int]{key: 1, value: 1}
	r.ready(e, limits{until: never})
	r.uncount(e)
	r.enlist(e)
	if n := Places(c); n != 0 {
		t.Errorf("the order has %d places", n)
	}
}

// Sweeps begin again when a cache that was empty has entries.
func TestSweepsAfterAnEmptyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := MustNew(Config[int, int]{IdleTimeout: time.Hour})
		for range 3 {
			c.Set(1, 1)
			time.Sleep(time.Minute)
			c.Delete(1)
			c.Set(1, 1)
			time.Sleep(91 * time.Minute)
			if n := c.Len(); n != 0 {
				t.Fatalf("%d are left", n)
			}
		}
		c.Close(t.Context())
	})
}

// A refreshed value is as idle as the old one was.
func TestRefreshedIsAsIdle(t *testing.T) {
	const never = -time.Minute
	for _, tt := range []struct{ get, refresh, earliest, latest time.Duration }{
		{never, 20 * time.Minute, 60 * time.Minute, 91 * time.Minute},
		{25 * time.Minute, 26 * time.Minute, 85 * time.Minute, 116 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := MustNew(Config[int, int]{IdleTimeout: time.Hour})
			time.Sleep(3 * time.Hour)
			c.Set(1, 1)
			if tt.get != never {
				time.Sleep(tt.get)
				c.Get(1)
			}
			time.Sleep(tt.refresh - max(tt.get, 0))
			if v, err := c.Refresh(t.Context(), 1, func(context.Context, int, int, bool) (int, error) { return 2, nil }); v != 2 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			time.Sleep(tt.earliest - time.Minute - tt.refresh)
			if c.Len() != 1 {
				t.Errorf("removed before %v", tt.earliest)
			}
			time.Sleep(tt.latest - tt.earliest + time.Minute)
			if c.Len() != 0 {
				t.Errorf("not removed after %v", tt.latest)
			}
			c.Close(t.Context())
		})
	}
}

// A caller that finds an entry that is doomed, and still in the table, takes it out, and
// creates anew. It is counted once, and closed once.
func TestDoomedEntriesAreTakenOut(t *testing.T) {
	for name, ask := range map[string]func(c *Cache[int, int]) (int, error){
		"Acquire": func(c *Cache[int, int]) (int, error) {
			l, err := c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) { return 7, nil })
			if err != nil {
				return 0, err
			}
			defer l.Release()
			return l.Value(), nil
		},
		"GetOrCreateMany": func(c *Cache[int, int]) (int, error) {
			got, err := c.GetOrCreateMany(context.Background(), []int{1}, func(context.Context, []int) (map[int]int, error) {
				return map[int]int{1: 7}, nil
			})
			return got[1], err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := MustNew(Config[int, int]{MaxEntries: 1, Close: func(int, int) error { return nil }})
				c.Set(1, 1)
				r := c.shared()
				o := r.order
				o.mu.Lock()
				s := o.victim(nil)
				o.remove(s)
				o.mu.Unlock()
				if v, err := ask(c); v != 7 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
				r.evictAll([]*node[int, int]{s})
				synctest.Wait()
				if got := c.Stats(); got.Evicted != 1 || got.Closed != 1 {
					t.Errorf("%+v", got)
				}
				if v, ok := c.Get(1); v != 7 || !ok {
					t.Errorf("the key has %d, %t", v, ok)
				}
				if err := c.Close(t.Context()); err != nil || c.Stats().Closed != 2 {
					t.Errorf("%v, %+v", err, c.Stats())
				}
			})
		})
	}
}

func kept(m *mark, isUse bool) bool {
	ok, _ := m.keep(isUse)
	return ok
}

// What comes while it is looked at whether leases hold an entry decides whether
// it goes: a lease always, and a use if the one who asks minds.
func TestMarkDoom(t *testing.T) {
	keep := func(m *mark) {
		if !kept(m, true) {
			panic("cannot be kept before it is doomed")
		}
	}
	keepUnused := func(m *mark) {
		if !kept(m, false) {
			panic("cannot be kept before it is doomed")
		}
	}
	touch, nothing := (*mark).Touch, func(*mark) {}
	sieve, idle := uint32(usedForSieve), uint32(usedForIdle)
	for name, tt := range map[string]struct {
		before, meanwhile func(*mark)
		leased            bool
		asks              uint32
		doomed            bool
		left              uint32 // of the mark
	}{
		"new":                      {nothing, nothing, false, sieve, true, probed | doomed},
		"used, and the sieve asks": {touch, nothing, false, sieve, false, usedForBoth},
		"used, and the timer asks": {touch, nothing, false, idle, false, usedForBoth},
		"used, and nobody asks":    {touch, nothing, false, 0, true, usedForBoth | probed | doomed},
		"used since the timer asked, not the hand": {func(m *mark) { m.touch(); m.asked(usedForSieve) }, nothing, false, sieve, true, usedForIdle | probed | doomed},
		"held until now, for the sieve":            {(*mark).held, nothing, false, sieve, true, usedForIdle | probed | doomed},
		"held until now, for the timer":            {(*mark).held, nothing, false, idle, false, usedForIdle},
		"leased":                                   {nothing, nothing, true, sieve, false, 0},
		"leased and used":                          {touch, nothing, true, 0, false, usedForBoth},
		"used meanwhile":                           {nothing, touch, false, sieve, false, usedForBoth},
		"used meanwhile, and nobody asks":          {nothing, touch, false, 0, true, usedForBoth | probed | doomed},
		"leased meanwhile":                         {nothing, keep, false, sieve, false, usedForBoth},
		"leased meanwhile, and nobody asks":        {nothing, keep, false, 0, false, usedForBoth},
		"leased again meanwhile":                   {keep, keep, false, 0, false, usedForBoth},
		"held without use meanwhile":               {nothing, keepUnused, false, sieve, false, 0},
		"the same, and it was used before":         {touch, keepUnused, false, 0, false, usedForBoth},
		"held without use before":                  {keepUnused, nothing, false, sieve, true, probed | doomed},
	} {
		var m mark
		tt.before(&m)
		got := m.doom(func() bool { tt.meanwhile(&m); return tt.leased }, tt.asks, 0)
		if got != tt.doomed || m.is(doomed) != tt.doomed {
			t.Errorf("%s: doom returns %t, and it is doomed %t", name, got, m.is(doomed))
		}
		if left := m.bits.Load(); left != tt.left {
			t.Errorf("%s: the mark is %05b, want %05b", name, left, tt.left)
		}
	}
}

// What is doomed stays so, and nobody can hold it.
func TestMarkIsDoomedForGood(t *testing.T) {
	for name, try := range map[string]func(*mark) bool{
		"keep":       func(m *mark) bool { return kept(m, true) },
		"keepUnused": func(m *mark) bool { return kept(m, false) },
		"touch":      func(m *mark) bool { m.touch(); return kept(m, true) },
		"held":       func(m *mark) bool { m.held(); return kept(m, true) },
		"asked":      func(m *mark) bool { m.touch(); m.asked(usedForSieve); m.asked(usedForIdle); return kept(m, true) },
	} {
		var m mark
		if !m.doom(func() bool { return false }, 0, idle) {
			t.Fatal("not doomed")
		}
		if try(&m) || !m.is(doomed) {
			t.Errorf("%s: kept, or not doomed any more", name)
		}
	}
}

// Each of those who ask learns of a use once, and takes nothing from the other.
func TestMarkAsked(t *testing.T) {
	m := new(mark)
	for range 3 {
		if m.asked(usedForSieve) || m.asked(usedForIdle) {
			t.Error("used by nobody")
		}
		m.touch()
		m.touch()
		if !m.asked(usedForIdle) || m.asked(usedForIdle) || !m.asked(usedForSieve) || m.asked(usedForSieve) {
			t.Error("a use is not told once to each")
		}
		m.held()
		if m.asked(usedForSieve) || !m.asked(usedForIdle) {
			t.Error("the end of a lease is no use for the sieve, and one for the timer")
		}
		if !kept(m, true) || !m.asked(usedForSieve) || !m.asked(usedForIdle) {
			t.Error("to come to hold it is a use")
		}
		if !kept(m, false) || m.asked(usedForSieve) || m.asked(usedForIdle) {
			t.Error("to hold it without use is a use")
		}
	}
}

// What has expired stays so: nobody gets it, holds it or renews it any more.
func TestMarkHasExpired(t *testing.T) {
	var m mark
	m.touch()
	m.bits.Or(due)
	m.bits.Or(expired)
	if live, renew := m.touch(); live || renew {
		t.Errorf("live %t, renew %t after it has expired", live, renew)
	}
	for _, isUse := range []bool{false, true} {
		if ok, renew := m.keep(isUse); ok || renew {
			t.Errorf("kept %t, renew %t after it has expired", ok, renew)
		}
	}
	if m.inUse() || !m.isExpired() || !m.isOver() {
		t.Errorf("the mark is %08b", m.bits.Load())
	}
}

// One use of what is due renews it. What is no use does not.
func TestMarkIsDueOnce(t *testing.T) {
	for name, use := range map[string]func(*mark) (live, renew bool){
		"touch": (*mark).touch,
		"keep":  func(m *mark) (live, renew bool) { return m.keep(true) },
	} {
		for _, before := range []uint32{0, usedForBoth} {
			var m mark
			m.bits.Store(before | due)
			m.held()
			if _, renew := m.keep(false); renew || m.inUse() {
				t.Errorf("%s: a lease that is no use renews: %t; the mark is %08b", name, renew, m.bits.Load())
			}
			for i := range 3 {
				if live, renew := use(&m); !live || renew != (i == 0) {
					t.Errorf("%s %d after %08b: live %t, renew %t", name, i, before, live, renew)
				}
			}
			if !m.inUse() {
				t.Errorf("%s: the mark is %08b, so that each use looks again", name, m.bits.Load())
			}
		}
	}
}
