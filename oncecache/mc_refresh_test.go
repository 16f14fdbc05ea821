//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A new value takes the place of the old one, unless something comes first.
func TestProtocolsOfRefresh(t *testing.T) {
	there := func(e *estate) { e.set(1, 1) }
	refresh := func(v int) func(*estate) {
		return func(e *estate) {
			_, err := e.c.Refresh(context.Background(), 1, anew(e.make(v)))
			e.wantError(err, oncecache.ErrClosed)
		}
	}
	// alone is refresh where nothing but others like it may come between: whoever
	// has made a value gets that.
	alone := func(v int) func(*estate) {
		return func(e *estate) {
			if got, err := e.c.Refresh(context.Background(), 1, anew(e.make(v))); err != nil || e.made[v] && got != v {
				e.m.Failf("%d, %v of a Refresh that has made %d", got, err, v)
			}
			if got, _ := e.c.Get(1); got == 1 {
				e.m.Failf("the old value is there after a Refresh has returned another")
			}
		}
	}
	notModified := []func(*estate){
		func(e *estate) {
			v, err := e.c.Refresh(context.Background(), 1, func(_ context.Context, _, old int, exists bool) (int, error) {
				if exists {
					return 0, oncecache.ErrNotModified
				}
				return e.make(2)(nil, 1)
			})
			if err != nil || v != 1 && v != 2 {
				e.m.Failf("%d, %v", v, err)
			}
		}, func(e *estate) { e.c.Delete(1) },
	}
	for _, s := range []scene{
		{"two refresh", oncecache.Config[int, int]{}, there, []func(*estate){alone(2), alone(3)}, nil},
		{"Set", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.set(1, 5) }}, func(e *estate) {
			if v, ok := e.c.Get(1); !ok || v == 1 {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"Delete", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.c.Delete(1) }}, nil},
		{"Delete, where nothing is modified", oncecache.Config[int, int]{}, there, notModified, nil},
		{"Delete, where nothing is modified, in a cache with bounds", oncecache.Config[int, int]{MaxEntries: 2}, there, notModified, nil},
		{"Close, and it fails", oncecache.Config[int, int]{}, there, []func(*estate){
			func(e *estate) {
				_, err := e.c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 0, errRefused })
				e.wantError(err, errRefused, oncecache.ErrClosed)
			}, func(e *estate) { e.c.Close(context.Background()) },
		}, nil},
		{"a lease", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.hold(1, 3) }}, nil},
		{"the very value", oncecache.Config[int, int]{}, there, []func(*estate){
			func(e *estate) {
				e.c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 1, nil })
			}, func(e *estate) { e.c.Set(1, 1) }, func(e *estate) { e.hold(1, 3) },
		}, func(e *estate) {
			if v, ok := e.c.Get(1); v != 1 || !ok || e.shut[1].Load() != 0 {
				e.m.Failf("%d, %v is left, closed %d times", v, ok, e.shut[1].Load())
			}
		}},
	} {
		s.run(t)
	}
	scene{"two refresh, Delete", oncecache.Config[int, int]{}, there, []func(*estate){
		refresh(2), refresh(3), func(e *estate) { e.c.Delete(1) },
	}, nil}.explore(t, twice)
	scene{"Close", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.c.Close(context.Background()) }}, nil}.explore(t, twice)
}

// earlier is the value whose function began before something. Its methods are
// invisible, as those of [mc.Tally].
type earlier struct {
	value int
	ended bool
}

//go:norace
func (e *earlier) add(v int) {
	if !e.ended {
		e.value = v
	}
}

//go:norace
func (e *earlier) end() { e.ended = true }

//go:norace
func (e *earlier) has(v int) bool { return e.value == v }

