//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// How a creation may end, and what that is for its owner and for those who
// waited.
var endings = []struct {
	name   string
	end    func() (int, error)
	owner  result
	waiter func(result) error // what is wrong with it
}{
	{"value", with(7), result{value: 7}, func(r result) error { return differs(r, result{value: 7}) }},
	{"error", failing, result{err: errRefused}, func(r result) error { return differs(r, result{err: errRefused}) }},
	{"Goexit", exiting, result{exited: true}, func(r result) error {
		return differs(r, result{err: oncecache.ErrGoexit})
	}},
	{"panic", diskFull, result{panicked: "disk full"}, func(r result) error {
		p, ok := r.err.(*oncecache.PanicError)
		if !ok || p.Value != "disk full" || !strings.Contains(string(p.Stack), "oncecache_test.diskFull(") {
			return fmt.Errorf("got %+v, want a PanicError with the value and the stack", r)
		}
		return differs(result{value: r.value, panicked: r.panicked, exited: r.exited}, result{})
	}},
}

func differs(got, want result) error {
	if got != want {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	return nil
}

// Reported bug 7, singleflight, go-zero, Hugo, Trickster, lazycache: a panic leaves waiters hanging.
// Reported bug 8, Moka, lazycache, go-zero, sturdyc: after a panic, no value and no error.
// Reported bug 9, singleflight, minio-go: Goexit leaves waiters hanging or looks like success.
// T7 Go #33519, lazycache #10; T8 moka #43; T9 Go #52557; T10 Go #60060; T34:
// however a creation ends, its owner sees that as from any function, all who
// wait are woken and get a value or an error, and the key is free again.
func TestEndings(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				owner := begin(t, &c, "k")
				var waiters []*call
				for range 10 {
					waiters = append(waiters, start(&c, "k", unexpected(t)))
				}
				synctest.Wait() // all of them wait
				wantLen(t, &c, 0)
				owner.end <- tt.end

				if err := differs(owner.wait(t), tt.owner); err != nil {
					t.Errorf("owner: %v", err)
				}
				for _, w := range waiters {
					if err := tt.waiter(w.wait(t)); err != nil {
						t.Errorf("waiter: %v", err)
					}
				}
				want := 8
				if tt.name == "value" {
					want = 7
				}
				if v, err := c.GetOrCreate("k", with(8)); v != want || err != nil {
					t.Errorf("the next caller gets %d, %v, want %d", v, err, want)
				}
				wantLen(t, &c, 1)
			})
		})
	}
}

// Reported bug 4, dart: a caller that knows of a failure joins it.
// T4 dart #69: a caller that knows of a failure does not join the creation
// that failed.
func TestT4_FailureIsForgottenBeforeItIsKnown(t *testing.T) {
	var c oncecache.Cache[string, int]
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		var calls atomic.Int32
		together(4, func(int) {
			ask := func() (int, error) {
				return c.GetOrCreate("k", func() (int, error) {
					calls.Add(1)
					return 0, fmt.Errorf("attempt %d", calls.Load())
				})
			}
			_, first := ask()
			_, second := ask()
			if first == second {
				t.Errorf("two calls, one after the other, share %q", first)
			}
		})
		wantLen(t, &c, 0)
	}
}

// Reported bug 6, Otter: invalidated in flight: no value and no error.
// T6 otter #137: a value beside an error is no value.
func TestT6_ErrorWins(t *testing.T) {
	var c oncecache.Cache[string, int]
	if v, err := c.GetOrCreate("k", failing); v != 0 || err != errRefused {
		t.Error(v, err)
	}
	wantAbsent(t, &c, "k")
}

func TestPanicError(t *testing.T) {
	e := &oncecache.PanicError{Value: fmt.Errorf("open: %w", errRefused)}
	if !errors.Is(e, errRefused) {
		t.Error("the panic's error is not in the chain")
	}
	if want := "oncecache: create function panicked: open: connection refused"; e.Error() != want {
		t.Errorf("%q, want %q", e, want)
	}
	if (&oncecache.PanicError{Value: "text"}).Unwrap() != nil {
		t.Error("a text was unwrapped")
	}
}

