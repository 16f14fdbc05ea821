//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/oncecache"
)

// dependants is a cache whose values are what create functions make that ask for the
// other keys of theirs first, one after the other.
type dependants struct {
	c     *oncecache.Cache[string, string]
	other map[string][]string
	ready func(k string) // called by each create function before it asks
}

func (a *dependants) create(ctx context.Context, k string) (string, error) {
	if a.ready != nil {
		a.ready(k)
	}
	made := k
	for _, o := range a.other[k] {
		v, err := a.c.GetOrCreateContext(ctx, o, a.create)
		if err != nil {
			return "", fmt.Errorf("%s: %w", k, err)
		}
		made += v
	}
	return made, nil
}

func wantCycle(t *testing.T, err error, path ...any) {
	t.Helper()
	var cycle *oncecache.CycleError
	if !errors.As(err, &cycle) {
		t.Fatalf("%v, want a CycleError", err)
	}
	if path != nil && !reflect.DeepEqual(cycle.Path, path) {
		t.Errorf("path %v, want %v", cycle.Path, path)
	}
	text := "oncecache: create function would wait for itself: " + strings.ReplaceAll(strings.Trim(fmt.Sprint(cycle.Path), "[]"), " ", " → ")
	if cycle.Error() != text {
		t.Errorf("%q, want %q", cycle, text)
	}
}

// Reported bug 23, ConcurrentHashMap, Caffeine, Guava, Elasticsearch: loads that need each other deadlock.
// A creation may ask for others, as long as none asks for it.
func TestT23_CreationsAskForOthers(t *testing.T) {
	within(t, time.Minute, func() {
		for name, ctx := range contexts(t) {
			a := dependants{new(oncecache.Cache[string, string]), map[string][]string{"a": {"b", "c"}, "b": {"c", "d"}}, nil}
			if v, err := a.c.GetOrCreateContext(ctx, "a", a.create); v != "abcdc" || err != nil {
				t.Errorf("%s: %q, %v", name, v, err)
			}
		}
	})
}

// Reported bug 23, ConcurrentHashMap, Caffeine, Guava, Elasticsearch: loads that need each other deadlock.
// Who asks for itself, in one step or in several, gets the path.
func TestT23_CyclesOfOneCaller(t *testing.T) {
	within(t, time.Minute, func() {
		for name, ctx := range contexts(t) {
			for _, tt := range []struct {
				other map[string][]string
				path  []any
			}{
				{map[string][]string{"a": {"a"}}, []any{"a", "a"}},
				{map[string][]string{"a": {"b"}, "b": {"a"}}, []any{"b", "a", "b"}},
				{map[string][]string{"a": {"d", "b"}, "b": {"d", "c"}, "c": {"d", "a"}}, []any{"c", "a", "b", "c"}},
				{map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}, []any{"c", "b", "c"}},
			} {
				a := dependants{new(oncecache.Cache[string, string]), tt.other, nil}
				_, err := a.c.GetOrCreateContext(ctx, "a", a.create)
				// Each function but the first has a goroutine of its own, and
				// begins to wait when it likes: any of them may be the last.
				wantSomeCycle(t, err, tt.path...)
				if a.c.Len() > 1 {
					t.Errorf("%s: %d keys", name, a.c.Len())
				}
			}
		}
	})
}

// wantSomeCycle is wantCycle, wherever in the cycle the path begins.
func wantSomeCycle(t *testing.T, err error, path ...any) {
	t.Helper()
	var cycle *oncecache.CycleError
	if errors.As(err, &cycle) {
		path = from(cycle.Path[0], path)
	}
	wantCycle(t, err, path...)
}

// from returns the path of the same cycle that begins with k.
func from(k any, path []any) []any {
	i := max(0, slices.Index(path, k))
	return append(append(slices.Clone(path[i:len(path)-1]), path[:i]...), path[i])
}

func contexts(t *testing.T) map[string]context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return map[string]context.Context{"can end": ctx, "cannot": context.Background()}
}