// The value that a Refresh is to replace goes, and is asked for: no function runs
// beside that of the Refresh unless a call has removed the value, and what a
// Refresh has made that began before that does not come back.
func TestProtocolsOfRefreshOfWhatGoes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		goes    func(*oncecache.Cache[int, int])
		overlap bool
		explore extent
	}{
		{"CompareAndDelete", func(c *oncecache.Cache[int, int]) { oncecache.CompareAndDelete(c, 1, 1) }, true, twice},
		{"Set of another key, which evicts it", func(c *oncecache.Cache[int, int]) { c.Set(2, 9) }, false, twice},
		{"Delete", func(c *oncecache.Cache[int, int]) { c.Delete(1) }, true, everything},
		{"Clear", func(c *oncecache.Cache[int, int]) { c.Clear() }, true, twice},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of("Refresh ∥ "+tt.name+", then GetOrCreate"), func(m *mc.M) {
				var running, shut [10]atomics.Int32
				var began [10]bool
				var before earlier
				config := oncecache.Config[int, int]{Close: func(_, v int) error {
					if shut[v].Add(1) != 1 {
						m.Failf("%d is closed twice", v)
					}
					return nil
				}}
				if tt.name[:3] == "Set" {
					config.MaxEntries = 1
				}
				c := oncecache.MustNew(config)
				c.Set(1, 1)
				makes := func(v int) (int, error) {
					if running[0].Add(1) != 1 && !tt.overlap {
						m.Failf("two functions of one key run")
					}
					began[v] = true
					before.add(v)
					running[0].Add(-1)
					return v, nil
				}
				m.Go(func() {
					if _, err := c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return makes(2) }); err != nil {
						m.Failf("%v", err)
					}
				})
				m.Go(func() {
					if tt.overlap {
						before.end()
					}
					tt.goes(c)
					v, err := c.GetOrCreate(1, func() (int, error) { return makes(3) })
					if err != nil || v == 1 && tt.name[:3] != "Set" || tt.overlap && before.has(v) {
						m.Failf("%d, %v", v, err)
					}
				})
				m.Final(func() {
					if err := c.Close(context.Background()); err != nil {
						m.Failf("closed with %v", err)
					}
					for v := 2; v < 4; v++ {
						if n := shut[v].Load(); began[v] != (n == 1) {
							m.Failf("%d was made: %t, and closed %d times", v, began[v], n)
						}
					}
				})
			})
		})
	}
}

// A Refresh that fails ends no other: the next one of the key is shared like the first.
func TestProtocolsOfRefreshesThatFail(t *testing.T) {
	mc.Check(t, extent(3).of("Refresh, which fails, Refresh ∥ Refresh"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{})
		c.Set(1, 1)
		var running atomics.Int32
		refresh := func(v int, fails error) {
			got, err := c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				if running.Add(1) != 1 {
					m.Failf("two functions of one key run")
				}
				defer running.Add(-1)
				return v, fails
			})
			if err != nil && err != errRefused || err == nil && got != 2 && got != 3 {
				m.Failf("%d, %v", got, err)
			}
		}
		m.Go(func() { refresh(0, errRefused); refresh(2, nil) })
		m.Go(func() { refresh(3, nil) })
	})
}

// A renewal panics while its value expires: no caller gets that, so Close returns it.
func TestPanicOfARenewalWhoseValueExpires(t *testing.T) {
	mc.Check(t, twice.of("it is due, Get, and Renew panics ∥ it expires"), func(m *mc.M) {
		called := false
		config := endless
		config.RenewAhead = time.Hour
		config.Renew = func(context.Context, int, int) (int, error) { called = true; panic("disk full") }
		c := oncecache.MustNew(config)
		c.Set(1, 1)
		oncecache.MakeDue(c, 1)
		start := oncecache.ExpiryOf(c, 1)
		m.Go(func() { c.Get(1) })
		m.Go(func() {
			if finish := start(); finish != nil {
				finish()
			}
		})
		m.Final(func() {
			if err := c.Close(context.Background()); called && err == nil {
				m.Failf("the panic is lost")
			}
		})
	})
}

