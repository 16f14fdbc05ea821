//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// Many are created at once, of which others want some.
func TestProtocolsOfMany(t *testing.T) {
	many := func(add int, keys ...int) func(*estate) {
		return func(e *estate) {
			got, err := e.c.GetOrCreateMany(context.Background(), keys, func(_ context.Context, keys []int) (map[int]int, error) {
				made := map[int]int{}
				for _, k := range keys {
					e.made[k+add], made[k] = true, k+add
				}
				return made, nil
			})
			if e.wantError(err, oncecache.ErrClosed); err == nil && len(got) != len(keys) {
				e.m.Failf("%d values", len(got))
			}
		}
	}
	for _, s := range []scene{
		{"two share their keys", oncecache.Config[int, int]{}, nil, []func(*estate){many(0, 1, 2), many(10, 2, 1)}, nil},
		{"one wants one", oncecache.Config[int, int]{}, nil, []func(*estate){many(0, 1, 2), func(e *estate) { e.hold(2, 5) }}, nil},
		{"Delete", oncecache.Config[int, int]{}, nil, []func(*estate){many(0, 1, 2), func(e *estate) { e.c.Delete(2) }}, nil},
		{"Set", oncecache.Config[int, int]{}, nil, []func(*estate){many(0, 1, 2), func(e *estate) { e.set(2, 5) }}, nil},
	} {
		s.run(t)
	}
	scene{"Close", oncecache.Config[int, int]{}, nil, []func(*estate){many(0, 1, 2), func(e *estate) { e.c.Close(context.Background()) }}, nil}.explore(t, twice)
}

// What the function of many keys has made for others is closed when Close returns.
func TestManySpareAndClose(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1), whose function makes 9 ∥ Close"}, func(m *mc.M) {
		made, closed := false, false
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(k, _ int) error { closed = true; return nil }})
		m.Go(func() {
			_, _ = c.GetOrCreateMany(context.Background(), []int{1}, func(context.Context, []int) (map[int]int, error) {
				made = true
				return map[int]int{9: 9}, nil
			})
		})
		m.Go(func() {
			if _ = c.Close(context.Background()); made && !closed {
				m.Failf("closed, but for what was made for another key")
			}
		})
	})
}

// What GetOrCreateMany has found is not closed before it returns, though its function removes it.
func TestManyHoldsWhatItFinds(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreate(1) ∥ GetOrCreateMany(1, 2), whose function does Delete(1) if it makes 2 alone"}, func(m *mc.M) {
		var shut atomics.Bool
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(_, v int) error {
			if v == 1 {
				shut.Store(true)
			}
			return nil
		}})
		m.Go(func() { c.GetOrCreate(1, func() (int, error) { return 1, nil }) })
		m.Go(func() {
			closed := false
			found, err := c.GetOrCreateMany(context.Background(), []int{1, 2}, func(_ context.Context, keys []int) (map[int]int, error) {
				made := map[int]int{}
				for _, k := range keys {
					made[k] = k + 10
				}
				if len(keys) == 1 && keys[0] == 2 {
					c.Delete(1)
					closed = shut.Load()
				}
				return made, nil
			})
			if err != nil || found[1] == 1 && closed {
				m.Failf("%v, %v; 1 is closed: %t", found, err, closed)
			}
		})
	})
}

