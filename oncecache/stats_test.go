//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// A log has the counts that say something.
func TestStatsAreLogged(t *testing.T) {
	s := newShop()
	s.GetOrCreate("k", with(1))
	s.GetOrCreate("l", with(2))
	s.GetOrCreate("none", failing)
	s.Delete("k")
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("cache", "stats", s.Stats())
	if want := "stats.created=2 stats.failed=1 stats.closed=1\n"; !strings.HasSuffix(out.String(), " "+want) {
		t.Errorf("logged %q, want %q", out.String(), want)
	}
	if all := (oncecache.Stats{11, 12, 13, 1, 2, 3, 4, 14, 5, 6, 7, 8, 9, 10, true}).LogValue().String(); all != "[hits=11 misses=12 joined=13 created=1 failed=2 panicked=3 timed_out=4 renewals=14 evicted=5 idle=6 expired=7 closed=8 create_time=9ns weight=10]" {
		t.Error(all)
	}
}

// A loop over creations may end at any of them, those of Refresh too.
func TestInFlightEndsWithItsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		end := make(chan struct{})
		hang := func(context.Context, int) (int, error) { <-end; return 0, nil }
		for k := 1; k <= 3; k++ {
			go c.GetOrCreateContext(t.Context(), k, hang)
			c.Set(-k, 0)
			go c.Refresh(t.Context(), -k, anew(hang))
		}
		synctest.Wait()
		all := 0
		for range c.InFlight() {
			all++
		}
		for n := range all {
			seen := 0
			for range c.InFlight() {
				if seen++; seen > n {
					break
				}
			}
			if seen != n+1 {
				t.Errorf("%d seen, want %d", seen, n+1)
			}
		}
		if all != 6 {
			t.Errorf("%d creations, want 6", all)
		}
		close(end)
	})
}

// recorded is a cache whose look-ups are counted.
func recorded() *oncecache.Cache[string, int] {
	return oncecache.MustNew(oncecache.Config[string, int]{
		RecordStats: true, ErrorTTLFunc: func(string, error) time.Duration { return time.Minute },
	})
}

// Each look-up counts once, as a hit if it finds a value.
func TestLookupsAreCounted(t *testing.T) {
	ctx := context.Background()
	asks := map[string]func(c *oncecache.Cache[string, int], k string){
		"Get":  func(c *oncecache.Cache[string, int], k string) { c.Get(k) },
		"Wait": func(c *oncecache.Cache[string, int], k string) { c.Wait(ctx, k) },
	}
	for _, w := range ways {
		if w.name != "Refresh" { // no look-up
			asks[w.name] = func(c *oncecache.Cache[string, int], k string) {
				w.ask(t.Context(), c, k, func(context.Context, string) (int, error) { return 0, errRefused })
			}
		}
	}
	for name, ask := range asks {
		c := recorded()
		c.Set("k", 1)
		ask(c, "k")
		if got := c.Stats(); got.Hits != 1 || got.Misses != 0 || got.Joined != 0 || !got.Recorded {
			t.Errorf("%s of a value: %+v", name, got)
		}
		ask(c, "absent")
		if got := c.Stats(); got.Hits != 1 || got.Misses != 1 || got.Joined != 0 {
			t.Errorf("%s of an absent key: %+v", name, got)
		}
		ask(c, "absent") // or its error is kept
		if got := c.Stats(); got.Hits != 1 || got.Misses != 2 || got.Joined != 0 {
			t.Errorf("%s of a kept error: %+v", name, got)
		}
		c.Close(t.Context())
		ask(c, "k")
		if got := c.Stats(); got.Hits != 1 || got.Misses != 3 || !got.Recorded {
			t.Errorf("%s of a closed cache: %+v", name, got)
		}
	}
}

