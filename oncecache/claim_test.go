//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// port is what one value only can have at a time. To give it back takes a minute.
type port struct {
	*oncecache.Cache[string, int]
	taken atomic.Int32
}

func newPort(cfg config) *port {
	p := new(port)
	cfg.Close = func(k string, _ int) error {
		if k == "k" {
			time.Sleep(time.Minute)
			p.taken.Add(-1)
		}
		return nil
	}
	p.Cache = oncecache.MustNew(cfg)
	return p
}

// taking returns a function that takes the port and makes v.
func (p *port) taking(t *testing.T, v int) func(context.Context, string) (int, error) {
	return func(context.Context, string) (int, error) {
		if n := p.taken.Add(1); n != 1 {
			t.Errorf("%d have the port", n)
		}
		return v, nil
	}
}

// take makes the first value, of which a lease may be held.
func (p *port) take(t *testing.T) oncecache.Lease[string, int] {
	t.Helper()
	l, err := p.Acquire(t.Context(), "k", p.taking(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // until it has taken its place
	return l
}

// shut closes the cache, and checks that nothing is left of any key.
func (p *port) shut(t *testing.T) {
	t.Helper()
	if err := p.Close(t.Context()); err != nil || p.taken.Load() != 0 || oncecache.Pending(p.Cache) != 0 {
		t.Errorf("closed with %v, %d have the port, %d are pending", err, p.taken.Load(), oncecache.Pending(p.Cache))
	}
	if n := oncecache.Claims(p.Cache); n != 0 {
		t.Errorf("%d keys are still claimed", n)
	}
}

// With CloseBeforeCreate the next creation of a key begins when the value before
// it is closed, whatever has removed that.
func TestCloseBeforeCreate(t *testing.T) {
	for name, tt := range map[string]struct {
		config
		remove func(*port)
	}{
		"Delete": {config{}, func(p *port) { p.Delete("k") }},
		"Discard": {config{}, func(p *port) {
			l, _ := p.Acquire(context.Background(), "k", notAsked)
			l.Discard()
		}},
		"CompareAndDelete": {config{}, func(p *port) { oncecache.CompareAndDelete(p.Cache, "k", 1) }},
		"Clear":            {config{}, func(p *port) { p.Clear() }},
		"MaxEntries":       {config{MaxEntries: 1}, func(p *port) { p.Set("other", 1) }},
		"IdleTimeout": {config{IdleTimeout: time.Hour}, func(p *port) {
			for p.Len() > 0 {
				time.Sleep(time.Second)
			}
		}},
	} {
		for _, w := range ways {
			synctest.Test(t, func(t *testing.T) {
				tt.CloseBeforeCreate = true
				p := newPort(tt.config)
				l := p.take(t)
				l.Release()
				go tt.remove(p)
				for p.Len() > 0 {
					if _, ok := p.Get("other"); ok {
						break // which has made k go
					}
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if p.taken.Load() != 1 {
					t.Fatalf("%s: it is closed already", name)
				}
				var all []*call
				for range 3 {
					all = append(all, startCall(func() (int, error) { return w.ask(t.Context(), p.Cache, "k", p.taking(t, 3)) }))
				}
				for _, x := range all {
					if r := x.wait(t); r.value != 3 || r.err != nil {
						t.Errorf("%s, %s: %+v", name, w.name, r)
					}
				}
				p.shut(t)
			})
		}
	}
}

// It waits for those who hold the old value, too, and takes no longer than that.
func TestCloseBeforeCreateWaitsForLeases(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			p := newPort(config{CloseBeforeCreate: true})
			l := p.take(t)
			p.Delete("k")
			began := time.Now()
			next := startCall(func() (int, error) { return w.ask(t.Context(), p.Cache, "k", p.taking(t, 2)) })
			time.Sleep(time.Hour)
			l.Release()
			wantAll(t, []*call{next}, result{value: 2})
			if d := time.Since(began); d != time.Hour+time.Minute {
				t.Errorf("%s: created after %v", w.name, d)
			}
			p.shut(t)
		})
	}
}