// The function of many keys is called off when nobody wants any of them, and not
// before; and a caller who comes to the creation of another is one who wants it.
func TestProtocolsOfManyCalledOff(t *testing.T) {
	background, keys := context.Background(), []int{1, 2}
	many := func(c *oncecache.Cache[int, int], create func(ctx context.Context, keys []int)) {
		_, _ = c.GetOrCreateMany(background, keys, func(ctx context.Context, keys []int) (map[int]int, error) {
			create(ctx, keys)
			return map[int]int{1: 1, 2: 2}, nil
		})
	}
	t.Run("Close", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1, 2), whose function waits for the end of its context ∥ Close"}, func(m *mc.M) {
			var c oncecache.Cache[int, int]
			m.Go(func() {
				many(&c, func(ctx context.Context, _ []int) {
					never := atomics.MakeEvent()
					_ = never.WaitContext(ctx)
				})
			})
			m.Go(func() { _ = c.Close(background) })
		})
	})
	t.Run("Set", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1, 2) ∥ Set(1)"}, func(m *mc.M) {
			var c oncecache.Cache[int, int]
			m.Go(func() {
				many(&c, func(ctx context.Context, keys []int) {
					if slices.Contains(keys, 2) && ctx.Err() != nil {
						m.Failf("creation of %v: %v", keys, ctx.Err())
					}
				})
			})
			m.Go(func() { c.Set(1, 3) })
		})
	})
	t.Run("Set and the caller leaves", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1, 2), whose function, if somebody waits for 2, makes its caller leave and does Set(1) ∥ GetOrCreateContext(2)"}, func(m *mc.M) {
			var c oncecache.Cache[int, int]
			ctx, leave := atomics.WithCancel(background)
			m.Go(func() {
				_, _ = c.GetOrCreateMany(ctx, keys, func(ctx context.Context, _ []int) (map[int]int, error) {
					for f := range c.InFlight() {
						if f.Key != 2 || f.Waiting == 0 {
							continue
						}
						leave()
						c.Set(1, 3)
						if ctx.Err() != nil {
							m.Failf("the function was called off, and somebody wants what it makes")
						}
					}
					return map[int]int{2: 2}, nil
				})
			})
			m.Go(func() {
				_, _ = c.GetOrCreateContext(background, 2, func(context.Context, int) (int, error) { return 20, nil })
			})
		})
	})
	t.Run("the creator leaves", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1, 2), whose function makes the other leave if that creates 1 ∥ GetOrCreateContext(1)"}, func(m *mc.M) {
			var c oncecache.Cache[int, int]
			ctx, leave := atomics.WithCancel(background)
			left, on := atomics.MakeEvent(), atomics.MakeEvent()
			m.Go(func() {
				many(&c, func(_ context.Context, keys []int) {
					if len(keys) == 1 {
						leave()
						left.Wait()
						on.Fire()
					}
				})
			})
			m.Go(func() {
				_, _ = c.GetOrCreateContext(ctx, 1, func(ctx context.Context, _ int) (int, error) {
					if on.WaitContext(ctx) != nil {
						m.Failf("creation of 1: %v", ctx.Err())
					}
					return 1, nil
				})
				left.Fire()
			})
		})
	})
	t.Run("the function panics", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "GetOrCreateMany(1, 2), whose function makes the other leave and panics ∥ GetOrCreateContext(2), whose function waits for the end of its context"}, func(m *mc.M) {
			var c oncecache.Cache[int, int]
			stays, _ := atomics.WithCancel(background)
			ctx, leave := atomics.WithCancel(background)
			m.Go(func() {
				defer func() {
					if p := recover(); p == nil {
						m.Failf("no panic")
					}
				}()
				_, _ = c.GetOrCreateMany(stays, keys, func(context.Context, []int) (map[int]int, error) {
					leave()
					panic("refused")
				})
			})
			m.Go(func() {
				_, _ = c.GetOrCreateContext(ctx, 2, func(ctx context.Context, _ int) (int, error) {
					never := atomics.MakeEvent()
					return 0, never.WaitContext(ctx)
				})
			})
		})
	})
}

// A key that is repeated has a value or an error in the end, and never both, though what
// the call finds for it changes from one look to the next.
func TestRepeatedKeysHaveOneOutcome(t *testing.T) {
	ctx := context.Background()
	fails := func(context.Context, int) (int, error) { return 0, errors.New("not today") }
	for name, tt := range map[string]struct {
		settings oncecache.Config[int, int]
		other    func(c *oncecache.Cache[int, int])
	}{
		"a creation that fails, Set": {oncecache.Config[int, int]{}, func(c *oncecache.Cache[int, int]) {
			c.GetOrCreateContext(ctx, 1, fails)
			c.Set(1, 1)
		}},
		"a creation that fails, another": {oncecache.Config[int, int]{}, func(c *oncecache.Cache[int, int]) {
			c.GetOrCreateContext(ctx, 1, fails)
			c.GetOrCreateContext(ctx, 1, func(context.Context, int) (int, error) { return 1, nil })
		}},
		"leases": {oncecache.Config[int, int]{Close: func(int, int) error { return nil }}, func(c *oncecache.Cache[int, int]) {
			c.GetOrCreateContext(ctx, 1, fails)
			c.Set(1, 1)
		}},
		"Set, Delete": {oncecache.Config[int, int]{}, func(c *oncecache.Cache[int, int]) {
			c.Set(1, 1)
			c.Delete(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("GetOrCreateMany(1, 1) ∥ "+name), func(m *mc.M) {
				c := oncecache.MustNew(tt.settings)
				c.Len()
				m.Go(func() {
					found, err := c.GetOrCreateMany(ctx, []int{1, 1}, func(_ context.Context, keys []int) (map[int]int, error) {
						if len(keys) != 1 {
							m.Failf("create is called for %v", keys)
						}
						return nil, errors.New("nor now")
					})
					v, ok := found[1]
					failed := oncecache.KeyErrors[int]{}
					errors.As(err, &failed)
					if ok == (failed[1] != nil) {
						m.Failf("value %d, %t; error %v", v, ok, err)
					}
				})
				m.Go(func() { tt.other(c) })
				m.Final(func() {
					if err := c.Close(ctx); err != nil { // also if a lease were left
						m.Failf("Close returns %v", err)
					}
				})
			})
		})
	}
}