// A panic(nil) is a panic, and never a zero value without an error.
func TestPanicNil(t *testing.T) {
	for _, setting := range []string{"panicnil=0", "panicnil=1"} {
		t.Setenv("GODEBUG", setting)
		var c oncecache.Cache[string, int]
		r := start(&c, "k", panicking(nil)).wait(t)
		if r.panicked == nil && r.err == nil {
			t.Errorf("%s: got %+v", setting, r)
		}
		wantLen(t, &c, 0)
	}
}

// T23: a create function may ask for other keys.
func TestCreateAsksForOtherKeys(t *testing.T) {
	var c oncecache.Cache[string, int]
	fib := func(n int) string { return fmt.Sprint("fib ", n) }
	var get func(n int) (int, error)
	get = func(n int) (int, error) {
		return c.GetOrCreate(fib(n), func() (int, error) {
			if n < 2 {
				return n, nil
			}
			a, errA := get(n - 1)
			b, errB := get(n - 2)
			return a + b, errors.Join(errA, errB)
		})
	}
	if v, err := get(40); v != 102334155 || err != nil {
		t.Error(v, err)
	}
	wantLen(t, &c, 41)
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// T25 golang-lru #230: a create function may call every method, for its own
// key too, but GetOrCreate.
func TestT25_CreateCallsTheCache(t *testing.T) {
	var c oncecache.Cache[string, int]
	c.Set("other", 1)
	v, err := c.GetOrCreate("k", func() (int, error) {
		wantLen(t, &c, 1)
		wantAbsent(t, &c, "k")
		if stored(c.SetIfAbsent("k", 2)) {
			t.Error("SetIfAbsent in flight stored")
		}
		if oncecache.CompareAndDelete(&c, "k", 0) {
			t.Error("CompareAndDelete in flight removed")
		}
		for k := range c.Keys() {
			c.Delete(k)
		}
		wantLen(t, &c, 0)
		if old, deleted := c.Delete("k"); old != 0 || deleted {
			t.Error(old, deleted)
		}
		if old, replaced := c.Set("k", 3); old != 0 || replaced {
			t.Error(old, replaced)
		}
		return 4, nil
	})
	// Set came after Delete, so it found no creation to end.
	if v != 4 || err != nil {
		t.Error(v, err)
	}
	wantGet(t, &c, "k", 3)
	wantLen(t, &c, 1)
}

// Reported bug 24, Caffeine, jellydator/ttlcache, xsync: a slow load holds up other keys.
// T24 Caffeine #672, ttlcache #107, xsync #116: a slow creation delays no
// other key, not even those of its bucket, nor a resize of the table.
func TestT24_SlowCreationDelaysNoOtherKey(t *testing.T) {
	var c oncecache.Cache[string, int]
	slow := begin(t, &c, "slow")
	const n = 10_000 // far more than the buckets of a new table
	for i := range n {
		k := fmt.Sprint("key ", i)
		if v, err := c.GetOrCreate(k, with(i)); v != i || err != nil {
			t.Fatal(v, err)
		}
	}
	wantLen(t, &c, n)
	for i := range n {
		c.Delete(fmt.Sprint("key ", i)) // shrinks it again
	}
	wantLen(t, &c, 0)
	slow.end <- with(1)
	if r := slow.wait(t); r != (result{value: 1}) {
		t.Error(r)
	}
	wantGet(t, &c, "slow", 1)
}

// Reported bug 35, uv, quick_cache: a wake-up comes before its waiter.
// T35 uv #3987, quick_cache #40: no wake-up is lost, whenever a waiter comes.
func TestT35_EveryWaiterIsWoken(t *testing.T) {
	const callers = 1000
	var c oncecache.Cache[string, *int]
	var created atomic.Int32
	var got [callers]*int
	together(callers, func(i int) {
		var err error
		got[i], err = c.GetOrCreate("k", func() (*int, error) {
			created.Add(1)
			return new(int), nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	if n := created.Load(); n != 1 {
		t.Errorf("%d creations, want 1", n)
	}
	for i, p := range got {
		if p == nil || p != got[0] {
			t.Fatalf("caller %d got %p, caller 0 got %p", i, p, got[0])
		}
	}
}

// Reported bug 35, uv, quick_cache: a wake-up comes before its waiter.
// The same with everyone known to wait before the creation ends.
func TestT35_EverySleeperIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		owner := begin(t, &c, "k")
		var waiters []*call
		for range 999 {
			waiters = append(waiters, start(&c, "k", unexpected(t)))
		}
		synctest.Wait()
		owner.end <- with(5)
		for _, w := range waiters {
			if r := w.wait(t); r != (result{value: 5}) {
				t.Fatal(r)
			}
		}
	})
}

// errList is an error that cannot be compared, like those of go/scanner.
type errList []string

func (e errList) Error() string { return fmt.Sprint([]string(e)) }

// An error need not be comparable.
func TestErrorsThatCannotBeCompared(t *testing.T) {
	within(t, time.Minute, func() {
		for name, ctx := range contexts(t) {
			var c oncecache.Cache[string, int]
			want := errList{"refused"}
			_, err := c.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { return 0, want })
			if got := errList(nil); !errors.As(err, &got) {
				t.Errorf("%s: %v", name, err)
			}
			_, err = c.GetOrCreateMany(ctx, []string{"a", "b"}, func(context.Context, []string) (map[string]int, error) { return nil, want })
			if got := errList(nil); !errors.As(err, &got) {
				t.Errorf("%s: %v", name, err)
			}
			wantEven(t, &c)
		}
	})
}

// inFlight runs f in a bubble with a creation of "k" in flight, for which two
// callers wait beside its owner.
func inFlight(t *testing.T, f func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		owner := begin(t, &c, "k")
		waiters := []*call{start(&c, "k", unexpected(t)), start(&c, "k", unexpected(t))}
		synctest.Wait()
		f(t, &c, owner, waiters)
		if creating, _ := oncecache.Creating(&c); creating != 0 {
			t.Errorf("%d creations counted at the end", creating)
		}
	})
}