// What is no look-up counts nothing, nor does any in a cache without RecordStats.
func TestWhatIsNoLookup(t *testing.T) {
	c := recorded()
	for _, c := range []*oncecache.Cache[string, int]{c, new(oncecache.Cache[string, int])} {
		c.Set("k", 1)
		c.SetIfAbsent("k", 2)
		c.SetIfAbsent("l", 2)
		oncecache.CompareAndDelete(c, "k", 3)
		c.Refresh(t.Context(), "k", anew(makes(2)))
		c.Delete("l")
		c.Len()
		for range c.All() {
		}
		c.Clear()
		if got := c.Stats(); got.Hits != 0 || got.Misses != 0 || got.Joined != 0 {
			t.Errorf("%+v", got)
		}
	}
	listens := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: func(string, time.Duration, error) {}})
	if listens.Get("k"); listens.Stats() != (oncecache.Stats{}) {
		t.Errorf("%+v", listens.Stats())
	}
	var zero oncecache.Cache[string, int]
	zero.Set("k", 1)
	zero.Get("k")
	zero.Get("l")
	zero.GetOrCreate("l", with(2))
	if got := zero.Stats(); got != (oncecache.Stats{Created: 1}) {
		t.Errorf("%+v", got)
	}
}

// Keys of interfaces are counted too, once.
func TestLookupsOfInterfaces(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[any, int]{RecordStats: true})
	c.Set("k", 1)
	c.Get("k")
	c.GetOrCreate("k", unexpected(t))
	c.Get(1)
	if got := c.Stats(); got.Hits != 2 || got.Misses != 1 {
		t.Errorf("%+v", got)
	}
}

// The counts of many goroutines are exact when they have ended.
func TestStressLookupsAreCounted(t *testing.T) {
	const each = 5000
	c := recorded()
	c.Set("k", 1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := uint64(0)
			for range each {
				c.Get("k")
				c.Get("absent")
				if now := c.Stats().Hits; now < last {
					t.Errorf("hits go down from %d to %d", last, now)
				} else {
					last = now
				}
			}
		})
	}
	all.Wait()
	if got := c.Stats(); got.Hits != 4*each || got.Misses != 4*each {
		t.Errorf("%+v", got)
	}
}

// Callers that wait for another's creation are counted, each once.
func TestJoinedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := recorded()
		flight := begin(t, c, "k")
		var waiters []*call
		for _, w := range ways {
			if w.name != "Refresh" {
				waiters = append(waiters, startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(2)) }))
			}
		}
		waiters = append(waiters, startCall(func() (int, error) { return c.Wait(t.Context(), "k") }))
		c.Get("k") // which does not wait
		synctest.Wait()
		if got, want := c.Stats(), uint64(len(waiters)); got.Joined != want || got.Misses != want+2 || got.Hits != 0 {
			t.Errorf("%+v, want %d joined", got, want)
		}
		flight.end <- with(1)
		wantAll(t, waiters, result{value: 1})
		if got := c.Stats(); got.Joined != uint64(len(waiters)) || got.Created != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// All who ask for a key while its function runs have joined, also those who have found
// nothing and then came second.
func TestStressJoinedAreCounted(t *testing.T) {
	const rounds, callers = 2000, 4
	c := oncecache.MustNew(oncecache.Config[int, int]{RecordStats: true})
	var all sync.WaitGroup
	var at [rounds]atomic.Int32
	for range callers {
		all.Go(func() {
			for k := range rounds {
				for at[k].Add(1); at[k].Load() < callers; { // all at once
					runtime.Gosched()
				}
				c.GetOrCreate(k, func() (int, error) {
					for waiting := 0; waiting < callers-1; {
						for f := range c.InFlight() {
							waiting = f.Waiting
						}
						runtime.Gosched()
					}
					return 1, nil
				})
			}
		})
	}
	all.Wait()
	if got := c.Stats(); got.Joined != rounds*(callers-1) || got.Misses != rounds*callers || got.Hits != 0 {
		t.Errorf("%+v", got)
	}
}

