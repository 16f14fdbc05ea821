//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// errWait is refused for as long as it says.
type errWait time.Duration

func (e errWait) Error() string { return time.Duration(e).String() }

func keeping(close func(string, int) error) *oncecache.Cache[string, int] {
	return oncecache.MustNew(oncecache.Config[string, int]{Close: close, ErrorTTLFunc: func(_ string, err error) time.Duration {
		var wait errWait
		if errors.As(err, &wait) {
			return time.Duration(wait)
		}
		return 0
	}})
}

// An error that is kept answers for the function, and is no value.
func TestErrorsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, close := range map[string]func(string, int) error{"plain": nil, "owned": func(string, int) error { return nil }} {
			c := keeping(close)
			calls := 0
			try := func(d time.Duration) error {
				_, err := c.GetOrCreate("k", func() (int, error) { calls++; return 1, errWait(d) })
				return err
			}
			for range 3 {
				if err := try(time.Minute); err != errWait(time.Minute) || calls != 1 {
					t.Fatalf("%s: %v after %d calls", name, err, calls)
				}
				if _, err := c.Acquire(t.Context(), "k", notAsked); err != errWait(time.Minute) {
					t.Fatal(err)
				}
				if _, err := c.Wait(t.Context(), "k"); err != errWait(time.Minute) {
					t.Fatal(err)
				}
				if _, err := c.GetOrCreateMany(t.Context(), []string{"k"}, manyNotAsked); !errors.Is(err, errWait(time.Minute)) {
					t.Fatal(err)
				}
				time.Sleep(time.Minute / 3)
				if c.Len() != 0 || len(sorted(c)) != 0 {
					t.Fatalf("%d keys, %v", c.Len(), sorted(c))
				}
				wantAbsent(t, c, "k")
			}
			if got, err := c.GetOrCreateMany(t.Context(), []string{"k"}, func(context.Context, []string) (map[string]int, error) {
				return nil, nil
			}); len(got) != 0 || err != nil {
				t.Fatalf("%s: %v, %v from an error that is over", name, got, err)
			}
			if err := try(-1); err != errWait(-1) || calls != 2 {
				t.Fatalf("%s: %v after %d calls", name, err, calls)
			}
			time.Sleep(1000 * time.Hour)
			if err := try(0); err != errWait(-1) || calls != 2 {
				t.Fatalf("%s: %v after %d calls", name, err, calls)
			}
			if v, ok := c.Delete("k"); v != 0 || ok {
				t.Errorf("deleted %d", v)
			}
			if err := try(0); err != errWait(0) || calls != 3 {
				t.Fatalf("%s: %v after %d calls", name, err, calls)
			}
			if err := try(0); err != errWait(0) || calls != 4 {
				t.Fatal("kept without time")
			}
			wantEven(t, c)
		}
	})
}

func notAsked(context.Context, string) (int, error) { panic("not asked") }

func manyNotAsked(context.Context, []string) (map[string]int, error) { panic("not asked") }

// wantEven checks that only values are left.
func wantEven[K comparable, V any](t *testing.T, c *oncecache.Cache[K, V]) {
	t.Helper()
	creating, entries := oncecache.Creating(c)
	for range 100_000 { // a creation may end a moment after its caller's return
		if creating == 0 && entries == c.Len() {
			return
		}
		runtime.Gosched()
		creating, entries = oncecache.Creating(c)
	}
	t.Errorf("%d entries are being created, of %d", creating, entries)
}

// Set, SetIfAbsent and Close find a key whose error is kept without a value.
func TestKeptErrorsMakeRoom(t *testing.T) {
	for name, replace := range map[string]func(c *oncecache.Cache[string, int]) bool{
		"Set":         func(c *oncecache.Cache[string, int]) bool { _, replaced := c.Set("k", 7); return !replaced },
		"SetIfAbsent": func(c *oncecache.Cache[string, int]) bool { return stored(c.SetIfAbsent("k", 7)) },
	} {
		c := keeping(func(string, int) error { return nil })
		if _, err := c.GetOrCreate("k", func() (int, error) { return 1, errWait(-1) }); err == nil {
			t.Fatal("no error")
		}
		if creating, entries := oncecache.Creating(c); creating != 1 || entries != 1 {
			t.Fatalf("%d entries without a value, of %d", creating, entries)
		}
		if !replace(c) {
			t.Errorf("%s found a value", name)
		}
		wantGet(t, c, "k", 7)
		wantEven(t, c)
		c.GetOrCreate("other", func() (int, error) { return 1, errWait(-1) })
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if creating, entries := oncecache.Creating(c); creating != 0 || entries != 0 {
			t.Errorf("%d entries without a value, of %d, after Close", creating, entries)
		}
	}
}