func wantAll(t *testing.T, calls []*call, want result) {
	t.Helper()
	for _, k := range calls {
		if got := k.wait(t); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestInFlightIsAbsent(t *testing.T) {
	inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
		wantAbsent(t, c, "k")
		wantLen(t, c, 0)
		if stored(c.SetIfAbsent("k", 2)) {
			t.Error("SetIfAbsent ended a creation")
		}
		if oncecache.CompareAndDelete(c, "k", 0) {
			t.Error("CompareAndDelete found a value")
		}
		owner.end <- with(1)
		wantAll(t, append(waiters, owner.call), result{value: 1})
		wantGet(t, c, "k", 1)
		wantLen(t, c, 1)
	})
}

// T2: whoever takes part in a creation that Set ends holds what Set stored.
// Waiters do not wait for the create function any longer.
func TestSetInFlight(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
				if old, replaced := c.Set("k", 42); old != 0 || replaced {
					t.Errorf("Set reports %d, %t", old, replaced)
				}
				wantAll(t, waiters, result{value: 42})
				wantLen(t, c, 1)

				owner.end <- tt.end
				want := result{value: 42}
				if tt.owner.panicked != nil || tt.owner.exited {
					want = tt.owner // these are not the cache's to swallow
				}
				wantAll(t, []*call{owner.call}, want)
				wantGet(t, c, "k", 42)
				wantLen(t, c, 1)
			})
		})
	}
}

// The first Set ends the creation; what comes later changes what is stored,
// and not what its callers get.
func TestSetSetInFlight(t *testing.T) {
	inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
		c.Set("k", 42)
		if old, replaced := c.Set("k", 43); old != 42 || !replaced {
			t.Errorf("Set reports %d, %t", old, replaced)
		}
		if old, deleted := c.Delete("k"); old != 43 || !deleted {
			t.Errorf("Delete reports %d, %t", old, deleted)
		}
		owner.end <- with(1)
		wantAll(t, append(waiters, owner.call), result{value: 42})
		wantAbsent(t, c, "k")
		wantLen(t, c, 0)
	})
}