// Functions that end, and values that expire, at the same moment are counted, each once.
func TestStressEndingsAreCounted(t *testing.T) {
	const callers, rounds = 4, 2000
	c := oncecache.MustNew(oncecache.Config[int, int]{})
	brief := oncecache.MustNew(oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return 0 }})
	for k := range callers {
		c.Set(k, 1)
	}
	together(callers, func(k int) {
		for range rounds {
			c.GetOrCreate(-1-k, func() (int, error) { return 0, errRefused })
			c.Refresh(context.Background(), k, func(context.Context, int, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
			func() {
				defer func() { _ = recover() }()
				c.GetOrCreate(-1-k, func() (int, error) { panic("refused") })
			}()
			brief.Set(k, 1)
		}
	})
	if got := c.Stats(); got.Failed != callers*rounds || got.Created != callers*rounds || got.Panicked != callers*rounds {
		t.Errorf("%+v, want %d each", got, callers*rounds)
	}
	if got := brief.Stats(); got.Expired != callers*rounds {
		t.Errorf("%d expired, want %d", got.Expired, callers*rounds)
	}
}

// Nor is the end of a Refresh or a timeout lost to that of another.
func TestStressEndingsOfOtherKeysAreCounted(t *testing.T) {
	const callers, rounds = 4, 5000
	c := oncecache.MustNew(oncecache.Config[int, int]{})
	late := oncecache.MustNew(oncecache.Config[int, int]{CreateTimeout: 1})
	for k := range callers {
		c.Set(k, 1)
	}
	together(callers, func(k int) {
		for range rounds {
			c.Refresh(context.Background(), k, func(context.Context, int, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
		}
	})
	if got := c.Len(); got != callers {
		t.Errorf("Len() = %d, want %d", got, callers)
	}
	together(callers, func(k int) {
		for range rounds {
			late.GetOrCreateContext(context.Background(), k, func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}
	})
	if got := late.Stats(); got.TimedOut != callers*rounds {
		t.Errorf("%d timed out, want %d", got.TimedOut, callers*rounds)
	}
}

// Nor is a failure or a panic of one batch, which counts for each of its keys, lost to that of another.
func TestStressEndingsOfBatchesAreCounted(t *testing.T) {
	const callers, rounds, keys = 4, 500, 100
	c := oncecache.MustNew(oncecache.Config[int, int]{})
	together(callers, func(i int) {
		mine := make([]int, keys)
		for j := range mine {
			mine[j] = i*keys + j
		}
		for range rounds {
			c.GetOrCreateMany(context.Background(), mine, func(context.Context, []int) (map[int]int, error) { return nil, errRefused })
			func() {
				defer func() { _ = recover() }()
				c.GetOrCreateMany(context.Background(), mine, func(context.Context, []int) (map[int]int, error) { panic("refused") })
			}()
		}
	})
	if got := c.Stats(); got.Failed != callers*rounds*keys || got.Panicked != callers*rounds*keys {
		t.Errorf("%d failed, and %d panicked, want %d each", got.Failed, got.Panicked, callers*rounds*keys)
	}
}

// A batch that has to look again, because it has waited in vain, counts each key once.
func TestBatchesThatLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := recorded()
		ctx, leave := context.WithCancel(t.Context())
		end := make(chan struct{})
		go c.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { <-end; return 0, errRefused })
		synctest.Wait()
		leave()
		synctest.Wait()
		heir := startCall(func() (int, error) {
			got, err := c.GetOrCreateMany(t.Context(), []string{"k"}, func(context.Context, []string) (map[string]int, error) {
				return map[string]int{"k": 2}, nil
			})
			return got["k"], err
		})
		synctest.Wait()
		close(end)
		if got := heir.wait(t); got.value != 2 || got.err != nil {
			t.Error(got)
		}
		if got := c.Stats(); got.Misses != 2 || got.Joined != 1 || got.Hits != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// A Refresh is no look-up, whatever it meets.
func TestRefreshesAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := recorded()
		c.Set("k", 1)
		end := make(chan struct{})
		for range 3 {
			go c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { <-end; return 2, nil }))
		}
		synctest.Wait()
		close(end)
		synctest.Wait()
		if got := c.Stats(); got.Hits+got.Misses+got.Joined != 0 || got.Created != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// created is what OnCreate was told.
type created struct {
	key  string
	took time.Duration
	err  string
}

// OnCreate is told of each function that has ended, once, with what it took, when its
// callers have the result.
func TestOnCreate(t *testing.T) {
	for _, w := range ways {
		for _, end := range []struct {
			name string
			how  func() (int, error)
			err  string
		}{
			{"a value", with(1), ""},
			{"an error", failing, "connection refused"},
			{"a panic", panicking("disk full"), "oncecache: create function panicked: disk full"},
			{"Goexit", exiting, "oncecache: create function called runtime.Goexit"},
		} {
			t.Run(w.name+" ends in "+end.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var got []created
					c := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: func(k string, took time.Duration, err error) {
						text := ""
						if err != nil {
							text = err.Error()
						}
						got = append(got, created{k, took, text})
					}})
					if w.name == "Refresh" {
						c.Set("k", 7)
					}
					<-startCall(func() (int, error) {
						return w.ask(t.Context(), c, "k", func(context.Context, string) (int, error) {
							time.Sleep(time.Second)
							return end.how()
						})
					}).done
					synctest.Wait()
					if want := (created{"k", time.Second, end.err}); len(got) != 1 || got[0] != want {
						t.Errorf("told %v, want %v", got, want)
					}
					s := c.Stats()
					if s.CreateTime != time.Second || s.Created+s.Failed+s.Panicked != 1 {
						t.Errorf("%+v", s)
					}
					if n := oncecache.Pending(c); n != 0 {
						t.Errorf("%d pending", n)
					}
				})
			})
		}
	}
}