// knowsGoroutines skips the test where goroutines cannot be told apart.
func knowsGoroutines(t *testing.T) {
	if goid.Token() == 0 {
		t.Skip("a goroutine is not known on " + runtime.GOARCH)
	}
}

// Reported bug 23, ConcurrentHashMap, Caffeine, Guava, Elasticsearch: loads that need each other deadlock.
// Without contexts too, on one goroutine.
func TestT23_CyclesWithoutContexts(t *testing.T) {
	knowsGoroutines(t)
	var c oncecache.Cache[string, int]
	within(t, time.Minute, func() {
		var err error
		c.GetOrCreate("a", func() (int, error) {
			return c.GetOrCreate("b", func() (int, error) {
				_, err = c.GetOrCreate("a", func() (int, error) { return 1, nil })
				return 2, nil
			})
		})
		wantCycle(t, err, "a", "a")
	})
	if v, ok := c.Get("a"); v != 2 || !ok {
		t.Errorf("%d, %v", v, ok)
	}
}

// Reported bug 23, ConcurrentHashMap, Caffeine, Guava, Elasticsearch: loads that need each other deadlock.
// Of goroutines that together make a cycle one gives up, and the others
// get their values.
func TestT23_CyclesOfSeveralCallers(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for range 200 {
				within(t, time.Minute, func() {
					// Two caches, whose keys depend on each other.
					var caches [2]oncecache.Cache[int, int]
					var begun, done sync.WaitGroup
					begun.Add(n)
					errs := make([]error, n)
					cycles := make([]int, n)
					for i := range n {
						done.Go(func() {
							_, errs[i] = caches[i%2].GetOrCreateContext(t.Context(), i, func(ctx context.Context, i int) (int, error) {
								begun.Done()
								begun.Wait()
								next := (i + 1) % n
								v, err := caches[next%2].GetOrCreateContext(ctx, next, func(context.Context, int) (int, error) {
									panic("has begun")
								})
								if c := new(oncecache.CycleError); errors.As(err, &c) {
									cycles[i]++
									if len(c.Path) != n+1 {
										t.Errorf("path %v", c.Path)
									}
									return 1, nil // does without
								}
								return v + 1, err
							})
						})
					}
					done.Wait()
					victims := 0
					for i := range n {
						if errs[i] != nil {
							t.Error(errs[i])
						}
						victims += cycles[i]
					}
					if victims != 1 {
						t.Errorf("%d give up, want 1", victims)
					}
				})
			}
		})
	}
}

// Two functions that wait for each other's keys, and would not create them.
func TestCycleOfWaits(t *testing.T) {
	within(t, time.Minute, func() {
		var c oncecache.Cache[int, int]
		var begun, done sync.WaitGroup
		var cycles atomic.Int32
		begun.Add(2)
		for i := range 2 {
			done.Go(func() {
				v, err := c.GetOrCreateContext(t.Context(), i, func(ctx context.Context, i int) (int, error) {
					begun.Done()
					begun.Wait()
					_, err := c.Wait(ctx, 1-i)
					if c := new(oncecache.CycleError); errors.As(err, &c) && len(c.Path) == 3 {
						cycles.Add(1)
					} else if err != nil {
						t.Error(err)
					}
					return i, nil
				})
				if v != i || err != nil {
					t.Error(v, err)
				}
			})
		}
		done.Wait()
		if n := cycles.Load(); n != 1 {
			t.Errorf("%d give up, want 1", n)
		}
	})
}

// A function that has a context, and does not hand it on, is told as well if it
// asks for its own key on its own goroutine.
func TestCyclesThatDropTheContext(t *testing.T) {
	knowsGoroutines(t)
	for _, ctx := range contexts(t) {
		var c oncecache.Cache[string, int]
		within(t, time.Minute, func() {
			_, err := c.GetOrCreateContext(ctx, "a", func(_ context.Context, k string) (int, error) { return c.GetOrCreate(k, diskFull) })
			wantCycle(t, err, "a", "a")
			_, err = c.GetOrCreateMany(ctx, []string{"b", "c"}, func(context.Context, []string) (map[string]int, error) {
				_, err := c.GetOrCreate("c", diskFull)
				return nil, err
			})
			wantCycle(t, err, "c", "c")
		})
		wantLen(t, &c, 0)
	}
}