// A value that takes the place of what is left of its key counts for Len.
func TestLenOfAKeyThatIsNotFree(t *testing.T) {
	for name, set := range map[string]func(c *oncecache.Cache[string, int]){
		"Set":         func(c *oncecache.Cache[string, int]) { c.Set("k", 2) },
		"SetIfAbsent": func(c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 2) },
	} {
		c := oncecache.MustNew(config{CloseBeforeCreate: true, Close: func(string, int) error { return nil }})
		l, err := c.Acquire(t.Context(), "k", func(context.Context, string) (int, error) { return 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		c.Delete("k")
		before := c.Len()
		if set(c); before != 0 || c.Len() != 1 {
			t.Errorf("%s: Len is %d while the old value is leased, and then %d; want 0, and then 1", name, before, c.Len())
		}
		l.Release()
	}
}

// Who waits for its turn leaves when its context ends, or when that takes too
// long; Set ends the wait with its value; and other keys are free.
func TestWaitForTheTurnEnds(t *testing.T) {
	for _, w := range ways {
		for name, tt := range map[string]struct {
			timeout time.Duration
			end     func(p *port, leave context.CancelFunc)
			want    result
			after   time.Duration
			leaves  bool // only those whose context is asked
		}{
			"left":                           {0, func(_ *port, leave context.CancelFunc) { time.Sleep(10 * time.Second); leave() }, left, 10 * time.Second, true},
			"left, before it takes too long": {20 * time.Second, func(_ *port, leave context.CancelFunc) { time.Sleep(10 * time.Second); leave() }, left, 10 * time.Second, true},
			"timed out": {20 * time.Second, func(*port, context.CancelFunc) {},
				result{err: oncecache.ErrCreateTimeout}, 20 * time.Second, false},
			"timed out at once": {1, func(*port, context.CancelFunc) {}, result{err: oncecache.ErrCreateTimeout}, 1, false},
			"Set":               {0, func(p *port, _ context.CancelFunc) { p.taken.Add(1); p.Set("k", 7) }, result{value: 7}, 0, false},
			"closed":            {0, func(p *port, _ context.CancelFunc) { go p.Close(context.Background()) }, result{err: oncecache.ErrClosed}, 0, false},
		} {
			if tt.leaves && !w.leaves {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				p := newPort(config{CloseBeforeCreate: true, CreateTimeout: tt.timeout})
				l := p.take(t)
				p.Delete("k")
				began := time.Now()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				x := startCall(func() (int, error) { return w.ask(ctx, p.Cache, "k", notAsked) })
				synctest.Wait()
				if v, err := p.GetOrCreate("other", with(9)); v != 9 || err != nil || time.Since(began) != 0 {
					t.Errorf("another key has %d, %v after %v", v, err, time.Since(began))
				}
				tt.end(p, leave)
				if r := x.wait(t); r != tt.want || time.Since(began) != tt.after {
					t.Errorf("%s, %s: %+v after %v", name, w.name, r, time.Since(began))
				}
				l.Release()
				p.shut(t)
			})
		}
	}
}

// A Set of what is too heavy leaves the key taken while a value that was there before is in use.
func TestHeavySetFreesNoKey(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[string, int]{
		CloseBeforeCreate: true, Close: func(string, int) error { return nil },
		MaxWeight: 10, Weight: func(_ string, v int) int64 { return int64(v) },
	})
	l, err := c.Acquire(t.Context(), "k", makes(1))
	if err != nil {
		t.Fatal(err)
	}
	c.Delete("k")
	c.Set("k", 11)
	if n := oncecache.Claims(c); n != 1 {
		t.Errorf("%d keys are taken", n)
	}
	l.Release()
	if n := oncecache.Claims(c); n != 0 {
		t.Errorf("%d keys are taken after the last lease", n)
	}
}

// A creation waits for its turn no longer than CreateTimeout, whatever comes and goes meanwhile.
func TestWaitForTheTurnIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{
			CloseBeforeCreate: true, CreateTimeout: time.Minute, Close: func(string, int) error { return nil },
		})
		l, err := c.Acquire(t.Context(), "k", func(context.Context, string) (int, error) { return 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		c.Delete("k")
		for {
			began := time.Now()
			waiter := start(c, "k", unexpected(t))
			for i := range 5 {
				time.Sleep(40 * time.Second)
				c.Set("k", 2+i)
				c.Delete("k")
			}
			got := waiter.wait(t)
			if got.err == nil {
				continue // it has found what was set, before that was deleted
			}
			if took := time.Since(began); !errors.Is(got.err, oncecache.ErrCreateTimeout) || took > 5*40*time.Second {
				t.Errorf("%v, after %v", got.err, took)
			}
			break
		}
		l.Release()
	})
}