// An old value that stays is no error.
func TestOnCreateNotModified(t *testing.T) {
	for name, create := range map[string]func() (int, error){"ErrNotModified": func() (int, error) { return 0, oncecache.ErrNotModified }, "the very value": with(7)} {
		told := 0
		c := oncecache.MustNew(oncecache.Config[string, int]{
			Close: func(string, int) error { return nil },
			OnCreate: func(_ string, _ time.Duration, err error) {
				if told++; err != nil {
					t.Errorf("%s: %v", name, err)
				}
			},
		})
		c.Set("k", 7)
		if v, err := c.Refresh(context.Background(), "k", anew(func(context.Context, string) (int, error) { return create() })); v != 7 || err != nil || told != 1 {
			t.Errorf("%s: %d, %v; told of %d", name, v, err, told)
		}
	}
}

// A batch is told by key. A listener that panics or exits keeps nobody from a result, and
// nothing from being told.
func TestOnCreateEndings(t *testing.T) {
	for name, end := range map[string]func(){
		"returns": func() {}, "panics": func() { panic("disk full") }, "exits": runtime.Goexit,
	} {
		for how, ask := range map[string]func(context.Context, *oncecache.Cache[string, int]){
			"one": func(_ context.Context, c *oncecache.Cache[string, int]) {
				for _, k := range []string{"a", "b", "c"} {
					<-start(c, k, with(1)).done
				}
			},
			"many": func(ctx context.Context, c *oncecache.Cache[string, int]) {
				got, err := c.GetOrCreateMany(ctx, []string{"a", "b", "c"}, func(context.Context, []string) (map[string]int, error) {
					return map[string]int{"a": 1, "b": 2}, nil
				})
				if len(got) != 2 || err != nil {
					t.Error(got, err)
				}
			},
		} {
			t.Run(how+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					told := map[string]int{}
					c := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: func(k string, _ time.Duration, err error) {
						mu.Lock()
						told[k]++
						mu.Unlock()
						if how == "many" && (k == "c") != errors.Is(err, oncecache.ErrNotFound) {
							t.Errorf("%s: %v", k, err)
						}
						end()
					}})
					ask(t.Context(), c)
					synctest.Wait()
					if fmt.Sprint(told) != "map[a:1 b:1 c:1]" {
						t.Errorf("told %v", told)
					}
					err := c.Close(t.Context())
					text := map[string]string{
						"panics": "oncecache: OnCreate function panicked: disk full", "exits": "oncecache: OnCreate function called runtime.Goexit",
					}[name]
					if (text != "") != (err != nil) || err != nil && strings.Count(err.Error(), text) != 3 {
						t.Errorf("Close returns %v, want %q", err, text)
					}
					if n := oncecache.Pending(c); n != 0 {
						t.Errorf("%d pending", n)
					}
				})
			})
		}
	}
}