// calling has ways to call create functions, for b and maybe more.
var calling = map[string]func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error){
	"one": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error) {
		c.GetOrCreateContext(ctx, "b", func(ctx context.Context, _ string) (int, error) { return 0, create(ctx) })
	},
	"many": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error) {
		c.GetOrCreateMany(ctx, []string{"b", "c"}, func(ctx context.Context, _ []string) (map[string]int, error) { return nil, create(ctx) })
	},
}

// A function that calls another one waits for it, although Set or a timer has
// ended what that creates.
func TestCyclesThroughCalls(t *testing.T) {
	for name, call := range calling {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			begun := make(chan struct{})
			asks := func(ctx context.Context, _ string) (int, error) {
				close(begun)
				return c.GetOrCreateContext(ctx, "a", notAsked)
			}
			_, err := c.GetOrCreateContext(t.Context(), "a", func(ctx context.Context, _ string) (v int, err error) {
				go c.GetOrCreateContext(t.Context(), "x", asks)
				<-begun
				synctest.Wait() // x waits for a
				call(context.WithoutCancel(ctx), &c, func(ctx context.Context) error {
					go c.Wait(t.Context(), "b") // so that it is known to have ended
					synctest.Wait()
					c.Set("b", 7)
					v, err = c.GetOrCreateContext(context.WithoutCancel(ctx), "x", notAsked)
					return err
				})
				return v, err
			})
			if c := new(oncecache.CycleError); !errors.As(err, &c) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// It does not when that has returned: who still has its context may wait for the caller.
func TestNoCycleThroughCallsThatAreOver(t *testing.T) {
	for name, call := range calling {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			done := make(chan error, 1)
			_, err := c.GetOrCreateContext(t.Context(), "a", func(ctx context.Context, _ string) (int, error) {
				var kept context.Context
				call(context.WithoutCancel(ctx), &c, func(ctx context.Context) error { kept = ctx; return nil })
				go func() {
					_, err := c.Wait(kept, "a")
					done <- err
				}()
				synctest.Wait()
				return 1, nil
			})
			if waits := <-done; err != nil || waits != nil {
				t.Errorf("%s: %v; who waits gets %v", name, err, waits)
			}
		})
	}
}

// A function that waits for ever more creations, of which never all have ended,
// does not list them all.
func TestDependencesDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		c.GetOrCreateContext(t.Context(), -1, func(ctx context.Context, _ int) (int, error) {
			var last chan struct{}
			most := 0
			for k := range 300 {
				end := make(chan struct{})
				go c.GetOrCreate(k, func() (int, error) { <-end; return k, nil })
				synctest.Wait()
				go c.GetOrCreateContext(ctx, k, func(context.Context, int) (int, error) { panic("has begun") })
				synctest.Wait()
				if last != nil {
					close(last)
				}
				last = end
				most = max(most, oncecache.Dependences(ctx))
			}
			close(last)
			if most > 10 || most < 2 {
				t.Errorf("%d dependences listed, of which 2 at a time count", most)
			}
			return 0, nil
		})
	})
}

// Who has given up does not wait any more: what then waits for its creation is no
// cycle.
func TestCycleThatIsOver(t *testing.T) {
	for range 20 { // the ranks are random
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[int, int]
			end := make(chan struct{})
			gives := startCall(func() (int, error) {
				return c.GetOrCreateContext(t.Context(), 0, func(ctx context.Context, _ int) (int, error) {
					time.Sleep(2 * time.Nanosecond)
					if _, err := c.Wait(ctx, 1); !errors.As(err, new(*oncecache.CycleError)) {
						t.Errorf("a cycle: %v", err)
					}
					<-end
					return 1, nil
				})
			})
			waits := startCall(func() (int, error) {
				return c.GetOrCreateContext(t.Context(), 1, func(ctx context.Context, _ int) (int, error) {
					time.Sleep(time.Nanosecond)
					first := startCall(func() (int, error) { return c.Wait(ctx, 0) })
					time.Sleep(2 * time.Nanosecond)
					second := startCall(func() (int, error) { return c.Wait(ctx, 0) })
					time.Sleep(time.Nanosecond)
					close(end)
					wantAll(t, []*call{first, second}, result{value: 1})
					return 2, nil
				})
			})
			wantAll(t, []*call{gives}, result{value: 1})
			wantAll(t, []*call{waits}, result{value: 2})
		})
	}
}

