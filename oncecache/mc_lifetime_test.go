//go:build modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// endless values expire when the protocol says so, and have no timer.
var endless = oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return math.MaxInt64 }}

// A value expires while others use, replace and remove it: from then on no call gets it, what
// comes in its place stays, and each value is closed once.
func TestProtocolsOfExpiry(t *testing.T) {
	var start func() func()
	there := func(e *estate) {
		e.set(1, 1)
		start = oncecache.ExpiryOf(e.c, 1)
	}
	// gone says that the value must not be seen any more.
	gone := func(e *estate) {
		if v, ok := e.c.Get(1); ok && v == 1 {
			e.m.Failf("an expired value is returned")
		}
	}
	expire := func(e *estate) {
		if finish := start(); finish != nil { // otherwise another call has taken it out, or is about to
			gone(e)
			finish()
			gone(e)
		}
	}
	hold := func(e *estate) { e.hold(1, 3) }
	bounded := endless
	bounded.MaxEntries = 1
	for _, s := range []scene{
		{"it expires, Get", endless, there, []func(*estate){expire, func(e *estate) { e.c.Get(1) }}, gone},
		{"it expires, GetOrCreate", endless, there, []func(*estate){expire, func(e *estate) {
			v, err := e.c.GetOrCreate(1, func() (int, error) { return e.make(2)(nil, 1) })
			if err != nil || v == 2 != e.made[2] {
				e.m.Failf("%d, %v", v, err)
			}
		}}, gone},
		{"it expires, Acquire", endless, there, []func(*estate){expire, hold}, gone},
		{"it expires, Set", endless, there, []func(*estate){expire, func(e *estate) { e.set(1, 5) }}, func(e *estate) {
			if v, ok := e.c.Get(1); v != 5 || !ok {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"it expires, SetIfAbsent", endless, there, []func(*estate){expire, func(e *estate) { e.made[5] = stored(e.c.SetIfAbsent(1, 5)) }}, func(e *estate) {
			if v, ok := e.c.Get(1); ok != e.made[5] || ok && v != 5 {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"a creation, SetIfAbsent", endless, nil, []func(*estate){
			func(e *estate) { e.c.GetOrCreate(1, func() (int, error) { return e.make(2)(nil, 1) }) },
			func(e *estate) { e.made[5] = stored(e.c.SetIfAbsent(1, 5)) },
		}, func(e *estate) {
			if v, ok := e.c.Get(1); e.made[2] == e.made[5] || !ok || !e.made[v] {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"it expires, Delete", endless, there, []func(*estate){expire, func(e *estate) { e.c.Delete(1) }}, gone},
		{"it expires, CompareAndDelete", endless, there, []func(*estate){expire, func(e *estate) { oncecache.CompareAndDelete(e.c, 1, 1) }}, gone},
		{"it expires, Refresh", endless, there, []func(*estate){expire, func(e *estate) {
			v, err := e.c.Refresh(context.Background(), 1, anew(e.make(2)))
			if v != 2 || err != nil {
				e.m.Failf("%d, %v", v, err)
			}
		}}, gone},
		{"it expires, Refresh that finds it not modified", endless, there, []func(*estate){expire, func(e *estate) {
			_, err := e.c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
			e.wantError(err, oncecache.ErrNotModified)
		}}, gone},
		{"it expires, Refresh that fails", endless, there, []func(*estate){expire, func(e *estate) {
			_, err := e.c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 0, errRefused })
			if err != errRefused {
				e.m.Failf("%v", err)
			}
		}}, func(e *estate) {
			if n := e.c.Len(); n != 0 {
				e.m.Failf("%d are left", n)
			}
		}},
		{"it expires, Close", endless, there, []func(*estate){expire, func(e *estate) { e.c.Close(context.Background()) }}, nil},
	} {
		s.run(t)
	}
	for _, s := range []scene{
		{"it expires, Set of another key, which evicts it", bounded, there, []func(*estate){expire, func(e *estate) { e.set(2, 2) }}, func(e *estate) {
			if v, ok := e.c.Get(2); v != 2 || !ok || e.c.Len() != 1 {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"it expires, Acquire, Delete", endless, there, []func(*estate){expire, hold, func(e *estate) { e.c.Delete(1) }}, gone},
		{"it expires twice, Acquire", endless, there, []func(*estate){expire, expire, hold}, gone},
	} {
		s.explore(t, twice)
	}
}

// A value expires while it is refreshed: that becomes the key's creation, which others join, so that
// no function runs beside it, however it ends.
func TestProtocolsOfRefreshOfWhatExpires(t *testing.T) {
	for name, ends := range map[string]func(e *estate) (int, error){
		"which makes a value":      func(e *estate) (int, error) { return e.make(2)(nil, 1) },
		"which fails":              func(*estate) (int, error) { return 0, errRefused },
		"which is of no new value": func(*estate) (int, error) { return 0, oncecache.ErrNotModified },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("Refresh, "+name+" ∥ it expires ∥ GetOrCreate"), func(m *mc.M) {
				e := settle(m, endless)
				e.set(1, 1)
				start := oncecache.ExpiryOf(e.c, 1)
				var running atomics.Int32
				alone := func(f func() (int, error)) (int, error) {
					if running.Add(1) != 1 {
						m.Failf("two functions of one key run")
					}
					defer running.Add(-1)
					return f()
				}
				m.Go(func() {
					v, err := e.c.Refresh(context.Background(), 1, func(_ context.Context, _, _ int, exists bool) (int, error) {
						return alone(func() (int, error) {
							if !exists {
								return e.make(4)(nil, 1)
							}
							return ends(e)
						})
					})
					if e.wantError(err, errRefused); err == nil && !e.made[v] {
						m.Failf("%d, which nobody made", v)
					}
				})
				m.Go(func() {
					if finish := start(); finish != nil {
						finish()
					}
				})
				m.Go(func() {
					v, err := e.c.GetOrCreate(1, func() (int, error) {
						return alone(func() (int, error) { return e.make(3)(nil, 1) })
					})
					if e.wantError(err, errRefused); err == nil && !e.made[v] {
						m.Failf("%d, which nobody made", v)
					}
				})
				m.Final(e.over)
			})
		})
	}
}

// A value expires while others remove it: the listener is told that it has expired if and only if
// it is counted as expired, and no call has returned it as removed.
func TestProtocolsOfExpiredRemovals(t *testing.T) {
	expired := oncecache.ReasonExpired
	for _, tt := range []struct {
		name   string
		remove func(*bureau)
		others []oncecache.Reason
	}{
		{"Delete", func(b *bureau) { b.delete(1) }, nil},
		{"Set", func(b *bureau) { b.set(1, 3) }, nil},
		{"CompareAndDelete", func(b *bureau) {
			b.removes(1, oncecache.ReasonDeleted, oncecache.CompareAndDelete(b.c, 1, 1))
		}, nil},
		{"Clear", func(b *bureau) { b.removes(1, oncecache.ReasonDeleted, b.c.Clear() == 1) }, nil},
		{"heavy Set", func(b *bureau) { b.set(1, 7) }, []oncecache.Reason{oncecache.ReasonDiscarded}},
		{"Discard", func(b *bureau) { b.hold(1, 4, true) }, []oncecache.Reason{oncecache.ReasonDiscarded}},
		{"Refresh", func(b *bureau) { b.refresh(1, 4) }, []oncecache.Reason{oncecache.ReasonReplaced, oncecache.ReasonDiscarded}},
		{"Close", func(b *bureau) { _ = b.c.Close(context.Background()) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, twice.of(fmt.Sprint("it expires ∥ ", tt.name)), func(m *mc.M) {
				config := endless
				config.MaxWeight, config.Weight = 6, func(_, v int) int64 { return int64(v) }
				b := listen(m, config)
				b.set(1, 1)
				start := oncecache.ExpiryOf(b.c, 1)
				m.Go(func() {
					if finish := start(); finish != nil {
						finish()
					}
				})
				m.Go(func() { tt.remove(b) })
				m.Final(func() {
					b.over(append(tt.others, expired)...)
					told := uint64(0)
					for _, why := range b.reasons {
						if why == expired {
							told++
						}
					}
					if n := b.c.Stats().Expired; n != told {
						m.Failf("%d have expired, %d are told so", n, told)
					}
				})
			})
		})
	}
}

// A value that has expired before it is stored: all callers of its creation get it, and no
// others.
func TestProtocolsOfNoTimeToLive(t *testing.T) {
	none := oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return 0 }}
	create := func(v int) func(*estate) {
		return func(e *estate) {
			got, err := e.c.GetOrCreate(1, func() (int, error) { return e.make(v)(nil, 1) })
			if err != nil || got == 0 {
				e.m.Failf("%d, %v", got, err)
			}
		}
	}
	hold := func(v int) func(*estate) { return func(e *estate) { e.hold(1, v) } }
	absent := func(e *estate) {
		if v, ok := e.c.Get(1); ok {
			e.m.Failf("%d is there", v)
		}
		if n := e.c.Len(); n != 0 {
			e.m.Failf("%d are left", n)
		}
	}
	for _, s := range []scene{
		{"two create", none, nil, []func(*estate){create(1), create(2)}, absent},
		{"one creates and one acquires", none, nil, []func(*estate){create(1), hold(2)}, absent},
		{"two acquire", none, nil, []func(*estate){hold(1), hold(2)}, absent},
		{"a creation, and Set", none, nil, []func(*estate){create(1), func(e *estate) { e.set(1, 5) }}, absent},
		{"a creation, and Get", none, nil, []func(*estate){create(1), func(e *estate) {
			if v, ok := e.c.Get(1); ok {
				e.m.Failf("%d is there", v)
			}
		}}, absent},
	} {
		s.explore(t, twice)
	}
}