// A caller whose context ends while it waits for its turn gets the error of that, though the cause is the
// timeout of another cache's creation, which asks.
func TestLeavesTheTurnForAnothersTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			asked := oncecache.MustNew(oncecache.Config[string, int]{
				CloseBeforeCreate: true, CreateTimeout: timeout, Close: func(string, int) error { return nil },
			})
			l, err := asked.Acquire(t.Context(), "k", func(context.Context, string) (int, error) { return 1, nil })
			if err != nil {
				t.Fatal(err)
			}
			asked.Delete("k")
			asks := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: time.Minute})
			var got error
			if _, err := asks.GetOrCreateContext(t.Context(), "a", func(ctx context.Context, _ string) (int, error) {
				_, got = asked.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { return 2, nil })
				return 0, got
			}); err != oncecache.ErrCreateTimeout {
				t.Error(err)
			}
			synctest.Wait()
			if got != context.Canceled {
				t.Errorf("with a CreateTimeout of %v, the function's call returns %v", timeout, got)
			}
			l.Release()
		})
	}
}

// Likewise where that happens when the call has found that it has to wait, and does not wait yet.
func TestTheTurnEndsBeforeTheWait(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(p *port)
		want result
	}{
		"Set": {func(p *port) { p.taken.Add(1); p.Set("k", 7) }, result{value: 7}},
		"closed": {func(p *port) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			p.Close(ended)
		}, result{err: oncecache.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPort(config{CloseBeforeCreate: true, CreateTimeout: time.Hour})
				l := p.take(t)
				p.Delete("k")
				began := time.Now()
				x := startCall(func() (int, error) {
					return p.GetOrCreateContext(&lateContext{Context: t.Context(), f: func() { tt.end(p) }}, "k", notAsked)
				})
				if r := x.wait(t); r != tt.want || time.Since(began) != 0 {
					t.Errorf("%+v after %v", r, time.Since(began))
				}
				l.Release()
				p.shut(t)
			})
		})
	}
}

// lateContext calls f when it is first asked for its deadline: by the timeout that bounds the wait.
type lateContext struct {
	context.Context
	f func()
}

func (c *lateContext) Deadline() (time.Time, bool) {
	if f := c.f; f != nil {
		c.f = nil
		f()
	}
	return c.Context.Deadline()
}

// A key whose old value is being closed is absent for Wait, which does not look at its context then.
func TestWaitForWhatIsClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(config{CloseBeforeCreate: true})
		l := p.take(t)
		p.Delete("k")
		ended, leave := context.WithCancel(t.Context())
		leave()
		for _, ctx := range []context.Context{t.Context(), ended} {
			for _, k := range []string{"k", "another"} {
				if _, err := p.Wait(ctx, k); err != oncecache.ErrNotFound {
					t.Errorf("%s: %v", k, err)
				}
			}
		}
		l.Release()
		p.shut(t)
	})
}

// foreign is a context of another package's making, for whose end a context that is made of it waits on a
// goroutine.
type foreign struct {
	context.Context
	done chan struct{}
}

func (f foreign) Done() <-chan struct{} { return f.done }

// Nothing is left of a wait that was shorter than CreateTimeout.
func TestWaitForTheTurnLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		p := newPort(config{CloseBeforeCreate: true, CreateTimeout: time.Hour})
		l := p.take(t)
		p.Delete("k")
		x := startCall(func() (int, error) {
			return p.GetOrCreateContext(foreign{t.Context(), make(chan struct{})}, "k", p.taking(t, 2))
		})
		synctest.Wait()
		l.Release()
		if r := x.wait(t); r != (result{value: 2}) {
			t.Errorf("%+v", r)
		}
		p.shut(t)
	})
}

// A key is forgotten when nothing is left of it.
func TestFreeKeysAreForgotten(t *testing.T) {
	c := oncecache.MustNew(config{CloseBeforeCreate: true, Close: func(string, int) error { return nil }})
	c.Set("k", 1)
	c.Delete("k")
	if n := oncecache.Claims(c); n != 0 {
		t.Errorf("%d keys are claimed", n)
	}
}