// Reported bug 26, Guava, Caffeine: a load is stored after its invalidation.
// T3 Go #31420, lazycache #17; T26 Guava #1881: those who asked before Delete
// get the result, those who ask later start anew without waiting, and the
// result is neither stored nor does it remove its successor.
func TestDeleteInFlight(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
				if old, deleted := c.Delete("k"); old != 0 || deleted {
					t.Errorf("Delete reports %d, %t", old, deleted)
				}
				wantLen(t, c, 0)
				if v, err := c.GetOrCreate("k", with(50)); v != 50 || err != nil {
					t.Errorf("the next caller gets %d, %v", v, err)
				}
				wantLen(t, c, 1)

				owner.end <- tt.end
				wantAll(t, []*call{owner.call}, tt.owner)
				for _, w := range waiters {
					if err := tt.waiter(w.wait(t)); err != nil {
						t.Errorf("waiter: %v", err)
					}
				}
				wantGet(t, c, "k", 50)
				wantLen(t, c, 1)
			})
		})
	}
}

// After Delete, a Set is none of the forgotten creation's business.
func TestDeleteSetInFlight(t *testing.T) {
	inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
		c.Delete("k")
		if old, replaced := c.Set("k", 42); old != 0 || replaced {
			t.Errorf("Set reports %d, %t", old, replaced)
		}
		synctest.Wait()
		owner.end <- with(1)
		wantAll(t, append(waiters, owner.call), result{value: 1})
		wantGet(t, c, "k", 42)
	})
}

// Reported bug 3, singleflight, lazycache: a forgotten call removes its successor.
// Two creations of one key overlap after Delete, and end in either order.
func TestDeleteCreateInFlight(t *testing.T) {
	for _, first := range []string{"old", "new"} {
		inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
			c.Delete("k")
			heir := begin(t, c, "k")
			joins := start(c, "k", unexpected(t))
			synctest.Wait()
			if first == "old" {
				owner.end <- failing
				owner.wait(t)
				heir.end <- with(2)
			} else {
				heir.end <- with(2)
				heir.wait(t)
				owner.end <- failing
			}
			wantAll(t, append(waiters, owner.call), result{err: errRefused})
			wantAll(t, []*call{heir.call, joins}, result{value: 2})
			wantGet(t, c, "k", 2)
			wantLen(t, c, 1)
		})
	}
}

// The interleavings within Set: the creation ends after Set has put its entry
// in place and before it has ended the creation. It counts as if it had ended
// just before Set.
func TestCreationEndsWithinSet(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
				finish := oncecache.StartSet(c, "k", 42)
				wantGet(t, c, "k", 42)
				owner.end <- tt.end
				wantAll(t, []*call{owner.call}, tt.owner)
				for _, w := range waiters {
					if err := tt.waiter(w.wait(t)); err != nil {
						t.Errorf("waiter: %v", err)
					}
				}
				wantOld := tt.owner.value
				if old, replaced := finish(); old != wantOld || replaced != (tt.name == "value") {
					t.Errorf("Set reports %d, %t, want %d", old, replaced, wantOld)
				}
				wantGet(t, c, "k", 42)
				wantLen(t, c, 1)
			})
		})
	}
}

// The same within Delete: it returns the value, or there was none.
func TestCreationEndsWithinDelete(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
				finish := oncecache.StartDelete(c, "k")
				wantAbsent(t, c, "k")
				owner.end <- tt.end
				wantAll(t, []*call{owner.call}, tt.owner)
				wantOld := tt.owner.value
				if old, deleted := finish(); old != wantOld || deleted != (tt.name == "value") {
					t.Errorf("Delete reports %d, %t, want %d", old, deleted, wantOld)
				}
				wantAbsent(t, c, "k")
				wantLen(t, c, 0)
			})
		})
	}
}

// A second Set passes a first that is stalled half-way. The callers get the
// value of the one that put its entry in the creation's place.
func TestSetPassesStalledSet(t *testing.T) {
	inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
		finish := oncecache.StartSet(c, "k", 42)
		if old, replaced := c.Set("k", 43); old != 42 || !replaced {
			t.Errorf("the second Set reports %d, %t", old, replaced)
		}
		if old, replaced := finish(); old != 0 || replaced {
			t.Errorf("the first Set reports %d, %t", old, replaced)
		}
		owner.end <- with(1)
		wantAll(t, append(waiters, owner.call), result{value: 42})
		wantGet(t, c, "k", 43)
	})
}