// Nor does a caller that has left because its context has ended, whether it waited for a creation or for its turn.
func TestNoCycleOfWhoHasLeft(t *testing.T) {
	for _, turn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newAlone()
			asks, end := make(chan struct{}), make(chan struct{})
			asked := startCall(func() (int, error) {
				return c.GetOrCreateContext(t.Context(), "k", func(ctx context.Context, _ string) (int, error) {
					<-asks
					return c.Wait(ctx, "other")
				})
			})
			synctest.Wait()
			if turn {
				c.Delete("k")
			}
			waits := startCall(func() (int, error) {
				return c.GetOrCreateContext(t.Context(), "other", func(ctx context.Context, _ string) (int, error) {
					short, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					if _, err := c.GetOrCreateContext(short, "k", makes(3)); err != context.DeadlineExceeded {
						t.Errorf("for its turn: %t: %v", turn, err)
					}
					<-end
					return 2, nil
				})
			})
			time.Sleep(time.Minute)
			close(asks)
			time.Sleep(time.Minute)
			close(end)
			wantAll(t, []*call{asked, waits}, result{value: 2})
		})
	}
}

// Nor does a function whose call has returned, or has left the creation that it began: who
// goes on there may wait for it.
func TestNoCycleOfWhoHasCalled(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			asking := make(chan *call, 1)
			v, err := c.GetOrCreateContext(t.Context(), "outer", func(ctx context.Context, _ string) (int, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if !leaves {
					ctx = context.WithoutCancel(ctx)
				}
				c.GetOrCreateContext(ctx, "inner", func(ctx context.Context, _ string) (int, error) {
					asks := startCall(func() (int, error) {
						time.Sleep(time.Minute)
						return c.Wait(context.WithoutCancel(ctx), "outer")
					})
					asking <- asks
					if leaves {
						<-asks.done
					}
					return 1, nil
				})
				time.Sleep(time.Hour)
				return 2, nil
			})
			if v != 2 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			wantAll(t, []*call{<-asking}, result{value: 2})
		})
	}
}

// A creation that waits for two others is no cycle for who waits for it.
func TestNoCycleBehindTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		end := make(chan struct{})
		hang := func(_ context.Context, k int) (int, error) { <-end; return k, nil }
		both := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), 1, func(ctx context.Context, k int) (int, error) {
				for _, other := range []int{2, 3} {
					x := startCall(func() (int, error) { return c.GetOrCreateContext(ctx, other, hang) })
					defer x.wait(t)
				}
				<-end
				return k, nil
			})
		})
		synctest.Wait()
		behind := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), 0, func(ctx context.Context, _ int) (int, error) { return c.Wait(ctx, 1) })
		})
		synctest.Wait()
		close(end)
		wantAll(t, []*call{both, behind}, result{value: 1})
	})
}

// Who does not wait after all, because of a cycle, is not counted as one who does.
func TestCyclesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		_, err := c.GetOrCreateContext(t.Context(), "a", func(ctx context.Context, _ string) (int, error) {
			return c.GetOrCreateContext(ctx, "b", func(ctx context.Context, _ string) (int, error) {
				synctest.Wait() // until a waits for b, so that it is b that closes the cycle
				_, err := c.Wait(ctx, "a")
				synctest.Wait()
				for f := range c.InFlight() {
					if f.Waiting != 1 {
						t.Errorf("%d wait for %s", f.Waiting, f.Key)
					}
				}
				return 0, err
			})
		})
		wantCycle(t, err, "b", "a", "b")
	})
}

