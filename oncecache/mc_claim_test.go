//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// With CloseBeforeCreate nothing of a key is beside anything else of it, from the
// beginning of its create function to the end of its Close function.
func TestProtocolsOfTurns(t *testing.T) {
	type threads = []func(*alone)
	var none threads
	there := []func(*alone){(*alone).holds}
	sets := func(v int) func(*alone) {
		return func(a *alone) {
			a.there.Add(1)
			a.c.Set(1, v)
		}
	}
	for _, tt := range []struct {
		name    string
		first   []func(*alone)
		threads threads
		explore extent
	}{
		{"Delete ∥ Acquire", there, threads{(*alone).deletes, (*alone).holds}, everything},
		{"Delete ∥ Acquire ∥ Acquire", there, threads{(*alone).deletes, (*alone).holds, (*alone).holds}, twice},
		{"Delete ∥ Acquire ∥ Delete", there, threads{(*alone).deletes, (*alone).holds, (*alone).deletes}, twice},
		{"Discard ∥ Discard", there, threads{(*alone).discards, (*alone).discards}, everything},
		{"Set ∥ Set", there, threads{sets(2), sets(3)}, everything},
		{"Delete ∥ Set", there, threads{(*alone).deletes, sets(2)}, everything},
		{"Acquire ∥ Delete in flight ∥ Acquire", none, threads{(*alone).holds, (*alone).deletes, (*alone).holds}, twice},
		{"GetOrCreate ∥ Delete in flight, then Acquire", none, threads{(*alone).plain, func(a *alone) { a.deletes(); a.holds() }}, everything},
		{"GetOrCreate, which fails ∥ Set", none, threads{(*alone).fails, sets(2)}, everything},
		{"GetOrCreateMany ∥ Delete ∥ Acquire", none, threads{(*alone).many, (*alone).deletes, (*alone).holds}, twice},
		{"Delete ∥ GetOrCreateMany", there, threads{(*alone).deletes, (*alone).many}, everything},
		{"Close ∥ Delete, then Acquire", there, threads{(*alone).shuts, func(a *alone) { a.deletes(); a.holds() }}, everything},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of("CloseBeforeCreate: "+tt.name), func(m *mc.M) {
				a := &alone{m: m}
				a.c = oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error {
					a.there.Add(-1)
					a.closed.Add(1)
					return nil
				}})
				for _, f := range tt.first {
					f(a)
				}
				for _, f := range tt.threads {
					m.Go(func() { f(a) })
				}
				m.Final(func() {
					values := 0
					for range a.c.All() {
						values++
					}
					if creating, entries := oncecache.Creating(a.c); entries-creating != values {
						m.Failf("%d entries, %d of them without a value, %d values", entries, creating, values)
					}
					if _, ok := a.c.Get(1); ok {
						a.keepsItsTurn()
					}
					if err := a.c.Close(context.Background()); err != nil || a.there.Load() != 0 {
						m.Failf("closed with %v, %d are left", err, a.there.Load())
					}
					if n := oncecache.Claims(a.c); n != 0 {
						m.Failf("%d claims are left", n)
					}
				})
			})
		})
	}
}

// A creation that waits for its turn is told what ends it: neither does it take
// its own flight for one that it waits for, nor does it wait for what is newer.
func TestProtocolsOfTurnsThatEnd(t *testing.T) {
	for name, ends := range map[string]func(c *oncecache.Cache[int, int]){
		"Set":              func(c *oncecache.Cache[int, int]) { c.Set(1, 3) },
		"Delete, then Set": func(c *oncecache.Cache[int, int]) { c.Delete(1); c.Set(1, 3) },
		"Close":            func(c *oncecache.Cache[int, int]) { c.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("CloseBeforeCreate: Delete ∥ GetOrCreate ∥ "+name), func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
				c.Set(1, 1)
				m.Go(func() { c.Delete(1) })
				m.Go(func() {
					if _, err := c.GetOrCreate(1, func() (int, error) { return 2, nil }); err != nil && err != oncecache.ErrClosed {
						m.Failf("%v", err)
					}
				})
				m.Go(func() { ends(c) })
			})
		})
	}
}