// The listener runs when waiters have their result; Close waits for it.
func TestOnCreateHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		c := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: func(string, time.Duration, error) { <-proceed }})
		flight := begin(t, c, "k")
		waiter := start(c, "k", unexpected(t))
		synctest.Wait()
		flight.end <- with(1)
		if got := waiter.wait(t); got.value != 1 || got.err != nil {
			t.Error(got)
		}
		wantGet(t, c, "k", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returns %v while the listener runs", err)
		}
		close(proceed)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// The listener may use the cache, also for the key.
func TestT25_OnCreateUsesTheCache(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			var told atomic.Bool
			c = oncecache.MustNew(oncecache.Config[string, int]{
				MaxEntries: 3, Close: func(string, int) error { return nil }, CloseBeforeCreate: true,
				OnCreate: func(k string, _ time.Duration, _ error) {
					if !told.Swap(true) { // also functions that useAll begins are told
						useAll(t, c, k)
					}
				},
			})
			if v, err := w.ask(t.Context(), c, "k", makes(1)); v != 1 || err != nil {
				t.Errorf("%s: %d, %v", w.name, v, err)
			}
			synctest.Wait()
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		})
	}
}

// A creation that a Set, a Delete or a timer has overtaken is told when its function ends,
// and the time of a creation includes the wait for its turn.
func TestOnCreateOfLateFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []created
		c := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: time.Minute, OnCreate: func(k string, took time.Duration, err error) {
			got = append(got, created{k, took, fmt.Sprint(err)})
		}})
		for _, overtake := range []func(){func() { c.Set("k", 3) }, func() { c.Delete("k") }, func() { time.Sleep(time.Hour) }} {
			got = nil
			c.Clear()
			c.GetOrCreate("k", func() (int, error) { time.Sleep(time.Second); overtake(); return 1, nil })
			if len(got) != 1 || got[0].took != time.Second && got[0].took != time.Second+time.Hour || got[0].err != "<nil>" {
				t.Errorf("told %v", got)
			}
		}
		if s := c.Stats(); s.Created != 3 || s.TimedOut != 1 || s.CreateTime != 3*time.Second+time.Hour {
			t.Errorf("%+v", s)
		}
	})
}

// A function that fails after its callers have left is told with its own error, and its time counts.
func TestOnCreateOfAbandonedFunctions(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *oncecache.Cache[string, int], func(context.Context) error){
		"one": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error) {
			c.GetOrCreateContext(ctx, "k", func(ctx context.Context, _ string) (int, error) { return 0, create(ctx) })
		},
		"many": func(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context) error) {
			c.GetOrCreateMany(ctx, []string{"k"}, func(ctx context.Context, _ []string) (map[string]int, error) { return nil, create(ctx) })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []created
			c := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: func(k string, took time.Duration, err error) {
				got = append(got, created{k, took, fmt.Sprint(err)})
			}})
			ctx, leave := context.WithCancel(t.Context())
			ask(ctx, c, func(ctx context.Context) error {
				leave()
				<-ctx.Done()
				time.Sleep(time.Second)
				return errRefused
			})
			time.Sleep(time.Minute)
			synctest.Wait()
			if want := (created{"k", time.Second, errRefused.Error()}); len(got) != 1 || got[0] != want {
				t.Errorf("%s: told %v, want %v", name, got, want)
			}
			if s := c.Stats(); s.Failed != 1 || s.CreateTime != time.Second {
				t.Errorf("%s: %+v", name, s)
			}
		})
	}
}