var errGoesOn = errors.New("goes on")

// A creation that waits for many others at once is found by way of each of them,
// the oldest and the newest, whichever have ended meanwhile.
func TestCyclesOfWideWaits(t *testing.T) {
	const wide = 40
	for every := range 4 { // of the waits, one in so many ends soon
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[int, int]
				var ask [wide]chan bool
				var waits [wide]*call
				ready, end := make(chan struct{}), make(chan struct{})
				root := startCall(func() (int, error) {
					return c.GetOrCreateContext(t.Context(), -1, func(ctx context.Context, _ int) (int, error) {
						for k := range wide {
							ask[k] = make(chan bool)
							waits[k] = startCall(func() (int, error) {
								return c.GetOrCreateContext(ctx, k, func(ctx context.Context, k int) (int, error) {
									if <-ask[k] {
										return c.Wait(ctx, -1)
									}
									return k, nil
								})
							})
							synctest.Wait()
							if ended := k - 1; every > 0 && k%every == 0 && ended >= 0 {
								ask[ended] <- false
								synctest.Wait()
							}
						}
						close(ready)
						<-end
						return 0, errGoesOn
					})
				})
				<-ready
				for k := range wide {
					select {
					case <-waits[k].done:
						continue
					default:
					}
					ask[k] <- true
					wantCycle(t, waits[k].wait(t).err, k, -1, k)
				}
				close(end)
				wantAll(t, []*call{root}, result{err: errGoesOn})
			})
		})
	}
}

// Whoever looks for a cycle comes to each creation once, however many ways lead
// there: here 2 to the power of 40.
func TestCyclesOfManyWays(t *testing.T) {
	const layers = 40
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		end := make(chan struct{})
		var below func(ctx context.Context, k int) (int, error)
		below = func(ctx context.Context, k int) (int, error) {
			next := (k/2 + 1) * 2
			if next >= 2*layers {
				<-end
				return 1, nil
			}
			left := startCall(func() (int, error) { return c.GetOrCreateContext(ctx, next, below) })
			right := startCall(func() (int, error) { return c.GetOrCreateContext(ctx, next+1, below) })
			wantAll(t, []*call{left, right}, result{value: 1})
			return 1, nil
		}
		top := startCall(func() (int, error) { return c.GetOrCreateContext(t.Context(), 0, below) })
		synctest.Wait()
		looks := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), -1, func(ctx context.Context, _ int) (int, error) { return c.Wait(ctx, 0) })
		})
		synctest.Wait()
		close(end)
		wantAll(t, []*call{top, looks}, result{value: 1})
	})
}

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
		slices.Sort(s.closed) // both at once
		s.wantClosed(t, 1, 3)
		s.Close(t.Context())
		synctest.Wait()
		s.wantClosed(t, 1, 3, 2)
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

// A function whose creation Set has ended keeps nobody waiting but a caller that runs it itself: that cannot go on
// before the function has returned.
func TestCyclesOfWhatSetHasEnded(t *testing.T) {
	for name, runsItself := range map[string]bool{"runs it itself": true, "waits": false} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			var inner error
			_, err := c.GetOrCreateContext(t.Context(), "a", func(ctx context.Context, _ string) (int, error) {
				if runsItself {
					ctx = context.WithoutCancel(ctx)
				}
				return c.GetOrCreateContext(ctx, "b", func(ctx context.Context, _ string) (int, error) {
					c.Set("b", 5)
					asked := make(chan struct{})
					go func() { // a call of a's own goroutine is recognized without a graph
						defer close(asked)
						_, inner = c.GetOrCreateContext(context.WithoutCancel(ctx), "a", notAsked)
					}()
					<-asked
					return 6, nil
				})
			})
			synctest.Wait()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if runsItself {
				wantCycle(t, inner, "b", "a", "b")
			} else if inner != nil {
				t.Errorf("%s: %v", name, inner)
			}
		})
	}
}