// A creation that waits for its turn is woken by the last user of the value before, though another call may
// see first that the key is free, and take it.
func TestProtocolsOfTurnsThatAnotherTakes(t *testing.T) {
	mc.Check(t, extent(1).of("CloseBeforeCreate, a leased value was deleted: GetOrCreate ∥ Release ∥ SetIfAbsent"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		last, _ := c.Acquire(context.Background(), 1, makesTwo)
		c.Delete(1)
		m.Go(func() {
			if v, err := c.GetOrCreate(1, func() (int, error) { return 2, nil }); v == 1 || err != nil {
				m.Failf("%d, %v", v, err)
			}
		})
		m.Go(func() { last.Release() })
		m.Go(func() { c.SetIfAbsent(1, 3) })
	})
}

// A creation that waits for its turn looks for functions that begin or end at the same moment.
func TestProtocolsOfTurnsBesideFunctions(t *testing.T) {
	fresh := func() *oncecache.Cache[int, int] {
		return oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
	}
	waits := func(m *mc.M, c *oncecache.Cache[int, int]) {
		if _, err := c.GetOrCreate(1, func() (int, error) { return 3, nil }); err != nil {
			m.Failf("%v", err)
		}
	}
	t.Run("one begins", func(t *testing.T) {
		mc.Check(t, twice.of("CloseBeforeCreate: Refresh ∥ Delete, then GetOrCreate"), func(m *mc.M) {
			c := fresh()
			c.Set(1, 1)
			ctx, end := atomics.WithCancel(context.Background())
			m.Go(func() {
				defer end()
				c.Refresh(ctx, 1, anew(makesTwo))
			})
			m.Go(func() {
				c.Delete(1)
				waits(m, c)
			})
		})
	})
	t.Run("one ends", func(t *testing.T) {
		mc.Check(t, twice.of("CloseBeforeCreate: create, which waits for GetOrCreate to begin ∥ Delete ∥ GetOrCreate"), func(m *mc.M) {
			c := fresh()
			begun := atomics.MakeEvent()
			m.Go(func() {
				c.GetOrCreateContext(context.Background(), 1, func(context.Context, int) (int, error) { begun.Wait(); return 1, nil })
			})
			m.Go(func() { c.Delete(1) })
			m.Go(func() {
				begun.Fire()
				waits(m, c)
			})
		})
	})
}

// A function that asks for its own key is told so, whoever takes that from it at
// the same moment.
func TestProtocolsOfTurnsOfOneFunction(t *testing.T) {
	for name, asks := range map[string]func(ctx context.Context, c *oncecache.Cache[int, int]) error{
		"with its context": func(ctx context.Context, c *oncecache.Cache[int, int]) error {
			_, err := c.GetOrCreateContext(ctx, 1, makesOne)
			return err
		},
		"without": func(_ context.Context, c *oncecache.Cache[int, int]) error {
			_, err := c.GetOrCreate(1, func() (int, error) { return 1, nil })
			return err
		},
	} {
		for of, takes := range map[string]func(c *oncecache.Cache[int, int]){
			"Delete": func(c *oncecache.Cache[int, int]) { c.Delete(1) },
			"Clear":  func(c *oncecache.Cache[int, int]) { c.Clear() },
		} {
			t.Run(name+", "+of, func(t *testing.T) {
				mc.Check(t, twice.of("CloseBeforeCreate: create, which asks for its own key "+name+" ∥ "+of), func(m *mc.M) {
					c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
					m.Go(func() {
						c.GetOrCreateContext(context.Background(), 1, func(ctx context.Context, k int) (int, error) {
							if err := asks(ctx, c); !errors.As(err, new(*oncecache.CycleError)) {
								m.Failf("%v", err)
							}
							return 1, nil
						})
					})
					m.Go(func() { takes(c) })
				})
			})
		}
	}
}

// The same where Delete has taken the key, and is about to say whose function it has hidden.
func TestProtocolsOfTurnsOfOneFunctionThatIsBeingHidden(t *testing.T) {
	mc.Check(t, twice.of("CloseBeforeCreate: create, which Delete has taken its key from, and which asks for that ∥ the last step of Delete"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		taken := atomics.MakeEvent()
		var finish func() (int, bool)
		m.Go(func() {
			c.GetOrCreate(1, func() (int, error) {
				finish = oncecache.StartDelete(c, 1)
				taken.Fire()
				if _, err := c.GetOrCreate(1, func() (int, error) { return 2, nil }); !errors.As(err, new(*oncecache.CycleError)) {
					m.Failf("%v", err)
				}
				return 1, nil
			})
		})
		m.Go(func() {
			taken.Wait()
			finish()
		})
	})
}