// A Get that found the entry before Delete never sees a result that came
// after it: Delete said that there was no value.
func TestStalledGetDoesNotSeeForgottenResult(t *testing.T) {
	inFlight(t, func(t *testing.T, c *oncecache.Cache[string, int], owner *creation, waiters []*call) {
		finish := oncecache.StartGet(c, "k")
		c.Delete("k")
		owner.end <- with(1)
		wantAll(t, append(waiters, owner.call), result{value: 1})
		if v, ok := finish(); v != 0 || ok {
			t.Errorf("Get = %d, %t: that value was never in the cache", v, ok)
		}
	})
}

// A Get takes effect when it finds the entry: one that found a value returns
// it, although another has taken its place meanwhile.
func TestStalledGetReturnsWhatItFound(t *testing.T) {
	var c oncecache.Cache[string, int]
	c.Set("k", 1)
	finish := oncecache.StartGet(&c, "k")
	c.Set("k", 2)
	if v, ok := finish(); v != 1 || !ok {
		t.Errorf("Get = %d, %t, want the value it found", v, ok)
	}
}

// A Close function that is told of a value finds it counted.
func TestStatsCountWhatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *oncecache.Cache[string, int]
		c = oncecache.MustNew(oncecache.Config[string, int]{Close: func(_ string, v int) error {
			if got := c.Stats().Created; got != uint64(v) {
				t.Errorf("%d created when %d is closed", got, v)
			}
			return nil
		}})
		c.GetOrCreate("one", func() (int, error) {
			c.Set("one", 0) // takes its place
			return 1, nil
		})
		c.GetOrCreateMany(t.Context(), []string{"two"}, func(context.Context, []string) (map[string]int, error) {
			c.Set("two", 0)
			return map[string]int{"two": 2}, nil
		})
		synctest.Wait() // what creates many closes after it has answered
		if got := c.Stats().Closed; got != 2 {
			t.Errorf("%d closed", got)
		}
	})
}

// Reported bug 13, Tailscale, net/http: a late caller gets the cancelled call's error.
// T13 tailscale #18919, T14 janos #4: when all have left, the creation is
// cancelled, but it stays the only one. An heir waits for its end, takes a
// late success (T21), and otherwise creates anew; it never gets the error of
// the creation that was cancelled.
func TestT13_Heirs(t *testing.T) {
	for _, tt := range endings {
		for _, plain := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c oncecache.Cache[string, int]
					p := newPilot()
					a := asks(t, &c, p.create)
					flight := <-p.ctx
					b := asks(t, &c, nil)
					synctest.Wait()
					a.leave()
					b.leave()
					wantAll(t, []*call{a.call, b.call}, left)
					synctest.Wait()
					if !cancelled(flight) {
						t.Fatal("the creation is not cancelled")
					}

					next := newPilot()
					heirs := []*call{asks(t, &c, next.create).call, asks(t, &c, next.create).call}
					if plain {
						heirs = []*call{begins(&c, next), begins(&c, next)}
					}
					goner := asks(t, &c, nil)
					synctest.Wait()
					goner.leave()
					wantAll(t, []*call{goner.call}, left)
					if next.began != 0 {
						t.Fatal("an heir creates while the first creation runs")
					}
					wantLen(t, &c, 0)

					p.end <- tt.end
					synctest.Wait()
					want := result{value: 7}
					if tt.name != "value" {
						if next.began != 1 {
							t.Fatalf("%d heirs create, want 1", next.began)
						}
						next.end <- with(8)
						want = result{value: 8}
					}
					wantAll(t, heirs, want)
					wantGet(t, &c, "k", want.value)
					wantLen(t, &c, 1)
				})
			})
		}
	}
}

// begins asks by a plain GetOrCreate with a function of p.
func begins(c *oncecache.Cache[string, int], p *pilot) *call {
	return start(c, "k", func() (int, error) {
		p.began++
		return (<-p.end)()
	})
}