// wantInfo reports it unless k has a value that became new and expires at these times, and so many
// leases.
func wantInfo(t *testing.T, c *oncecache.Cache[string, int], k string, created, expires time.Time, leases int) {
	t.Helper()
	i, ok := c.Info(k)
	if !ok || !i.Created.Equal(created) || !i.Expires.Equal(expires) || i.Leases != leases {
		t.Errorf("%q has %+v, %t, want it created %v, to expire %v, and %d leases", k, i, ok, created, expires, leases)
	}
}

func wantNoInfo(t *testing.T, c *oncecache.Cache[string, int], k string) {
	t.Helper()
	if i, ok := c.Info(k); ok || i != (oncecache.Info{}) {
		t.Errorf("%q has %+v, %t, want nothing", k, i, ok)
	}
}

// A value is new when it was made, set or found not modified, and not when it was used or a Refresh
// failed. It expires a TTL later.
func TestInfo(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		do    func(c *oncecache.Cache[string, int])
		isNew bool
	}{
		"Set":     {func(c *oncecache.Cache[string, int]) { c.Set("k", 2) }, true},
		"Refresh": {func(c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(makes(2))) }, true},
		"Refresh that finds it not modified": {func(c *oncecache.Cache[string, int]) {
			c.Refresh(ctx, "k", func(context.Context, string, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
		}, true},
		"Delete and Set":             {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.Set("k", 2) }, true},
		"Delete and GetOrCreate":     {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.GetOrCreate("k", with(2)) }, true},
		"Delete and SetIfAbsent":     {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.SetIfAbsent("k", 2) }, true},
		"Refresh that fails":         {func(c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(refusing)) }, false},
		"Get":                        {func(c *oncecache.Cache[string, int]) { c.Get("k") }, false},
		"GetOrCreate":                {func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) }, false},
		"SetIfAbsent":                {func(c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 2) }, false},
		"Acquire":                    {func(c *oncecache.Cache[string, int]) { l, _ := c.Acquire(ctx, "k", refusing); l.Release() }, false},
		"CompareAndDelete of others": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 7) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: time.Hour})
				time.Sleep(time.Minute)
				begun := time.Now()
				c.GetOrCreate("k", with(1))
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				tt.do(c)
				if tt.isNew {
					begun = time.Now()
				}
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				time.Sleep(time.Until(begun.Add(time.Hour)) - 1)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				wantNoInfo(t, c, "k")
			})
		})
	}
}

// A value that is set again while it is there, or that a Refresh returns once more, is as if it was
// new.
func TestInfoOfTheVeryValue(t *testing.T) {
	for name, again := range map[string]func(c *oncecache.Cache[string, int]){
		"Set":     func(c *oncecache.Cache[string, int]) { c.Set("k", 1) },
		"Refresh": func(c *oncecache.Cache[string, int]) { c.Refresh(context.Background(), "k", anew(makes(1))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: time.Hour, Close: func(string, int) error {
					t.Error("the value is closed")
					return nil
				}})
				c.Set("k", 1)
				time.Sleep(59 * time.Minute)
				again(c)
				begun := time.Now()
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
			})
		})
	}
}