// By default a key is free as soon as its value has left the cache.
func TestNobodyWaitsForATurnByDefault(t *testing.T) {
	for _, w := range ways {
		for name, cfg := range map[string]config{"Delete": {}, "MaxEntries": {MaxEntries: 1}} {
			synctest.Test(t, func(t *testing.T) {
				p := newPort(cfg)
				p.Set("k", 1)
				if name == "Delete" {
					go p.Delete("k")
				} else {
					p.Set("other", 1)
				}
				synctest.Wait()
				began := time.Now()
				x := startCall(func() (int, error) { return w.ask(t.Context(), p.Cache, "k", makes(2)) })
				wantAll(t, []*call{x}, result{value: 2})
				if d := time.Since(began); d != 0 {
					t.Errorf("%s, %s: created after %v", name, w.name, d)
				}
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A function that Delete or a timeout has overtaken, and what it makes, are alone
// too.
func TestTurnAfterAForgottenCreation(t *testing.T) {
	for name, overtake := range map[string]func(p *port){
		"Delete":  func(p *port) { p.Delete("k") },
		"timeout": func(*port) { time.Sleep(10 * time.Minute) },
	} {
		for i, end := range []func() (int, error){with(1), failing, with(1), failing} {
			for _, w := range ways {
				synctest.Test(t, func(t *testing.T) {
					p := newPort(config{CloseBeforeCreate: true, CreateTimeout: 10 * time.Minute, ErrorTTL: time.Duration(i) * time.Hour})
					first := newPilot()
					create := func(ctx context.Context, k string) (int, error) {
						p.taken.Add(1)
						v, err := first.create(ctx, k)
						if err != nil {
							p.taken.Add(-1)
						}
						return v, err
					}
					owner := startCall(func() (int, error) {
						if i < 2 {
							return p.GetOrCreateContext(t.Context(), "k", create)
						}
						return p.GetOrCreate("k", func() (int, error) { return create(t.Context(), "k") })
					})
					<-first.ctx
					overtake(p)
					synctest.Wait()
					next := startCall(func() (int, error) { return w.ask(t.Context(), p.Cache, "k", p.taking(t, 2)) })
					time.Sleep(time.Second)
					select {
					case <-next.done:
						t.Fatalf("%s, %s: %+v while the function before runs", name, w.name, next.result)
					default:
					}
					first.end <- end
					owner.wait(t)
					wantAll(t, []*call{next}, result{value: 2})
					p.shut(t)
				})
			}
		}
	}
}

// A value that is not kept, because Weight panics, is alone until it is closed.
func TestTurnAfterAValueThatIsNotKept(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			p := newPort(config{CloseBeforeCreate: true, MaxWeight: 10, Weight: func(_ string, v int) int64 { return int64(v) - 2 }})
			first := startCall(func() (int, error) { return w.ask(t.Context(), p.Cache, "k", p.taking(t, 1)) })
			synctest.Wait()
			wantAll(t, []*call{startCall(func() (int, error) { return w.ask(t.Context(), p.Cache, "k", p.taking(t, 2)) })}, result{value: 2})
			if r := first.wait(t); r.panicked == nil {
				t.Errorf("%s: %+v", w.name, r)
			}
			p.shut(t)
		})
	}
}

// Batches that share keys wait for all of their turns, and not for each other.
func TestTurnsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken [4]atomic.Int32
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(k, _ int) error {
			time.Sleep(time.Minute)
			taken[k].Add(-1)
			return nil
		}})
		create := func(ctx context.Context, keys []int) (map[int]int, error) {
			for _, k := range keys {
				if n := taken[k].Add(1); n != 1 {
					t.Errorf("%d have %d", n, k)
				}
			}
			return squares(ctx, keys)
		}
		for round := range 3 {
			var all []*call
			for _, keys := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0}, {1, 3}} {
				all = append(all, startCall(func() (int, error) {
					got, err := c.GetOrCreateMany(t.Context(), keys, create)
					if len(got) != len(keys) {
						err = fmt.Errorf("round %d: %v of %v: %w", round, got, keys, err)
					}
					return 0, err
				}))
			}
			wantAll(t, all, result{})
			synctest.Wait()
			c.Clear()
		}
		if err := c.Close(t.Context()); err != nil || oncecache.Claims(c) != 0 {
			t.Errorf("%v, %d keys are claimed", err, oncecache.Claims(c))
		}
	})
}