// Reported bug 17, pgx, puddle: dials are given up with their requests.
// T17 puddle #21: what has begun is finished if one caller never leaves: a call on a goroutine
// of its own, whose context does not end.
func TestT17_CreationGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		p := newPilot()
		type tenant struct{}
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), tenant{}, 7))
		go func() {
			if v, err := c.GetOrCreateContext(context.WithoutCancel(ctx), "k", p.create); v != 1 || err != nil {
				t.Errorf("the call that stays gets %d, %v", v, err)
			}
		}()
		flight := <-p.ctx
		asker := asks(t, &c, nil)
		synctest.Wait()
		leave()
		asker.leave()
		wantAll(t, []*call{asker.call}, left)
		synctest.Wait()
		if cancelled(flight) {
			t.Error("the creation is cancelled")
		}
		if flight.Value(tenant{}) != 7 {
			t.Error("the creation has lost the values of its context")
		}
		p.end <- with(1)
		synctest.Wait()
		wantGet(t, &c, "k", 1)
	})
}

// Delete hides a creation, and those who take part in it may leave as before.
func TestDeleteInFlightThenLeave(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				p := newPilot()
				a := asks(t, &c, p.create)
				flight := <-p.ctx
				b := asks(t, &c, nil)
				synctest.Wait()
				c.Delete("k")
				a.leave()
				wantAll(t, []*call{a.call}, left)
				if cancelled(flight) {
					t.Error("the creation is cancelled while somebody waits")
				}
				b.leave()
				wantAll(t, []*call{b.call}, left)
				synctest.Wait()
				if !cancelled(flight) {
					t.Error("the creation is not cancelled")
				}
				if v, err := c.GetOrCreate("k", with(50)); v != 50 || err != nil {
					t.Error(v, err)
				}
				p.end <- tt.end
				synctest.Wait()
				wantGet(t, &c, "k", 50)
			})
		})
	}
}

// sinceOf returns since when each key is being created.
func sinceOf(c *oncecache.Cache[string, int]) map[string]time.Time {
	all := map[string]time.Time{}
	for f := range c.InFlight() {
		all[f.Key] = f.Since
	}
	return all
}

