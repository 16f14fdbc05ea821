//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
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

// A function that calls another one waits for it, although Set or a timer has
// ended what that creates.
func TestCyclesThroughCalls(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error){
		"one": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error) {
			c.GetOrCreateContext(ctx, "b", func(ctx context.Context, _ string) (int, error) { return 0, create(ctx) })
		},
		"many": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error) {
			c.GetOrCreateMany(ctx, []string{"b", "c"}, func(ctx context.Context, _ []string) (map[string]int, error) { return nil, create(ctx) })
		},
	} {
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