// A creation that waits for its turn, and that Delete makes the cache forget,
// does not keep its callers: they look again, and find what has come meanwhile.
func TestForgottenCreationsDoNotWait(t *testing.T) {
	forget := map[string]func(c *oncecache.Cache[string, int]){
		"Delete": func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Clear":  func(c *oncecache.Cache[string, int]) { c.Clear() },
	}
	begin := map[string]func(t *testing.T) (c *oncecache.Cache[string, int], end func()){
		"a lease of the value before": func(t *testing.T) (*oncecache.Cache[string, int], func()) {
			c := newAlone()
			l, _ := c.Acquire(t.Context(), "k", makes(1))
			c.Delete("k")
			return c, func() { l.Release() }
		},
	}
	for of, begin := range begin {
		for name, forget := range forget {
			for _, w := range ways {
				if w.name == "Refresh" {
					continue // it has no old value, and is GetOrCreateContext
				}
				synctest.Test(t, func(t *testing.T) {
					c, end := begin(t)
					ctx, leave := context.WithTimeout(t.Context(), time.Hour)
					defer leave()
					began := time.Now()
					// Where the Refresh is ended, who begins anew may call its function before
					// Set comes: that ends when Set has come, which wins.
					set := make(chan struct{})
					waiter := startCall(func() (int, error) {
						return w.ask(ctx, c, "k", func(context.Context, string) (int, error) { <-set; return 2, nil })
					})
					synctest.Wait()
					forget(c)
					c.Set("k", 5)
					close(set)
					if r := waiter.wait(t); r.value != 5 || r.err != nil || time.Since(began) != 0 {
						t.Errorf("%s, which waits for %s, after %s and Set: %+v after %v", w.name, of, name, r, time.Since(began))
					}
					end()
					synctest.Wait()
					if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
						t.Errorf("%s: %v, %d pending", w.name, err, oncecache.Pending(c))
					}
				})
			}
		}
	}
}

// A panic of the function of a Refresh, whose caller has left, is told by Close,
// though a creation has waited for it, which does not tell it to anyone.
func TestPanicOfRefreshBesideACreation(t *testing.T) {
	for _, heard := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			c.Set("k", 1)
			gate := make(chan struct{})
			ctx, leave := context.WithCancel(t.Context())
			refresh := startCall(func() (int, error) {
				return c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { <-gate; panic("disk full") }))
			})
			synctest.Wait()
			oncecache.CompareAndDelete(&c, "k", 1)
			other := startCall(func() (int, error) { return c.GetOrCreateContext(t.Context(), "k", makes(2)) })
			synctest.Wait()
			if !heard {
				leave()
				refresh.wait(t)
			}
			close(gate)
			if r := other.wait(t); r.value != 2 || r.err != nil {
				t.Errorf("%+v", r)
			}
			if r := refresh.wait(t); heard != (r.panicked != nil) {
				t.Errorf("%+v", r)
			}
			synctest.Wait()
			leave()
			var p *oncecache.PanicError
			if err := c.Close(t.Context()); errors.As(err, &p) == heard {
				t.Errorf("heard %t, and Close returns %v", heard, err)
			}
		})
	}
}

// Of values that only are equal, each is closed; and one that has come back is
// closed once.
func TestEqualValuesAreClosed(t *testing.T) {
	testClosings(t, "numbers", 7, 7, 2)
	testClosings(t, "nothing", struct{}{}, struct{}{}, 2)
	testClosings(t, "arrays of numbers", row{1, 2}, row{1, 2}, 2)
	v := &engine{memory}
	testClosings(t, "a pointer", v, v, 1)
	testClosings(t, "an interface", any(v), any(v), 1)
	testClosings[any](t, "a struct", struct{ e *engine }{v}, struct{ e *engine }{v}, 1)
	testClosings(t, "pointers", v, &engine{memory}, 2)
	testClosings(t, "pointers to nothing", new(struct{}), new(struct{}), 2)
}

// testClosings makes b while a lease holds a, which was deleted.
func testClosings[V any](t *testing.T, of string, a, b V, want int) {
	closed := 0
	c := oncecache.MustNew(oncecache.Config[string, V]{Close: func(string, V) error { closed++; return nil }})
	first, _ := c.Acquire(t.Context(), "k", func(context.Context, string) (V, error) { return a, nil })
	c.Delete("k")
	second, _ := c.Acquire(t.Context(), "k", func(context.Context, string) (V, error) { return b, nil })
	first.Release()
	second.Release()
	if err := c.Close(t.Context()); err != nil || closed != want {
		t.Errorf("%s: closed %d times, want %d; %v", of, closed, want, err)
	}
}