// A Refresh ends another, whose value has gone and which asks for its own key: the function of
// that is told so, because it is noted before its entry leaves the table.
func TestProtocolsOfTurnsOfAnOvertakenRefresh(t *testing.T) {
	mc.Check(t, twice.of("CloseBeforeCreate: Refresh, which replaces its key's value, takes that away and asks for its own key ∥ Refresh"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(ctx context.Context, _, _ int, _ bool) (int, error) {
				oncecache.CompareAndDelete(c, 1, 1)
				c.SetIfAbsent(1, 5)
				oncecache.CompareAndDelete(c, 1, 5)
				c.GetOrCreateContext(ctx, 1, makesTwo)
				return 3, nil
			})
		})
		m.Go(func() { c.Refresh(context.Background(), 1, anew(makesOne)) })
		m.Final(func() {
			if err := c.Close(context.Background()); err != nil || oncecache.Claims(c) != 0 {
				m.Failf("closed with %v, %d claims are left", err, oncecache.Claims(c))
			}
		})
	})
}

// The function of a Refresh that asks for its own key is told so, though another, which Set has overtaken,
// runs as long, and Delete has not yet noted the one that asks.
func TestProtocolsOfTurnsBesideAnOvertakenFunction(t *testing.T) {
	mc.Check(t, twice.of("CloseBeforeCreate: Refresh, which sets its key ∥ Refresh, which asks for its key ∥ Delete"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		overtaken, deleted := atomics.MakeEvent(), atomics.MakeEvent()
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
				c.Set(1, 2)
				overtaken.Fire()
				deleted.Wait()
				return 3, nil
			})
		})
		m.Go(func() {
			overtaken.Wait()
			c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) {
				v, err := c.GetOrCreate(1, func() (int, error) { return 4, nil })
				if v != 2 && !errors.As(err, new(*oncecache.CycleError)) {
					m.Failf("%d, %v", v, err)
				}
				return 5, nil
			}))
		})
		m.Go(func() {
			overtaken.Wait()
			c.Delete(1)
			deleted.Fire()
		})
	})
}

// Of two calls of Refresh that begin at once, one joins the other, and leaves nothing of its own.
func TestProtocolsOfTurnsOfRefreshes(t *testing.T) {
	mc.Check(t, twice.of("CloseBeforeCreate: Refresh ∥ Refresh, then Delete"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		for range 2 {
			m.Go(func() { c.Refresh(context.Background(), 1, anew(makesTwo)) })
		}
		m.Final(func() {
			if c.Delete(1); oncecache.Claims(c) != 0 {
				m.Failf("%d claims are left of a key without a value", oncecache.Claims(c))
			}
		})
	})
}

// The very value comes while it expires, and while it is refreshed. Set ends the Refresh, so that it does not become
// the creation of the key; with CloseBeforeCreate, the key is not free before the function has returned.
func TestProtocolsOfTurnsOfTheVeryValue(t *testing.T) {
	for name, alone := range map[string]bool{"CloseBeforeCreate": true, "Close": false} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of(name+": Set of the very value, which is refreshed ∥ it expires"), func(m *mc.M) {
				config := endless
				config.CloseBeforeCreate, config.Close = alone, func(int, int) error { return nil }
				c := oncecache.MustNew(config)
				c.Set(1, 1)
				oncecache.StartRefresh(c, 1)
				start := oncecache.ExpiryOf(c, 1)
				m.Go(func() { c.Set(1, 1) })
				m.Go(func() {
					if finish := start(); finish != nil {
						finish()
					}
				})
				m.Final(func() {
					creating, entries := oncecache.Creating(c)
					if values := c.Len(); creating+values != entries || !alone && creating != 0 {
						m.Failf("%d entries, %d values, and %d creations after Set", entries, values, creating)
					}
					left := 0
					if alone {
						left = 1
					}
					if c.Delete(1); oncecache.Claims(c) != left {
						m.Failf("%d claims are left while the function runs, want %d", oncecache.Claims(c), left)
					}
				})
			})
		})
	}
}