// OnCreate is told of functions that were called: of none if a Refresh finds the old value gone before it calls its own.
func TestRefreshOfWhatGoesIsNotRecorded(t *testing.T) {
	mc.Check(t, twice.of("Refresh ∥ Delete, with OnCreate"), func(m *mc.M) {
		called, told := 0, 0
		config := oncecache.Config[int, int]{Close: func(int, int) error { return nil }}
		config.OnCreate = func(int, time.Duration, error) { told++ }
		c := oncecache.MustNew(config)
		c.Set(1, 1)
		m.Go(func() {
			v, err := c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { called++; return 2, nil }))
			if v != 2 || err != nil {
				m.Failf("%d, %v", v, err)
			}
		})
		m.Go(func() { c.Delete(1) })
		m.Final(func() {
			if told != called {
				m.Failf("OnCreate is told of %d of %d functions", told, called)
			}
		})
	})
}

// What a renewal makes after its time is nobody's, whoever makes another value
// meanwhile.
func TestRefreshTooLate(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Refresh, which times out; its function returns after all ∥ Refresh"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CreateTimeout: 1})
		c.Set(1, 1)
		late := atomics.MakeEvent()
		ctx, _ := atomics.WithCancel(context.Background())
		m.Go(func() {
			_, err := c.Refresh(ctx, 1, func(ctx context.Context, _, _ int, _ bool) (int, error) {
				never := atomics.MakeEvent()
				_ = never.WaitContext(ctx)
				late.Fire()
				return 2, nil
			})
			if err != oncecache.ErrCreateTimeout {
				m.Failf("%v", err)
			}
		})
		m.Go(func() {
			late.Wait()
			if v, err := c.Refresh(ctx, 1, func(context.Context, int, int, bool) (int, error) { return 3, nil }); err == nil && v != 3 {
				m.Failf("value %d", v)
			}
		})
		m.Final(func() {
			if v, ok := c.Get(1); !ok || v == 2 {
				m.Failf("%d, %v is left", v, ok)
			}
			if err := c.Close(context.Background()); err != nil {
				m.Failf("closed with %v", err)
			}
		})
	})
}

// A Refresh that has timed out takes no other off the value, however late it is: Set ends the other.
func TestLateTimeoutEndsNoOther(t *testing.T) {
	mc.Check(t, twice.of("timeout of a Refresh ∥ Refresh, whose function sets the key"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{})
		c.Set(1, 1)
		m.Go(oncecache.StartRefresh(c, 1))
		m.Go(func() {
			v, err := c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				c.Set(1, 5)
				return 3, nil
			})
			if err == nil && v != 5 || err != nil && err != oncecache.ErrCreateTimeout {
				m.Failf("%d, %v of a Refresh that Set has ended", v, err)
			}
		})
	})
}

// Info knows of a value while a Refresh of it fails.
func TestInfoBesideARefreshThatFails(t *testing.T) {
	mc.Check(t, twice.of("Info ∥ Refresh, which fails"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{})
		c.Set(1, 1)
		m.Go(func() {
			if i, ok := c.Info(1); !ok || i != (oncecache.Info{}) {
				m.Failf("%+v, %t", i, ok)
			}
		})
		m.Go(func() {
			if _, err := c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 0, errRefused })); err != errRefused {
				m.Failf("%v", err)
			}
		})
	})
}

// Info knows of a value, and when it came, while that is set again.
func TestInfoBesideTheVeryValue(t *testing.T) {
	mc.Check(t, twice.of("Close: Info ∥ Set of the very value"), func(m *mc.M) {
		config := endless
		config.Close = func(int, int) error { return nil }
		c := oncecache.MustNew(config)
		c.Set(1, 1)
		m.Go(func() {
			if i, ok := c.Info(1); !ok || i.Created.IsZero() {
				m.Failf("%+v, %t", i, ok)
			}
		})
		m.Go(func() { c.Set(1, 1) })
	})
}