// Panics, runtime.Goexit and cycles say nothing that would be worth keeping.
func TestSomeErrorsAreNotKept(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[string, int]{ErrorTTLFunc: func(_ string, err error) time.Duration {
		if err != errRefused {
			panic(fmt.Sprint("asked for ", err))
		}
		return -1
	}})
	func() {
		defer func() { recover() }()
		c.GetOrCreate("k", diskFull)
	}()
	done := make(chan struct{})
	go func() { defer close(done); c.GetOrCreate("k", exiting) }()
	<-done
	_, err := c.GetOrCreateContext(t.Context(), "k", func(ctx context.Context, k string) (int, error) {
		return c.GetOrCreateContext(ctx, k, notAsked)
	})
	wantCycle(t, err, "k", "k")
	wantEven(t, c)

	// If ErrorTTL panics, the function has.
	how := make(chan any, 1)
	func() {
		defer func() { how <- recover() }()
		c.GetOrCreate("k", func() (int, error) { return 0, errors.New("new") })
	}()
	if got := <-how; got != "asked for new" {
		t.Error(got)
	}
	if _, err := c.GetOrCreate("k", failing); err != errRefused {
		t.Error(err)
	}
	if got := c.Stats(); got.Panicked != 3 || got.Failed != 2 || got.Created != 0 {
		t.Errorf("%+v", got)
	}

	// Who returns how another function ended has failed, and no more.
	for _, err := range []error{new(oncecache.PanicError), oncecache.ErrGoexit} {
		var c oncecache.Cache[string, int]
		c.GetOrCreate("k", func() (int, error) { return 0, err })
		if got := c.Stats(); got.Panicked != 0 || got.Failed != 1 {
			t.Errorf("%+v", got)
		}
	}
}

// Reported bug 34, aws-sdk-go, BitFaster: waiters try a failed provider one by one.
// Failures do not pile up, whether their keys are asked for again or not.
func TestT34_KeptErrorsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{ErrorTTLFunc: func(int, error) time.Duration { return time.Second }})
		most := 0
		for k := range 10_000 {
			c.GetOrCreate(k, failing)
			time.Sleep(time.Second / 10)
			_, entries := oncecache.Creating(c)
			most = max(most, entries)
		}
		if most > 12 {
			t.Errorf("%d failures were kept at a time, of which 10 had not expired", most)
		}
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if _, entries := oncecache.Creating(c); entries != 0 {
			t.Errorf("%d are left", entries)
		}
		wantEven(t, c)
	})
}

// A function that has not panicked may return a nil pointer as its error. That is its caller's, and not one of Close.
func TestNilPanicErrorIsNoPanic(t *testing.T) {
	var c oncecache.Cache[string, int]
	var failure *oncecache.PanicError
	if _, err := c.GetOrCreate("k", func() (int, error) { return 1, failure }); err != error(failure) {
		t.Errorf("%T", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close returns %T", err)
	}
}

// Reported bug 18, Souin, dart: a load that hangs blocks its key for ever.
// A creation that hangs ends for those who wait, its key is free, and what
// it makes after all is closed.
func TestT18_CreateTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var closed []int
		c := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: time.Minute, Close: func(_ string, v int) error {
			mu.Lock()
			defer mu.Unlock()
			closed = append(closed, v)
			return nil
		}})
		var cause atomic.Value
		hang := func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			time.Sleep(time.Hour)
			return 1, nil
		}
		began := time.Now()
		var callers sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), t.Context(), context.Background()} {
			callers.Go(func() {
				if _, err := c.GetOrCreateContext(ctx, "k", hang); err != oncecache.ErrCreateTimeout || time.Since(began) != time.Minute {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
			synctest.Wait()
		}
		for f := range c.InFlight() {
			if f.Key != "k" || f.Waiting != 3 || !f.Since.Equal(began) {
				t.Errorf("in flight: %+v", f)
			}
		}
		callers.Wait()
		synctest.Wait() // the function learns of it after its callers
		if got := cause.Load(); got != oncecache.ErrCreateTimeout {
			t.Errorf("cause %v", got)
		}
		if v, err := c.GetOrCreate("k", with(2)); v != 2 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		if err := c.Close(t.Context()); err != nil || time.Since(began) != time.Minute+time.Hour {
			t.Errorf("closed with %v after %v", err, time.Since(began))
		}
		if len(closed) != 2 || closed[0]+closed[1] != 3 {
			t.Errorf("closed %v", closed)
		}
		if got := c.Stats(); got.TimedOut != 1 || got.Created != 2 || got.Closed != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// A creation in time stops its timer; one on its caller's goroutine keeps that,
// and nobody else; and so does one that Delete has hidden.
func TestCreateTimeoutOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: time.Minute})
		if v, err := c.GetOrCreate("quick", with(1)); v != 1 || err != nil {
			t.Fatal(v, err)
		}
		time.Sleep(time.Hour)
		wantGet(t, c, "quick", 1)

		slow := func() (int, error) { time.Sleep(2 * time.Minute); return 2, nil }
		for _, hide := range []bool{false, true} {
			began := time.Now()
			var callers sync.WaitGroup
			for i := range 2 {
				callers.Go(func() {
					_, err := c.GetOrCreate("slow", slow)
					if d := time.Since(began); err != oncecache.ErrCreateTimeout || d != time.Duration(2-i)*time.Minute {
						t.Errorf("%v after %v", err, d)
					}
				})
				synctest.Wait()
			}
			if hide {
				c.Delete("slow")
			}
			callers.Wait()
			wantAbsent(t, c, "slow")
			wantEven(t, c)
		}
	})
}