// A function says when each value expires.
func TestInfoOfTTLFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lasts := []time.Duration{0, time.Hour, time.Second + 1, math.MaxInt64}
		c := oncecache.MustNew(config{TTLFunc: func(_ string, v int) time.Duration { return lasts[v] }})
		begun := time.Now()
		c.Set("k", 1)
		wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
		c.Set("k", 2)
		wantInfo(t, c, "k", begun, begun.Add(time.Second+time.Millisecond), 0) // it is rounded up
		c.Set("k", 3)
		wantInfo(t, c, "k", begun, time.Time{}, 0)
		c.Set("k", 0)
		wantNoInfo(t, c, "k")
	})
}

// Each setting that gives values a place in the order makes the cache know when they were created;
// only a TTL says when they expire.
func TestInfoKnowsWhatTheSettingsNeed(t *testing.T) {
	one := func(string, int) int64 { return 1 }
	for name, tt := range map[string]struct {
		config
		created, expires bool
	}{
		"none":        {config{}, false, false},
		"Close":       {config{Close: func(string, int) error { return nil }}, false, false},
		"OnRemove":    {config{OnRemove: func(string, int, oncecache.Reason, error) {}}, false, false},
		"RecordStats": {config{RecordStats: true}, false, false},
		"MaxEntries":  {config{MaxEntries: 5}, true, false},
		"MaxWeight":   {config{MaxWeight: 5, Weight: one}, true, false},
		"IdleTimeout": {config{IdleTimeout: time.Hour}, true, false},
		"TTL":         {config{TTL: time.Hour}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(tt.config)
				var created, expires time.Time
				if tt.created {
					created = time.Now()
				}
				if tt.expires {
					expires = time.Now().Add(time.Hour)
				}
				c.Set("k", 1)
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", created, expires, 0)
				c.Close(t.Context())
			})
		})
	}
	var zero oncecache.Cache[string, int]
	wantNoInfo(t, &zero, "k")
	zero.Set("k", 1)
	wantInfo(t, &zero, "k", time.Time{}, time.Time{}, 0)
}

// Leases are counted from Acquire to Release, also those of a Refresh that is under way, and of
// many goroutines at once.
func TestInfoCountsLeases(t *testing.T) {
	for name, settings := range map[string]config{
		"Close":      {Close: func(string, int) error { return nil }},
		"OnRemove":   {OnRemove: func(string, int, oncecache.Reason, error) {}},
		"MaxEntries": {MaxEntries: 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(settings)
				leases := func(want int) {
					t.Helper()
					synctest.Wait()
					if i, ok := c.Info("k"); i.Leases != want || !ok {
						t.Errorf("%d leases, %t, want %d", i.Leases, ok, want)
					}
				}
				first, _ := c.Acquire(t.Context(), "k", makes(1))
				leases(1)
				second, _ := c.Acquire(t.Context(), "k", refusing)
				leases(2)
				first.Release()
				leases(1)
				first.Release() // nothing happens
				leases(1)

				end := make(chan struct{})
				go c.Refresh(t.Context(), "k", func(_ context.Context, _ string, old int, _ bool) (int, error) {
					<-end
					return 0, oncecache.ErrNotModified
				})
				leases(2)
				close(end)
				leases(1)

				const many = 8
				var held [many]oncecache.Lease[string, int]
				together(many, func(i int) { // often enough that two of them collide, and are counted apart
					for range 20_000 {
						held[i].Release()
						held[i], _ = c.Acquire(context.Background(), "k", refusing)
					}
				})
				leases(1 + many)
				together(many, func(i int) { held[i].Release() })
				leases(1)

				c.Set("k", 2) // the lease of the old value is none of the new one
				leases(0)
				second.Release()
				leases(0)
				c.Close(t.Context())
			})
		})
	}
}

// A batch holds its values until it returns.
func TestInfoCountsLeasesOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		c.Set("k", 1)
		end := make(chan struct{})
		go c.GetOrCreateMany(t.Context(), []string{"k", "l"}, func(context.Context, []string) (map[string]int, error) {
			<-end
			return nil, nil
		})
		synctest.Wait()
		if i, _ := c.Info("k"); i.Leases != 1 {
			t.Errorf("%d leases while the batch needs it", i.Leases)
		}
		close(end)
		synctest.Wait()
		if i, _ := c.Info("k"); i.Leases != 0 {
			t.Errorf("%d leases when the batch has returned", i.Leases)
		}
		c.Close(t.Context())
	})
}