// Who puts another value in the place of a key's, and refreshes that, gets what a function makes
// which began after that: a Refresh of the value before, which is late, ends no Refresh of this
// one, and the new value stays.
func TestLateRefreshEndsNoOther(t *testing.T) {
	for name, closes := range map[string]func(int, int) error{"nothing is closed": nil, "values are closed": func(int, int) error { return nil }} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of(name+": Refresh ∥ CompareAndDelete, SetIfAbsent, Refresh"), func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: closes})
				c.Set(1, 1)
				m.Go(func() {
					if _, err := c.Refresh(context.Background(), 1, anew(makesTwo)); err != nil {
						m.Failf("%v", err)
					}
				})
				m.Go(func() {
					if !oncecache.CompareAndDelete(c, 1, 1) || !stored(c.SetIfAbsent(1, 3)) {
						return // the other one has been faster
					}
					v, err := c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 4, nil }))
					if err != nil || v == 3 {
						m.Failf("%d, %v of a Refresh of 3, which nobody has ended", v, err)
					}
				})
				m.Final(func() {
					if v, ok := c.Get(1); !ok || v == 3 {
						m.Failf("%d, %t is left, though it was refreshed", v, ok)
					}
				})
			})
		})
	}
}

// A value that comes again ends the Refresh that it finds, and none that begins after that has failed.
func TestTheVeryValueEndsNoLaterRefresh(t *testing.T) {
	mc.Check(t, twice.of("Close: Set of the very value ∥ Refresh, which fails, then Refresh, which waits for Set"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		set := atomics.MakeEvent()
		m.Go(func() {
			c.Set(1, 1)
			set.Fire()
		})
		m.Go(func() {
			c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 0, errRefused }))
			c.Refresh(context.Background(), 1, func(ctx context.Context, _, _ int, _ bool) (int, error) {
				set.Wait()
				listed := false
				for range c.InFlight() {
					listed = true
				}
				if !listed && ctx.Err() == nil {
					m.Failf("a Refresh goes on, and the value does not know of it")
				}
				return 2, nil
			})
		})
	})
}

// A Refresh that has met one that a value ended takes no later one off the value: of those, one function runs at a time.
func TestRefreshEndsNoLaterOne(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: "Close: Refresh, whose function sets the very value, then Refresh ∥ Refresh"}
	mc.Check(t, cfg, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		var running atomics.Int32
		alone := func(context.Context, int, int, bool) (int, error) {
			if running.Add(1) != 1 {
				m.Failf("two functions run")
			}
			running.Add(-1)
			return 0, oncecache.ErrNotModified
		}
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				c.Set(1, 1)
				return 0, errRefused
			})
			c.Refresh(context.Background(), 1, alone)
		})
		m.Go(func() { c.Refresh(context.Background(), 1, alone) })
	})
}

// Who has got the value with which Set ended a Refresh, and refreshes again, joins nothing that has ended.
func TestRefreshJoinsNothingThatAValueEnded(t *testing.T) {
	mc.Check(t, twice.of("Close: Refresh, whose function sets the very value ∥ Refresh, and another if it has joined that"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				c.Set(1, 1)
				return 0, errRefused
			})
		})
		m.Go(func() {
			called := false
			create := func(context.Context, int, int, bool) (int, error) {
				called = true
				return 0, oncecache.ErrNotModified
			}
			if c.Refresh(context.Background(), 1, create); called {
				return
			}
			if c.Refresh(context.Background(), 1, create); !called {
				m.Failf("no function has run for the second Refresh")
			}
		})
	})
}

// Who has seen what a Refresh has made, and refreshes, gets what a function makes that began
// after that, whether the value is another one or the function has found nothing modified.
func TestRefreshJoinsNothingThatHasEnded(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Refresh ∥ Get, Refresh if there is the new value"}, func(m *mc.M) {
		var began atomics.Int32
		c := oncecache.MustNew(oncecache.Config[int, int]{})
		c.Set(1, 0)
		create := func(context.Context, int, int, bool) (int, error) { return int(began.Add(1)), nil }
		m.Go(func() {
			if v, err := c.Refresh(context.Background(), 1, create); err != nil || v == 0 {
				m.Failf("%d, %v", v, err)
			}
		})
		m.Go(func() {
			seen, _ := c.Get(1)
			if v, err := c.Refresh(context.Background(), 1, create); err != nil || v <= seen {
				m.Failf("%d, %v after %d was there", v, err, seen)
			}
		})
		m.Final(func() {
			if v, ok := c.Get(1); !ok || v != int(began.Load()) {
				m.Failf("%d, %t is left of %d", v, ok, began.Load())
			}
		})
	})
}