// The very value that is set while the time of the old one ends lasts as any value that is set, also if a lease
// holds it.
func TestVeryValueOutlivesItsDeadline(t *testing.T) {
	for name, leased := range map[string]bool{"leased": true, "not leased": false} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{Timed: true, Operations: "Close: Set of the very value ∥ the time of it that is there ends"}
			mc.Check(t, cfg, func(m *mc.M) {
				lasts := time.Second
				c := oncecache.MustNew(oncecache.Config[int, int]{
					TTLFunc: func(int, int) time.Duration { return lasts },
					Close:   func(int, int) error { return nil },
				})
				c.Set(1, 1)
				if leased {
					c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) { return 0, errRefused })
				}
				lasts = time.Hour
				m.Go(func() { c.Set(1, 1) })
				m.Go(func() { m.Advance(2 * time.Second) })
				m.Final(func() {
					if v, ok := c.Get(1); v != 1 || !ok {
						m.Failf("%d, %v is left of a value that lasts for an hour", v, ok)
					}
				})
			})
		})
	}
}

// A value that leaves as it comes, because what it replaces was idle, is set again: then it stays.
func TestVeryValueOfARefreshThatLeaves(t *testing.T) {
	mc.Check(t, extent(3).of("Close: Refresh ∥ a sweep, then Set of the value that Refresh brings"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		m.Go(func() {
			c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return 2, nil })
		})
		m.Go(func() {
			oncecache.SweepIdle(c)
			c.Set(1, 2)
		})
		m.Final(func() {
			if v, ok := c.Get(1); v != 2 || !ok {
				m.Failf("%d, %v is left of what was set", v, ok)
			}
		})
	})
}

// A call that has waited for a creation which timed out does not hear of that from the next, which waits until
// the function has returned.
func TestProtocolsOfTurnsAfterATimeout(t *testing.T) {
	mc.Check(t, twice.of("CloseBeforeCreate: GetOrCreate ∥ its timeout ∥ GetOrCreate, then GetOrCreate"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		m.Go(func() { c.GetOrCreate(1, func() (int, error) { return 7, nil }) })
		m.Go(func() { oncecache.TimeOut(c, 1) })
		m.Go(func() {
			create := func() (int, error) { return 2, nil }
			if _, err := c.GetOrCreate(1, create); err != oncecache.ErrCreateTimeout {
				return
			}
			if v, err := c.GetOrCreate(1, create); err != nil {
				m.Failf("the next call gets %d, %v", v, err)
			}
		})
		m.Final(func() {
			if err := c.Close(context.Background()); err != nil {
				m.Failf("Close returns %v", err)
			}
		})
	})
}

// An error comes to stay while its key is deleted: then nothing is left of the key.
func TestProtocolsOfTurnsOfKeptErrors(t *testing.T) {
	mc.Check(t, twice.of("CloseBeforeCreate, ErrorTTL: GetOrCreate, which fails ∥ Delete"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, ErrorTTL: -1, Close: func(int, int) error { return nil }})
		m.Go(func() { c.GetOrCreate(1, failing) })
		m.Go(func() { c.Delete(1) })
		m.Final(func() {
			if c.Delete(1); oncecache.Claims(c) != 0 {
				m.Failf("%d claims are left of a key without a value", oncecache.Claims(c))
			}
		})
	})
}

// The function of a Refresh whose value has gone, and which asks for its own key
// with its context, gets one: the creation goes on beside it, as it can, and not
// the function's call, which could do nothing but fail.
func TestProtocolsOfARefreshThatAsks(t *testing.T) {
	mc.Check(t, twice.of("Refresh, which takes its key's value away and asks for its own key"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{})
		c.Set(1, 1)
		m.Go(func() {
			v, err := c.Refresh(context.Background(), 1, func(ctx context.Context, k, _ int, _ bool) (int, error) {
				oncecache.CompareAndDelete(c, 1, 1)
				ctx, cancel := atomics.WithCancelCause(ctx)
				defer cancel(nil)
				return c.GetOrCreateContext(ctx, 1, makesTwo)
			})
			if v != 2 || err != nil {
				m.Failf("%d, %v", v, err)
			}
		})
	})
}

func makesTwo(context.Context, int) (int, error) { return 2, nil }

// alone is a cache of values that must be alone.
type alone struct {
	m             *mc.M
	c             *oncecache.Cache[int, int]
	there, closed atomics.Int32
}

func (a *alone) make(context.Context, int) (int, error) {
	if a.there.Add(1) != 1 {
		a.m.Failf("two at a time")
	}
	return 1, nil
}

func (a *alone) holds() {
	l, err := a.c.Acquire(context.Background(), 1, a.make)
	if err != nil && err != oncecache.ErrClosed {
		a.m.Failf("%v", err)
	}
	l.Release()
}