// A key without a value has no Info, why ever that is.
func TestInfoOfNoValue(t *testing.T) {
	for name, make := range map[string]func(c *oncecache.Cache[string, int]){
		"absent":           func(*oncecache.Cache[string, int]) {},
		"deleted":          func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Delete("k") },
		"being created":    func(c *oncecache.Cache[string, int]) { go c.GetOrCreate("k", halfAnHour) },
		"expired":          func(c *oncecache.Cache[string, int]) { c.Set("k", 1); time.Sleep(time.Hour) },
		"an error is kept": func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) },
		"closed":           func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Close(context.Background()) },
		"being created after it has expired": func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
			time.Sleep(59 * time.Minute)
			go c.Refresh(context.Background(), "k", anew(func(context.Context, string) (int, error) { return halfAnHour() }))
			time.Sleep(time.Minute)
		},
		"leased, and deleted": func(c *oncecache.Cache[string, int]) {
			c.Acquire(context.Background(), "k", makes(1))
			c.Delete("k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: time.Hour, ErrorTTL: -1, Close: func(string, int) error { return nil }})
				make(c)
				synctest.Wait()
				wantNoInfo(t, c, "k")
				time.Sleep(time.Hour)
			})
		})
	}
}

// halfAnHour is a create function that takes a while.
func halfAnHour() (int, error) { time.Sleep(30 * time.Minute); return 7, nil }

// While a value is refreshed, Info is that of the old one.
func TestInfoDuringRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTL: time.Hour})
		begun := time.Now()
		c.Set("k", 1)
		time.Sleep(10 * time.Minute)
		go c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return halfAnHour() }))
		synctest.Wait()
		wantInfo(t, c, "k", begun, begun.Add(time.Hour), 1)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		begun = time.Now()
		wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
	})
}

// TTLJitter shows in Expires, and that is when the value goes.
func TestInfoShowsJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTL: time.Hour, TTLJitter: 0.5})
		seen := map[time.Time]bool{}
		for range 20 {
			c.Set("k", 1)
			i, _ := c.Info("k")
			if lasts := time.Until(i.Expires); lasts < 30*time.Minute || lasts > time.Hour {
				t.Fatalf("the value lasts %v", lasts)
			}
			seen[i.Expires] = true
			if !i.Created.Equal(time.Now()) {
				t.Errorf("created %v", i.Created)
			}
		}
		if len(seen) < 10 {
			t.Errorf("%d times of 20 values", len(seen))
		}
		i, _ := c.Info("k")
		time.Sleep(time.Until(i.Expires) - 1)
		synctest.Wait()
		if _, ok := c.Get("k"); !ok {
			t.Error("the value has gone before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, ok := c.Get("k"); ok {
			t.Error("the value is there after its time")
		}
	})
}

// What a creation took does not include what follows it: a Close function of the value that it replaces.
func TestCreationsTakeNoLongerThanTheirFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		c := oncecache.MustNew(oncecache.Config[string, int]{
			Close:    func(string, int) error { time.Sleep(time.Minute); return nil },
			OnCreate: func(_ string, took time.Duration, _ error) { told = append(told, took) },
		})
		c.Set("k", 1)
		v, err := c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) {
			time.Sleep(time.Second)
			return 2, nil
		}))
		if took := c.Stats().CreateTime; v != 2 || err != nil || took != time.Second {
			t.Errorf("%d, %v, which took %v", v, err, took)
		}
		if err := c.Close(t.Context()); err != nil || len(told) != 1 || told[0] != time.Second {
			t.Errorf("told %v; closed with %v", told, err)
		}
	})
}
