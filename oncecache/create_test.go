//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
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
