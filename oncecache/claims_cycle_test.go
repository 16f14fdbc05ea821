//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/oncecache"
)

// newAlone returns a cache of values that must be alone.
func newAlone() *oncecache.Cache[string, int] {
	return oncecache.MustNew(oncecache.Config[string, int]{CloseBeforeCreate: true, Close: func(string, int) error { return nil }})
}

// makesMany makes v for each key.
func makesMany(v int) func(context.Context, []string) (map[string]int, error) {
	return func(_ context.Context, keys []string) (map[string]int, error) {
		made := map[string]int{}
		for _, k := range keys {
			made[k] = v
		}
		return made, nil
	}
}

// A batch holds nothing that a creation waits for while it waits for that: neither
// what it has found, nor what it has made or is to make.
func TestManyHoldsNoTurn(t *testing.T) {
	for name, first := range map[string]func(c *oncecache.Cache[string, int]){
		"found": func(c *oncecache.Cache[string, int]) { c.Set("a", 1) },
		"made":  func(*oncecache.Cache[string, int]) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newAlone()
			first(c)
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			began := time.Now()
			gate := make(chan struct{})
			other := startCall(func() (int, error) {
				return c.GetOrCreateContext(ctx, "b", func(ctx context.Context, _ string) (int, error) {
					<-gate
					return c.GetOrCreateContext(ctx, "a", makes(2))
				})
			})
			synctest.Wait()
			many := startCall(func() (int, error) {
				got, err := c.GetOrCreateMany(ctx, []string{"a", "b"}, makesMany(1))
				return got["b"], err
			})
			synctest.Wait()
			c.Delete("a")
			close(gate)
			for _, x := range []*call{other, many} {
				if r := x.wait(t); r.value != 2 || r.err != nil || time.Since(began) != 0 {
					t.Errorf("%s: %+v after %v", name, r, time.Since(began))
				}
			}
		})
	}
}

// A batch makes what it can before it waits for the turns of the other keys, and
// then makes each when its turn has come.
func TestManyWaitsForTurnsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAlone()
		leases := map[string]oncecache.Lease[string, int]{}
		for _, k := range []string{"a", "b"} {
			l, _ := c.Acquire(t.Context(), k, makes(1))
			leases[k] = l
			c.Delete(k)
		}
		var calls [][]string
		var got map[string]int
		done := make(chan struct{})
		go func() {
			defer close(done)
			var err error
			got, err = c.GetOrCreateMany(t.Context(), []string{"a", "x", "b", "y", "a"}, func(ctx context.Context, keys []string) (map[string]int, error) {
				calls = append(calls, keys)
				return makesMany(2)(ctx, keys)
			})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if len(calls) != 1 || len(calls[0]) != 2 {
			t.Errorf("called for %v while others hold a and b", calls)
		}
		for _, k := range []string{"b", "a"} { // b has come first, and does not wait for a in vain
			l := leases[k]
			if v, err := c.GetOrCreate("x", nil2); v != 2 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			l.Release()
			synctest.Wait()
		}
		<-done
		if want := (map[string]int{"a": 2, "b": 2, "x": 2, "y": 2}); !maps.Equal(got, want) || len(calls) < 2 {
			t.Errorf("%v, called for %v", got, calls)
		}
	})
}

func nil2() (int, error) { return 0, errRefused }

// A batch that creates the key of a Refresh, and another which the function of
// that asks for: neither waits for the other.
func TestManyMeetsRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		c.Set("a", 1)
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		began := time.Now()
		gate := make(chan struct{})
		refresh := startCall(func() (int, error) {
			return c.Refresh(ctx, "a", anew(func(ctx context.Context, _ string) (int, error) {
				<-gate
				return c.GetOrCreateContext(ctx, "b", makes(7))
			}))
		})
		synctest.Wait()
		oncecache.CompareAndDelete(&c, "a", 1)
		many := startCall(func() (int, error) {
			got, err := c.GetOrCreateMany(ctx, []string{"a", "b"}, makesMany(5))
			return got["a"], err
		})
		synctest.Wait()
		close(gate)
		for _, x := range []*call{refresh, many} {
			if r := x.wait(t); r.value != 5 || r.err != nil || time.Since(began) != 0 {
				t.Errorf("%+v after %v", r, time.Since(began))
			}
		}
	})
}

