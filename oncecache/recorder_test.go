//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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