// Wait waits, and creates nothing.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		if _, err := c.Wait(t.Context(), "k"); err != oncecache.ErrNotFound {
			t.Error(err)
		}
		for name, tt := range map[string]struct {
			end  func() (int, error)
			want error
		}{"a": {with(1), nil}, "b": {failing, errRefused}} {
			x := begin(t, &c, name)
			got := startCall(func() (int, error) { return c.Wait(t.Context(), name) })
			synctest.Wait()
			x.end <- tt.end
			if r := got.wait(t); r.err != tt.want || tt.want == nil && r.value != 1 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if v, err := c.Wait(ended, "a"); v != 1 || err != nil {
			t.Error(v, err)
		}
		x := begin(t, &c, "c")
		if _, err := c.Wait(ended, "c"); err != context.Canceled {
			t.Error(err)
		}
		x.end <- failing
		c.Close(t.Context())
		if _, err := c.Wait(t.Context(), "a"); err != oncecache.ErrClosed {
			t.Error(err)
		}
	})
}

// An error that nobody has waited for is not kept, whether the creation was called
// off or went on all the same; one that somebody gets is.
func TestErrorsThatNobodyHearsAreNotKept(t *testing.T) {
	for _, w := range ways {
		for range 1 {
			for _, stays := range []bool{false, true} {
				if !w.leaves {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					c := oncecache.MustNew(config{ErrorTTLFunc: func(string, error) time.Duration { return -1 }})
					p := newPilot()
					ctx, leave := context.WithCancel(t.Context())
					gone := startCall(func() (int, error) { return w.ask(ctx, c, "k", p.create) })
					<-p.ctx
					var heard []*call
					if stays {
						heard = append(heard, start(c, "k", unexpected(t)))
						synctest.Wait()
					}
					leave()
					wantAll(t, []*call{gone}, left)
					p.end <- failing
					wantAll(t, heard, result{err: errRefused})
					synctest.Wait()
					want, called := int64(0), false
					if stays {
						want = 1
					}
					if n := oncecache.Kept(c); n != want {
						t.Errorf("%s: %d errors are kept, want %d", w.name, n, want)
					}
					c.GetOrCreate("k", func() (int, error) { called = true; return 1, nil })
					if called == stays {
						t.Errorf("%s: called %t the next time", w.name, called)
					}
				})
			}
		}
	}
}

// Errors of many keys do not pile up behind those that are kept for longer.
func TestShortErrorsGoBeforeLongOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{ErrorTTLFunc: func(k int, _ error) time.Duration {
			switch {
			case k%1000 == 0:
				return -1
			case k%100 == 0:
				return time.Hour
			}
			return time.Second
		}})
		most := 0
		for k := range 10_000 { // in 1000 seconds
			c.GetOrCreate(k, failing)
			time.Sleep(time.Second / 10)
			synctest.Wait()
			_, entries := oncecache.Creating(c)
			if most = max(most, entries-k/100); int64(entries) != oncecache.Kept(c) {
				t.Fatalf("%d entries, %d errors are kept", entries, oncecache.Kept(c))
			}
		}
		if most > 13 {
			t.Errorf("%d were kept for a second at a time, of which 10 had not expired", most)
		}
		time.Sleep(2 * time.Hour)
		c.GetOrCreate(10_000, failing)
		c.GetOrCreate(10_001, failing)
		if _, entries := oncecache.Creating(c); entries != 12 {
			t.Errorf("%d are left of 10 that are kept for ever, and two that are new", entries)
		}
	})
}

// Whoever gets an error, by whatever call, and calls again starts anew: nobody gets
// the same error twice, and one creation answers all who come together.
func TestWhoKnowsOfAFailureStartsAnew(t *testing.T) {
	for _, owner := range ways {
		synctest.Test(t, func(t *testing.T) {
			const rounds = 5
			var c oncecache.Cache[string, int]
			var calls, running atomic.Int32
			fails := func(context.Context, string) (int, error) {
				if n := running.Add(1); n != 1 {
					t.Errorf("%s: %d creations at a time", owner.name, n)
				}
				defer running.Add(-1)
				time.Sleep(time.Second)
				return 0, fmt.Errorf("call %d", calls.Add(1))
			}
			var all []*call
			for i := range 4 * len(ways) {
				w := ways[i%len(ways)]
				if i == 0 {
					w = owner
				}
				all = append(all, startCall(func() (int, error) {
					seen := map[string]bool{}
					for range rounds {
						v, err := w.ask(t.Context(), &c, "k", fails)
						if v != 0 || err == nil || seen[err.Error()] {
							t.Errorf("%s, %s: %d, %v after %v", owner.name, w.name, v, err, seen)
							break
						}
						seen[err.Error()] = true
					}
					return 0, nil
				}))
				if i == 0 {
					synctest.Wait()
				}
			}
			wantAll(t, all, result{})
			if n := calls.Load(); n != rounds {
				t.Errorf("%s: %d calls, want %d", owner.name, n, rounds)
			}
			wantEven(t, &c)
		})
	}
}