// A function that would wait for itself, because its key is free no sooner than it
// has returned, is told so.
func TestTurnsOfTheirOwnFunction(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, c *oncecache.Cache[string, int]) (int, error){
		"GetOrCreate": func(_ context.Context, c *oncecache.Cache[string, int]) (int, error) {
			return c.GetOrCreate("k", func() (int, error) { return 2, nil })
		},
		"GetOrCreateContext": func(ctx context.Context, c *oncecache.Cache[string, int]) (int, error) {
			return c.GetOrCreateContext(ctx, "k", makes(2))
		},
		"GetOrCreateMany": func(ctx context.Context, c *oncecache.Cache[string, int]) (int, error) {
			got, err := c.GetOrCreateMany(ctx, []string{"k"}, makesMany(2))
			return got["k"], err
		},
		"another's": func(ctx context.Context, c *oncecache.Cache[string, int]) (int, error) {
			return c.GetOrCreateContext(ctx, "other", func(ctx context.Context, _ string) (int, error) {
				return c.GetOrCreateContext(ctx, "k", makes(2))
			})
		},
	} {
		for of, begin := range map[string]func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context, string) (int, error)) (int, error){
			"create": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context, string) (int, error)) (int, error) {
				return c.GetOrCreateContext(ctx, "k", create)
			},
			"Refresh": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context, string) (int, error)) (int, error) {
				c.Set("k", 1)
				return c.Refresh(ctx, "k", anew(create))
			},
		} {
			for how, remove := range map[string]func(c *oncecache.Cache[string, int]){
				"Delete":           func(c *oncecache.Cache[string, int]) { c.Delete("k") },
				"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
			} {
				if of == "create" && how == "CompareAndDelete" {
					continue // there is no value
				}
				if name == "GetOrCreate" && goid.Token() == 0 {
					continue // without a context its goroutine is all that is known of a call
				}
				synctest.Test(t, func(t *testing.T) {
					c := newAlone()
					ctx, end := context.WithTimeout(t.Context(), time.Hour)
					defer end()
					if name == "GetOrCreate" && of == "create" {
						ctx = context.Background() // a goroutine is known by itself only
					}
					began := time.Now()
					var inner error
					v, err := begin(ctx, c, func(ctx context.Context, _ string) (int, error) {
						remove(c)
						_, inner = ask(ctx, c)
						return 3, nil
					})
					if v != 3 || err != nil || !isCycle(inner) || time.Since(began) != 0 {
						t.Errorf("%s in %s after %s: %d, %v; in it %v after %v", name, of, how, v, err, inner, time.Since(began))
					}
					if err := c.Close(t.Context()); err != nil || oncecache.Claims(c) != 0 {
						t.Errorf("%v, %d claims", err, oncecache.Claims(c))
					}
				})
			}
		}
	}
}

// Where values need not be alone, the function of a Refresh may ask for its own key,
// whose value has gone.
func TestRefreshMakesItsOwnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		s.Set("k", 1)
		v, err := s.Refresh(t.Context(), "k", anew(func(ctx context.Context, _ string) (int, error) {
			oncecache.CompareAndDelete(s.Cache, "k", 1)
			v, err := s.GetOrCreateContext(ctx, "k", makes(2))
			return v + 1, err
		}))
		if v != 3 || err != nil { // which is not kept
			t.Errorf("%d, %v", v, err)
		}
		synctest.Wait()
		wantGet(t, s.Cache, "k", 2)
		s.Close(t.Context())
		synctest.Wait()
		s.wantClosed(t, 3, 1, 2)
	})
}

func isCycle(err error) bool {
	var cycle *oncecache.CycleError
	return errors.As(err, &cycle)
}

// A creation that waits for a function depends on that until it returns, also if its flight has
// ended, and its callers have been woken.
func TestCycleOfAnOvertakenFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{CloseBeforeCreate: true, Close: func(string, int) error { return nil }})
		gate := make(chan struct{})
		var got error
		a := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), "a", func(ctx context.Context, _ string) (int, error) {
				<-gate
				_, got = c.GetOrCreateContext(context.WithoutCancel(ctx), "b", refusing)
				return 0, got
			})
		})
		synctest.Wait()
		other := startCall(func() (int, error) { return c.Wait(t.Context(), "a") })
		synctest.Wait()
		c.Set("a", 1)
		a.wait(t)
		other.wait(t)
		c.Delete("a") // and its function still runs
		b := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), "b", func(ctx context.Context, _ string) (int, error) {
				return c.GetOrCreateContext(ctx, "a", makes(2))
			})
		})
		synctest.Wait()
		close(gate)
		if r := b.wait(t); r.value != 2 || r.err != nil || !isCycle(got) {
			t.Errorf("%+v; %v, want a CycleError", r, got)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The function of a Refresh is alone too: after Delete, or a timeout, the next
// creation waits for it.
func TestRefreshHasATurn(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"Delete": 0, "a timeout": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(oncecache.Config[string, int]{
				CloseBeforeCreate: true, CreateTimeout: timeout, Close: func(string, int) error { return nil },
			})
			c.Set("k", 1)
			running := true
			refresh := startCall(func() (int, error) {
				return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) {
					time.Sleep(1500 * time.Millisecond)
					running = false
					return 2, nil
				}))
			})
			time.Sleep(1200 * time.Millisecond)
			c.Delete("k")
			v, err := c.GetOrCreateContext(t.Context(), "k", func(context.Context, string) (int, error) {
				if running {
					t.Errorf("after %s: called beside the function of Refresh", name)
				}
				return 3, nil
			})
			if v != 3 || err != nil {
				t.Errorf("after %s: %d, %v", name, v, err)
			}
			refresh.wait(t)
			if err := c.Close(t.Context()); err != nil || oncecache.Claims(c) != 0 {
				t.Errorf("%v, %d claims", err, oncecache.Claims(c))
			}
		})
	}
}