// Uses of a value that is due: Renew is called once, and never puts its value in the place of
// one that came meanwhile.
func TestProtocolsOfRenew(t *testing.T) {
	calls := 0
	config := endless
	due := func(e *estate) {
		calls = 0
		e.set(1, 1)
		oncecache.MakeDue(e.c, 1)
	}
	var of *estate
	config.Renew = func(_ context.Context, k, old int) (int, error) {
		calls++
		if old != 1 || of.shut[1].Load() != 0 {
			of.m.Failf("%d is to be renewed, which was closed %d times", old, of.shut[1].Load())
		}
		return of.make(2)(nil, k)
	}
	config.RenewAhead = time.Hour
	use := func(e *estate) {
		if v, ok := e.c.Get(1); !ok || v != 1 && v != 2 {
			e.m.Failf("%d, %v", v, ok)
		}
	}
	before := func(e *estate) { of = e; due(e) }
	renewed := func(e *estate) {
		if v, ok := e.c.Get(1); v != 2 || !ok || calls != 1 {
			e.m.Failf("%d, %v after %d calls", v, ok, calls)
		}
	}
	for _, s := range []scene{
		{"it is due, Get", config, before, []func(*estate){use}, renewed},
		{"it is due, Get, Get", config, before, []func(*estate){use, use}, renewed},
		{"a creation, and it is due, GetOrCreate", config, func(e *estate) { of, calls = e, 0 }, []func(*estate){
			func(e *estate) {
				e.c.GetOrCreate(1, func() (int, error) { return e.make(1)(nil, 1) })
				oncecache.MakeDue(e.c, 1)
			},
			func(e *estate) {
				if v, err := e.c.GetOrCreate(1, func() (int, error) { return e.make(1)(nil, 1) }); err != nil || v != 1 && v != 2 {
					e.m.Failf("%d, %v", v, err)
				}
			},
		}, nil},
		{"it is due, Get, Set", config, before, []func(*estate){
			func(e *estate) { e.c.Get(1) }, func(e *estate) { e.set(1, 5) },
		}, func(e *estate) {
			if v, ok := e.c.Get(1); !ok || v == 1 || v == 2 && calls == 0 {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"it is due, Get, Delete", config, before, []func(*estate){
			func(e *estate) { e.c.Get(1) }, func(e *estate) { e.c.Delete(1) },
		}, func(e *estate) {
			if v, ok := e.c.Get(1); ok {
				e.m.Failf("%d is left", v)
			}
		}},
		{"it is due, Get, it expires", config, before, []func(*estate){
			func(e *estate) { e.c.Get(1) }, func(e *estate) {
				if finish := oncecache.StartExpiry(e.c, 1); finish != nil {
					finish()
				}
			},
		}, nil},
		{"it is due, Acquire, Close", config, before, []func(*estate){
			func(e *estate) { e.hold(1, 3) }, func(e *estate) { e.c.Close(context.Background()) },
		}, nil},
	} {
		s.explore(t, twice)
	}
}

// A use is noted, though the value becomes due, or new, at the same moment: so it is not idle.
func TestProtocolsOfUsesNoted(t *testing.T) {
	for name, does := range map[string]func(*oncecache.Cache[int, int]){
		"it becomes due":        func(c *oncecache.Cache[int, int]) { oncecache.MakeDue(c, 1) },
		"Set of the very value": func(c *oncecache.Cache[int, int]) { c.Set(1, 1) },
		"Refresh, not modified": func(c *oncecache.Cache[int, int]) {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("Get ∥ "+name+", then a sweep"), func(m *mc.M) {
				config := endless
				config.RenewAhead = time.Hour
				config.Renew = func(context.Context, int, int) (int, error) { return 0, oncecache.ErrNotModified }
				config.Close = func(int, int) error { return nil }
				c := oncecache.MustNew(config)
				c.Set(1, 1) // which is no use
				m.Go(func() { c.Get(1) })
				m.Go(func() { does(c) })
				m.Final(func() {
					if oncecache.SweepIdle(c); c.Len() != 1 {
						m.Failf("the value was used, and is removed")
					}
				})
			})
		})
	}
}