func (a *alone) plain() {
	if _, err := a.c.GetOrCreate(1, func() (int, error) { return a.make(context.Background(), 1) }); err != nil {
		a.m.Failf("%v", err)
	}
}

func (a *alone) fails() {
	if _, err := a.c.GetOrCreate(1, failing); err != nil && err != errRefused {
		a.m.Failf("%v", err)
	}
}

func (a *alone) discards() {
	l, err := a.c.Acquire(context.Background(), 1, a.make)
	if err != nil {
		a.m.Failf("%v", err)
	}
	l.Discard()
}

func (a *alone) many() {
	_, err := a.c.GetOrCreateMany(context.Background(), []int{1}, func(ctx context.Context, keys []int) (map[int]int, error) {
		v, err := a.make(ctx, 1)
		return map[int]int{1: v}, err
	})
	if err != nil {
		a.m.Failf("%v", err)
	}
}

// keepsItsTurn looks at whether the value that is there counts in its key's claim, and nothing else does.
func (a *alone) keepsItsTurn() {
	l, _ := a.c.Acquire(context.Background(), 1, a.make)
	a.deletes()
	if oncecache.Claims(a.c) != 1 {
		a.m.Failf("the key of a value that is leased is free")
	}
	l.Release()
	if oncecache.Claims(a.c) != 0 {
		a.m.Failf("a claim is left of a key that is free")
	}
}

func (a *alone) deletes() { a.c.Delete(1) }
func (a *alone) shuts()   { a.c.Close(context.Background()) }

// Who holds a lease keeps the value from eviction, whichever of the two comes
// first, whether values are closed or not.
func TestProtocolsOfDoom(t *testing.T) {
	for _, closes := range []bool{false, true} {
		name := "nothing is closed"
		config := oncecache.Config[int, int]{MaxEntries: 1}
		if closes {
			name, config.Close = "values are closed", func(int, int) error { return nil }
		}
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "MaxEntries 1, " + name + ": Acquire, and a look ∥ Set of another key"}, func(m *mc.M) {
				c := oncecache.MustNew(config)
				c.Set(1, 1)
				m.Go(func() {
					l, err := c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) { return 2, nil })
					if err != nil {
						m.Failf("%v", err)
					}
					if v, ok := c.Get(1); !ok || v != l.Value() {
						m.Failf("%d, %t is there, and %d is leased", v, ok, l.Value())
					}
					l.Release()
				})
				m.Go(func() { c.Set(2, 2) })
			})
		})
	}
}

// A creation that fails has left its key before anybody knows: who gets the error
// finds the key free.
func TestProtocolsOfFreedKeys(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreate, which fails ∥ Wait, then SetIfAbsent"}, func(m *mc.M) {
		c := new(oncecache.Cache[int, int])
		m.Go(func() { c.GetOrCreate(1, failing) })
		m.Go(func() {
			if _, err := c.Wait(context.Background(), 1); err == errRefused && !stored(c.SetIfAbsent(1, 5)) {
				m.Failf("the key has failed, and is not free")
			}
		})
	})
}

// Of those who wait for each other in a circle one gives up, and all end.
func TestProtocolsOfCycles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		how   extent
		other [][]int // what the creations of keys 0, 1, … ask for
		from  []int   // the threads' keys
		want  int     // how many give up
	}{
		{"one of one", everything, [][]int{{0}}, []int{0}, 1},
		{"one goroutine", everything, [][]int{{1}, {0}}, []int{0}, 1},
		{"two goroutines", everything, [][]int{{1}, {0}}, []int{0, 1}, 1},
		{"two, one asks for a third key", everything, [][]int{{1}, {2}, {}}, []int{0, 1}, 0},
		{"two, and one behind them", twice, [][]int{{1}, {0}, {0}}, []int{0, 1, 2}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.how.of(fmt.Sprintf("from %v, which ask for %v", tt.from, tt.other)), func(m *mc.M) {
				var c oncecache.Cache[int, int]
				var gave mc.Tally
				var create func(context.Context, int) (int, error)
				create = func(ctx context.Context, k int) (int, error) {
					for _, o := range tt.other[k] {
						_, err := c.GetOrCreateContext(context.WithoutCancel(ctx), o, create)
						if cycle := new(oncecache.CycleError); errors.As(err, &cycle) {
							gave.Add(1)
						} else if err != nil {
							m.Failf("%v", err)
						}
					}
					return k, nil
				}
				for _, k := range tt.from {
					m.Go(func() {
						if v, err := c.GetOrCreateContext(context.Background(), k, create); v != k || err != nil {
							m.Failf("%d: %d, %v", k, v, err)
						}
					})
				}
				m.Final(func() {
					if n := gave.Value(); n != tt.want {
						m.Failf("%d give up, want %d", n, tt.want)
					}
				})
			})
		})
	}
}