// The panic of a batch's function that no caller gets is known to each Close when it returns, also if OnCreate exits.
func TestPanicOfABatchReachesClose(t *testing.T) {
	for name, onCreate := range map[string]func(int, time.Duration, error){
		"":                 nil,
		", OnCreate exits": func(int, time.Duration, error) { runtime.Goexit() },
	} {
		t.Run("Close"+name, func(t *testing.T) {
			mc.Check(t, twice.of("GetOrCreateMany, which panics ∥ its context ends, Close"+name), func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{OnCreate: onCreate})
				ctx, leave := atomics.WithCancel(context.Background())
				var thrown, got mc.Tally
				var first error
				m.Go(func() {
					defer func() {
						if recover() != nil {
							got.Add(1)
						}
					}()
					c.GetOrCreateMany(ctx, []int{1}, func(context.Context, []int) (map[int]int, error) {
						thrown.Add(1)
						panic(errRefused)
					})
				})
				m.Go(func() {
					leave()
					first = c.Close(context.Background())
				})
				m.Final(func() {
					second := c.Close(context.Background())
					if lost := thrown.Value() > got.Value(); errors.Is(first, errRefused) != errors.Is(second, errRefused) || lost != errors.Is(second, errRefused) {
						m.Failf("of %d panics %d were got, and the calls of Close return %v and %v", thrown.Value(), got.Value(), first, second)
					}
				})
			})
		})
	}
}

// With CloseBeforeCreate, a value that the function returned beside an error is closed before the next creation, also
// where errors are kept.
func TestValueBesideAnErrorIsClosedFirst(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"errors are not kept": 0, "errors are kept": -1} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, everything.of(name+": GetOrCreateMany, Delete, GetOrCreate"), func(m *mc.M) {
				var there mc.Tally
				c := oncecache.MustNew(oncecache.Config[int, int]{
					CloseBeforeCreate: true, ErrorTTL: ttl,
					Close: func(int, int) error { there.Add(-1); return nil },
				})
				m.Go(func() {
					c.GetOrCreateMany(context.Background(), []int{1}, func(context.Context, []int) (map[int]int, error) {
						there.Add(1)
						return map[int]int{1: 7}, oncecache.KeyErrors[int]{1: errRefused}
					})
					c.Delete(1)
					c.GetOrCreate(1, func() (int, error) {
						if there.Add(1); there.Value() != 1 {
							m.Failf("%d values at a time", there.Value())
						}
						return 8, nil
					})
				})
				m.Final(func() { c.Close(context.Background()) })
			})
		})
	}
}

// A key that is repeated has one outcome, also when the context has ended.
func TestRepeatedKeyOfAnEndedContext(t *testing.T) {
	mc.Check(t, everything.of("GetOrCreateMany(1, 1), its context has ended ∥ Set(1)"), func(m *mc.M) {
		var c oncecache.Cache[int, int]
		ctx, leave := atomics.WithCancel(context.Background())
		leave()
		m.Go(func() {
			found, err := c.GetOrCreateMany(ctx, []int{1, 1}, func(context.Context, []int) (map[int]int, error) { return nil, nil })
			var failed oncecache.KeyErrors[int]
			errors.As(err, &failed)
			if _, ok := found[1]; ok == (failed[1] != nil) {
				m.Failf("%v, %v", found, err)
			}
		})
		m.Go(func() { c.Set(1, 5) })
	})
}