// A use that begins a renewal does not undo the expiry of the value.
func TestUseThatRenewsLeavesWhatHasExpired(t *testing.T) {
	mc.Check(t, twice.of("it is due, Get ∥ it expires"), func(m *mc.M) {
		config := endless
		config.RenewAhead = time.Hour
		config.Renew = func(context.Context, int, int) (int, error) { return 0, errRefused }
		c := oncecache.MustNew(config)
		c.Set(1, 1)
		oncecache.MakeDue(c, 1)
		start := oncecache.ExpiryOf(c, 1)
		m.Go(func() { c.Get(1) })
		m.Go(func() { start()() })
		m.Final(func() {
			if s := c.Stats(); s.Expired != 1 || s.Evicted != 0 || c.Len() != 0 {
				m.Failf("%d expired, %d evicted, %d are left", s.Expired, s.Evicted, c.Len())
			}
		})
	})
}

// Of the uses of a value that is due one renews it, also if that has ended, and left the value as it was, when the
// other goes on.
func TestOneUseRenews(t *testing.T) {
	mc.Check(t, twice.of("it is due: Get, which finds nothing modified ∥ Get"), func(m *mc.M) {
		config := endless
		config.RenewAhead = time.Hour
		config.Renew = func(context.Context, int, int) (int, error) { return 0, oncecache.ErrNotModified }
		c := oncecache.MustNew(config)
		c.Set(1, 1)
		oncecache.MakeDue(c, 1)
		for range 2 {
			m.Go(func() { c.Get(1) })
		}
		m.Final(func() {
			if n := c.Stats().Renewals; n != 1 {
				m.Failf("it was renewed %d times", n)
			}
		})
	})
}