// A Refresh whose old value is still right, but has gone, returns what is there
// instead, and only makes another if nothing is.
func TestNotModifiedBesideSet(t *testing.T) {
	for name, tt := range map[string]struct {
		beside func(s *shop)
		same   func() (int, error)
		want   int
		calls  int
	}{
		"Set":                          {func(s *shop) { s.Set("k", 5) }, func() (int, error) { return 0, oncecache.ErrNotModified }, 5, 1},
		"Set, and the old value again": {func(s *shop) { s.Set("k", 5) }, func() (int, error) { return 1, nil }, 5, 1},
		"Delete":                       {func(s *shop) { s.Delete("k") }, func() (int, error) { return 0, oncecache.ErrNotModified }, 7, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			s.Set("k", 1)
			calls := 0
			v, err := s.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) {
				if calls++; calls == 1 {
					tt.beside(s)
					return tt.same()
				}
				return 7, nil
			}))
			if v != tt.want || err != nil || calls != tt.calls {
				t.Errorf("%s: %d, %v after %d calls", name, v, err, calls)
			}
			synctest.Wait() // also for the function that Set has overtaken
			wantGet(t, s.Cache, "k", tt.want)
			if err := s.Close(t.Context()); err != nil || oncecache.Pending(s.Cache) != 0 {
				t.Errorf("%s: %v", name, err)
			}
			if n := s.Stats().Created; n != uint64(tt.calls) || s.Stats().Failed != 0 {
				t.Errorf("%s: %+v", name, s.Stats())
			}
			s.wantClosed(t, 1, tt.want)
		})
	}
}

// So it is while Delete is between its steps: the function is known before its key
// is free.
func TestTurnsWhileDeleteStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAlone()
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		began := time.Now()
		begun, gate := make(chan struct{}), make(chan struct{})
		var inner error
		outer := startCall(func() (int, error) {
			return c.GetOrCreateContext(ctx, "k", func(ctx context.Context, _ string) (int, error) {
				close(begun)
				<-gate
				_, inner = c.GetOrCreateContext(ctx, "k", makes(2))
				return 1, nil
			})
		})
		<-begun
		finish := oncecache.StartDelete(c, "k")
		close(gate)
		synctest.Wait()
		finish()
		if r := outer.wait(t); r.value != 1 || r.err != nil || !isCycle(inner) || time.Since(began) != 0 {
			t.Errorf("%+v, in it %v after %v", r, inner, time.Since(began))
		}
	})
}

// A function that asks for its own key after Delete gets a CycleError, also if it is not the only
// one of the key that runs.
func TestCloseBeforeCreateFindsOwnKeyBesideOthers(t *testing.T) {
	if goid.Token() == 0 {
		t.Skip("no goroutine tokens")
	}
	c := oncecache.MustNew(oncecache.Config[int, int]{
		Close: func(int, int) error { return nil }, CloseBeforeCreate: true,
	})
	c.Set(1, 1)
	started, release, over := make(chan bool), make(chan bool), make(chan bool)
	go func() {
		defer close(over)
		_, _ = c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
			close(started)
			<-release
			return 2, nil
		})
	}()
	<-started
	c.Set(1, 3) // ends that Refresh, whose function goes on
	asked := make(chan error, 1)
	go func() {
		_, _ = c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
			c.Delete(1)
			_, err := c.GetOrCreate(1, func() (int, error) { return 5, nil })
			asked <- err
			return 4, nil
		})
	}()
	var cycle *oncecache.CycleError
	select {
	case err := <-asked:
		if !errors.As(err, &cycle) {
			t.Errorf("a function that asks for its own key gets %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a function that asks for its own key waits for itself")
	}
	close(release)
	<-over
}