// A function whose creation Set has ended may ask for whoever waited for that: this is no cycle.
func TestProtocolsOfAWaitThatSetEnds(t *testing.T) {
	mc.Check(t, twice.of("create of 0, which waits for 1 ∥ create of 1, which sets 1 and waits for 0"), func(m *mc.M) {
		var c oncecache.Cache[int, int]
		asks := func(k int, f func(ctx context.Context) error) {
			m.Go(func() {
				c.GetOrCreateContext(context.Background(), k, func(ctx context.Context, k int) (int, error) {
					if err := f(ctx); err != nil && err != oncecache.ErrNotFound {
						m.Failf("%d: %v", k, err)
					}
					return k, nil
				})
			})
		}
		asks(0, func(ctx context.Context) error {
			_, err := c.Wait(ctx, 1)
			return err
		})
		asks(1, func(ctx context.Context) error {
			c.Set(1, 5)
			_, err := c.Wait(context.WithoutCancel(ctx), 0)
			return err
		})
	})
}

// A function that has just been started on a goroutine of its own, and whose creation Set ends before its caller waits,
// may ask for that caller: this is no cycle.
func TestProtocolsOfAStartThatSetEnds(t *testing.T) {
	mc.Check(t, everything.of("create of 0, which asks for 1; create of 1, which sets 1 and waits for 0"), func(m *mc.M) {
		var c oncecache.Cache[int, int]
		m.Go(func() {
			c.GetOrCreateContext(context.Background(), 0, func(ctx context.Context, _ int) (int, error) {
				in, cancel := atomics.WithCancel(ctx)
				defer cancel()
				v, err := c.GetOrCreateContext(in, 1, func(ctx context.Context, _ int) (int, error) {
					c.Set(1, 5)
					_, err := c.Wait(context.WithoutCancel(ctx), 0)
					if err != nil && err != oncecache.ErrNotFound {
						m.Failf("1: %v", err)
					}
					return 1, nil
				})
				if v != 5 || err != nil {
					m.Failf("GetOrCreateContext = %d, %v; want 5", v, err)
				}
				return 0, nil
			})
		})
	})
}

// The function of one creation may ask for others on several goroutines at once.
// If one of these asks back, somebody gives up, and all end.
func TestProtocolsOfParallelCreations(t *testing.T) {
	for _, tt := range []struct {
		name  string
		other [3][]int // what the creations of keys 0, 1 and 2 ask for at once
		how   extent
		from  []int // the threads' keys
		most  int   // how many give up: one at least if any
	}{
		{"one asks for two", [3][]int{{1, 2}}, everything, []int{0}, 0},
		{"one asks for two, of which one asks back", [3][]int{{1, 2}, {0}}, everything, []int{0}, 1},
		{"one asks for another, which asks back twice", [3][]int{{1}, {0, 0}}, twice, []int{0, 1}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.how.of("GetOrCreateContext: "+tt.name), func(m *mc.M) {
				var c oncecache.Cache[int, int]
				var gave mc.Tally
				var create func(context.Context, int) (int, error)
				ask := func(ctx context.Context, k int) {
					v, err := c.GetOrCreateContext(context.WithoutCancel(ctx), k, create)
					if cycle := new(oncecache.CycleError); errors.As(err, &cycle) {
						gave.Add(1)
					} else if v != k || err != nil {
						m.Failf("%d: %d, %v", k, v, err)
					}
				}
				create = func(ctx context.Context, k int) (int, error) {
					switch other := tt.other[k]; len(other) {
					case 1:
						ask(ctx, other[0])
					case 2:
						ended := atomics.MakeEvent()
						atomics.Go(func() {
							ask(ctx, other[0])
							ended.Fire()
						})
						ask(ctx, other[1])
						ended.Wait()
					}
					return k, nil
				}
				for _, k := range tt.from {
					m.Go(func() { ask(context.Background(), k) })
				}
				m.Final(func() {
					if n := gave.Value(); n < min(tt.most, 1) || n > tt.most {
						m.Failf("%d give up, want %d at most", n, tt.most)
					}
				})
			})
		})
	}
}