// A creation began when its caller found nothing, whichever method that called and whatever the
// cache is set to: not when the cache was made, when the creation before it began, or when another
// caller joined. What the recorder is told agrees.
func TestInFlightSince(t *testing.T) {
	type cache = *oncecache.Cache[string, int]
	type function = func() (int, error)
	within := func(f function) func(context.Context, string) (int, error) {
		return func(context.Context, string) (int, error) { return f() }
	}
	settings := map[string]config{
		"default":       {},
		"Close":         {Close: func(string, int) error { return nil }},
		"MaxEntries":    {MaxEntries: 10},
		"IdleTimeout":   {IdleTimeout: time.Hour},
		"TTL":           {TTLFunc: func(string, int) time.Duration { return time.Hour }},
		"ErrorTTL":      {ErrorTTLFunc: func(string, error) time.Duration { return time.Hour }},
		"CreateTimeout": {CreateTimeout: time.Hour},
		"turns":         {Close: func(string, int) error { return nil }, CloseBeforeCreate: true},
	}
	for of, s := range settings {
		for name, create := range map[string]func(c cache, f function){
			"GetOrCreate":        func(c cache, f function) { c.GetOrCreate("k", f) },
			"GetOrCreateContext": func(c cache, f function) { c.GetOrCreateContext(context.Background(), "k", within(f)) },
			"GetOrCreateContext that may leave": func(c cache, f function) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				c.GetOrCreateContext(ctx, "k", within(f))
			},
			"Acquire": func(c cache, f function) {
				l, _ := c.Acquire(context.Background(), "k", within(f))
				l.Release()
			},
			"GetOrCreateMany": func(c cache, f function) {
				c.GetOrCreateMany(context.Background(), []string{"k", "l"}, func(_ context.Context, keys []string) (map[string]int, error) {
					v, err := f()
					return map[string]int{"k": v, "l": v}, err
				})
			},
			"Refresh of nothing": func(c cache, f function) { c.Refresh(context.Background(), "k", anew(within(f))) },
			"Refresh": func(c cache, f function) {
				c.Set("k", 0)
				c.Refresh(context.Background(), "k", anew(within(f)))
			},
			"Reload": func(c cache, f function) {
				c.Set("k", 0)
				c.Refresh(context.Background(), "k", func(context.Context, string, int, bool) (int, error) { return f() })
			},
		} {
			t.Run(of+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := s
					var took []time.Duration
					s.RecordStats, s.OnCreate = true, func(_ string, d time.Duration, _ error) { took = append(took, d) }
					c := oncecache.MustNew(s)
					keys := 1
					if name == "GetOrCreateMany" {
						keys = 2
					}
					for range 3 {
						time.Sleep(time.Minute)
						began := time.Now()
						end := make(chan struct{})
						calls := []*call{startCall(func() (int, error) {
							create(c, func() (int, error) { <-end; return 1, nil })
							return 0, nil
						})}
						for range 3 { // alone, and when others have joined
							synctest.Wait()
							all := sinceOf(c)
							if !all["k"].Equal(began) || len(all) != keys || keys == 2 && !all["l"].Equal(began) {
								t.Errorf("%v are being created, want since %v", all, began)
							}
							time.Sleep(time.Second)
							calls = append(calls, startCall(func() (int, error) { return c.Wait(t.Context(), "k") }))
						}
						close(end)
						for _, x := range calls {
							x.wait(t)
						}
						synctest.Wait()
						if all := sinceOf(c); len(all) != 0 {
							t.Errorf("%v are being created in the end", all)
						}
						if !slices.Equal(took, slices.Repeat([]time.Duration{3 * time.Second}, keys)) {
							t.Errorf("OnCreate was told of %v", took)
						}
						took = nil
						c.Clear()
						synctest.Wait()
					}
					if got, want := c.Stats().CreateTime, time.Duration(9*keys)*time.Second; got != want {
						t.Errorf("CreateTime is %v, want %v", got, want)
					}
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A Renew began with the first use of the value that was due.
func TestInFlightSinceOfARenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		c := oncecache.MustNew(renewing(func(context.Context, string, int) (int, error) { <-end; return 2, nil }))
		c.Set("k", 1)
		time.Sleep(45 * time.Second)
		began := time.Now()
		wantGet(t, c, "k", 1)
		time.Sleep(5 * time.Second)
		wantGet(t, c, "k", 1)
		if all := sinceOf(c); len(all) != 1 || !all["k"].Equal(began) {
			t.Errorf("%v are being created, want since %v", all, began)
		}
		close(end)
		synctest.Wait()
		wantGet(t, c, "k", 2)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An error that comes after Set has ended its creation is nobody's, and takes up no room.
func TestErrorThatComesAfterSetEvictsNothing(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, ErrorTTL: -1})
	v, err := c.GetOrCreate(1, func() (int, error) {
		c.Set(1, 10)
		return 0, errors.New("connection refused")
	})
	if v != 10 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	if _, ok := c.Get(1); !ok {
		t.Error("the value of Set is evicted")
	}
}

// A call that ends in a panic has not used the value that Set has given to its creation.
func TestCallThatPanicsUsesNoValue(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
	panicOf(func() {
		_, _ = c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) {
			c.Set(1, 10)
			panic("no")
		})
	})
	c.Set(2, 20)
	c.Set(3, 30)
	if _, ok := c.Get(1); ok {
		t.Error("the oldest stays, though nobody has used it")
	}
}

// A Refresh that has timed out takes nothing away, however heavy the value is that it makes.
func TestHeavyValueThatComesTooLateLeavesTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{
			MaxWeight: 5, Weight: func(_, v int) int64 { return int64(v) }, CreateTimeout: time.Second,
		})
		c.Set(1, 1)
		_, err := c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
			time.Sleep(2 * time.Second)
			return 9, nil
		})
		if !errors.Is(err, oncecache.ErrCreateTimeout) {
			t.Error(err)
		}
		if _, ok := c.Get(1); !ok {
			t.Error("the old value has left")
		}
	})
}

// A value that is set again with a time that is over leaves nothing of a Refresh in its place.
func TestVeryValueThatIsOverEndsItsRefresh(t *testing.T) {
	ttl := time.Hour
	c := oncecache.MustNew(oncecache.Config[int, int]{
		TTLFunc: func(int, int) time.Duration { return ttl },
		Close:   func(int, int) error { return nil },
	})
	c.Set(1, 1)
	_, _ = c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
		ttl = 0
		c.Set(1, 1)
		return 9, nil
	})
	if n := c.Len(); n != 0 {
		t.Errorf("%d keys", n)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// spin takes about n steps, without a clock.
func spin(n int) {
	var steps atomic.Int64
	for range n {
		steps.Add(1)
	}
}

// Reported bug 1, Otter, gocache, Moka, jellydator/ttlcache: created twice as the first value is stored.
// Callers who come just when the value is published get it, and
// create none. They come by all ways, some before, some during and some after.
func TestT1_StressArrivalsAtPublication(t *testing.T) {
	for round := range stressRounds() / 10 {
		var c oncecache.Cache[string, int]
		var made atomic.Int64
		create := func(context.Context, string) (int, error) {
			spin(rand.IntN(500))
			return int(made.Add(1)), nil
		}
		together(stressWorkers, func(worker int) {
			spin(worker * rand.IntN(400))
			if worker%2 == 1 {
				for {
					if _, ok := c.Get("k"); ok {
						break // it has just been published
					}
					runtime.Gosched()
				}
			}
			w := ways[rand.IntN(len(ways)-1)] // Refresh makes another one
			if v, err := w.ask(t.Context(), &c, "k", create); v != 1 || err != nil {
				t.Errorf("round %d: %s: %d, %v", round, w.name, v, err)
			}
		})
		if n := made.Load(); n != 1 {
			t.Fatalf("round %d: %d values made", round, n)
		}
	}
}

// Reported bug 35, uv, quick_cache: a wake-up comes before its waiter.
// T35 uv, quick_cache: whoever ends a creation, and however close that is to the
// moment at which others begin to wait, they are woken and get a value or an
// error.
func TestT35_StressWakeUps(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	type cache = oncecache.Cache[string, int]
	nothing := func(*cache, context.CancelFunc) {}
	for name, end := range map[string]struct {
		before func(c *cache, leave context.CancelFunc)
		how    func() (int, error)
	}{
		"value":   {nothing, with(1)},
		"error":   {nothing, failing},
		"panic":   {nothing, diskFull},
		"Goexit":  {nothing, exiting},
		"Set":     {func(c *cache, _ context.CancelFunc) { c.Set("k", 1) }, with(2)},
		"Delete":  {func(c *cache, _ context.CancelFunc) { c.Delete("k") }, with(2)},
		"Close":   {func(c *cache, _ context.CancelFunc) { c.Close(ended) }, with(2)},
		"timeout": {func(*cache, context.CancelFunc) { spin(2000) }, with(2)},
		"leaving": {func(_ *cache, leave context.CancelFunc) { leave() }, failing},
	} {
		t.Run(name, func(t *testing.T) {
			rounds := stressRounds() / 100
			if name == "panic" || name == "timeout" {
				rounds /= 4 // they are slow
			}
			for range rounds {
				config := oncecache.Config[string, int]{}
				if rand.IntN(2) == 0 {
					config.Close = func(string, int) error { return nil }
				}
				if name == "timeout" {
					config.CreateTimeout = time.Duration(rand.IntN(50)) * time.Microsecond
				}
				c := oncecache.MustNew(config)
				p, begun := make(chan func() (int, error)), make(chan struct{})
				ctx, leave := context.WithCancel(t.Context())
				owner := ways[rand.IntN(len(ways))]
				calls := []*call{startCall(func() (int, error) {
					return owner.ask(ctx, c, "k", func(context.Context, string) (int, error) {
						close(begun)
						return (<-p)()
					})
				})}
				<-begun
				for range stressWorkers {
					w := ways[rand.IntN(len(ways))]
					calls = append(calls, startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(5)) }))
				}
				spin(rand.IntN(2000))
				end.before(c, leave)
				p <- end.how
				for _, k := range calls {
					select {
					case <-k.done:
						if r := k.result; (r.value == 0) == (r.err == nil && r.panicked == nil && !r.exited) {
							t.Fatalf("got %+v", r)
						}
					case <-time.After(time.Minute):
						t.Fatal("a caller is not woken")
					}
				}
				leave()
				c.Close(t.Context())
				// The timer may have woken the callers and not yet have counted.
				for start := time.Now(); ; runtime.Gosched() {
					creating, entries := oncecache.Creating(c)
					if creating == 0 && entries == 0 && oncecache.Pending(c) == 0 {
						break
					}
					if name != "timeout" || time.Since(start) > time.Minute {
						t.Fatalf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
					}
				}
			}
		})
	}
}
