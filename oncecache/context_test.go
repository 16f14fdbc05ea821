//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// ask makes a call of GetOrCreateContext on a goroutine of its own.
func ask(ctx context.Context, c *oncecache.Cache[string, int], create func(context.Context, string) (int, error)) *call {
	return startCall(func() (int, error) { return c.GetOrCreateContext(ctx, "k", create) })
}

// asker is a caller that may leave.
type asker struct {
	*call
	leave context.CancelFunc
}

// asks makes a caller of c that joins a creation, or creates by itself if
// create is not nil.
func asks(t *testing.T, c *oncecache.Cache[string, int], create func(context.Context, string) (int, error)) asker {
	ctx, cancel := context.WithCancel(t.Context())
	if create == nil {
		create = func(context.Context, string) (int, error) {
			t.Error("create called")
			return -1, nil
		}
	}
	return asker{ask(ctx, c, create), cancel}
}

// pilot is a create function that can be told how to end, and tells when its
// context is cancelled.
type pilot struct {
	ctx   chan context.Context
	end   chan func() (int, error)
	began int
}

func newPilot() *pilot {
	return &pilot{ctx: make(chan context.Context, 1), end: make(chan func() (int, error))}
}

func (p *pilot) create(ctx context.Context, _ string) (int, error) {
	p.began++
	p.ctx <- ctx
	return (<-p.end)()
}

func cancelled(ctx context.Context) bool { return ctx.Err() != nil }

var left = result{err: context.Canceled}

// Reported bug 16, BuildBuddy: a leaver takes others along; work goes on for nobody.
// T16 buildbuddy #7199: the end of a caller's context ends that caller's wait
// and nothing else, whether it is the first or another.
func TestT16_CallerLeaves(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			p := newPilot()
			owner := asks(t, &c, p.create)
			flight := <-p.ctx
			joined, plain := asks(t, &c, nil), start(&c, "k", unexpected(t))
			synctest.Wait()
			gone, stays := owner, joined
			if !first {
				gone, stays = joined, owner
			}
			gone.leave()
			wantAll(t, []*call{gone.call}, left)
			synctest.Wait()
			if cancelled(flight) {
				t.Error("the creation is cancelled while somebody waits")
			}
			p.end <- with(7)
			wantAll(t, []*call{stays.call, plain}, result{value: 7})
			wantGet(t, &c, "k", 7)
		})
	}
}

// Reported bug 20, Tailscale: joined with a context, a nil function is called.
// Callers without a context are on board as well, and never leave; and if they
// are who creates, there is nothing to cancel (T20 tailscale).
func TestT20_PlainCallersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		p := newPilot()
		owner := asks(t, &c, p.create)
		flight := <-p.ctx
		plain := start(&c, "k", unexpected(t))
		synctest.Wait()
		owner.leave()
		wantAll(t, []*call{owner.call}, left)
		synctest.Wait()
		if cancelled(flight) {
			t.Error("the creation is cancelled while a plain caller waits")
		}
		p.end <- failing
		wantAll(t, []*call{plain}, result{err: errRefused})

		created := begin(t, &c, "k")
		joined := asks(t, &c, nil)
		synctest.Wait()
		joined.leave()
		wantAll(t, []*call{joined.call}, left)
		created.end <- with(8)
		wantAll(t, []*call{created.call}, result{value: 8})
	})
}

// Reported bug 15, SpiceDB, any-sync, Otter: the first context ends the load of all.
// T15 spicedb #925: the context of the create function has the values of the
// caller's, and neither its end nor its deadline.
func TestT15_CreateContext(t *testing.T) {
	type trace struct{}
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), trace{}, "4bf92f35"), time.Second)
		defer cancel()
		p := newPilot()
		owner := ask(ctx, &c, p.create)
		flight := <-p.ctx
		joined := asks(t, &c, nil)
		if _, ok := flight.Deadline(); ok || flight.Value(trace{}) != "4bf92f35" {
			t.Error("the create function has a deadline, or no trace")
		}
		wantAll(t, []*call{owner}, result{err: context.DeadlineExceeded})
		if cancelled(flight) {
			t.Error("the deadline of one caller cancels the creation of another")
		}
		p.end <- with(1)
		wantAll(t, []*call{joined.call}, result{value: 1})
		if cancelled(flight) {
			t.Error("success cancels the context of the create function")
		}
	})
}

// dated is a context that has a deadline and never ends.
type dated struct{ context.Context }

func (dated) Deadline() (time.Time, bool) { return time.Now(), true }

// Nor does it get the deadline of a context that never ends.
func TestDeadlineThatEndsNothing(t *testing.T) {
	var c oncecache.Cache[string, int]
	c.GetOrCreateContext(dated{context.Background()}, "k", func(ctx context.Context, _ string) (int, error) {
		if at, ok := ctx.Deadline(); ok {
			t.Errorf("the create function has the deadline %v", at)
		}
		return 1, nil
	})
}

// A context that has ended gets a value that is there, and creates none.
func TestContextHasEnded(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		want result
		has  func(*oncecache.Cache[string, int])
	}{
		{"nothing", left, func(*oncecache.Cache[string, int]) {}},
		{"a value", result{value: 1}, func(c *oncecache.Cache[string, int]) { c.Set("k", 1) }},
		{"a creation", left, func(c *oncecache.Cache[string, int]) {
			o := begin(t, c, "k")
			t.Cleanup(func() { o.end <- with(1); <-o.done })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			tt.has(&c)
			var created atomic.Bool
			v, err := c.GetOrCreateContext(ended, "k", func(context.Context, string) (int, error) {
				created.Store(true)
				return -1, nil
			})
			if (result{value: v, err: err}) != tt.want {
				t.Errorf("got %d, %v, want %+v", v, err, tt.want)
			}
			if tt.name == "a creation" {
				return
			}
			if err := c.Close(t.Context()); err != nil { // waits for what was created
				t.Error(err)
			}
			if created.Load() {
				t.Error("create called")
			}
		})
	}
}

// A context that cannot end costs no goroutine.
func TestContextCannotEnd(t *testing.T) {
	var c oncecache.Cache[string, int]
	me := goroutine()
	v, err := c.GetOrCreateContext(context.Background(), "k", func(ctx context.Context, k string) (int, error) {
		if goroutine() != me || k != "k" || ctx.Err() != nil {
			t.Error("another goroutine, another key or no context")
		}
		return 1, nil
	})
	if v != 1 || err != nil {
		t.Error(v, err)
	}
	if p := panicOf(func() {
		c.GetOrCreateContext(context.Background(), "p", func(context.Context, string) (int, error) { panic("disk full") })
	}); p != "disk full" {
		t.Error(p)
	}
}

// goroutine returns the first line of the caller's stack, which has its number.
func goroutine() string {
	buf := make([]byte, 64)
	line, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), " [")
	return line
}

// Reported bug 12, Otter: a nil function strands its key.
// Nothing is stranded by arguments that are nil.
func TestT12_NilContext(t *testing.T) {
	var c oncecache.Cache[string, int]
	none := func(context.Context, string) (int, error) { return -1, nil }
	for want, f := range map[string]func(){
		"oncecache: GetOrCreateContext called with a nil context":  func() { c.GetOrCreateContext(noContext, "k", none) },
		"oncecache: GetOrCreateContext called with a nil function": func() { c.GetOrCreateContext(t.Context(), "k", nil) },
	} {
		if p := panicOf(f); p != want {
			t.Errorf("panics with %v, want %s", p, want)
		}
	}
	wantLen(t, &c, 0)
}

// Reported bug 7, singleflight, go-zero, Hugo, Trickster, lazycache: a panic leaves waiters hanging.
// Reported bug 8, Moka, lazycache, go-zero, sturdyc: after a panic, no value and no error.
// Reported bug 9, singleflight, minio-go: Goexit leaves waiters hanging or looks like success.
// Reported bug 10, singleflight: a panic on its goroutine cannot be recovered.
// A create function that panics or exits on a goroutine of its own
// ends as one on the caller's does, but that it is the caller's panic that has
// another stack.
func TestEndingsAlone(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				p := newPilot()
				owner := asks(t, &c, p.create)
				<-p.ctx
				joined, plain := asks(t, &c, nil), start(&c, "k", unexpected(t))
				synctest.Wait()
				p.end <- tt.end
				for _, k := range []*call{joined.call, plain} {
					if err := tt.waiter(k.wait(t)); err != nil {
						t.Error(err)
					}
				}
				switch got := owner.wait(t); tt.name {
				case "panic":
					err, _ := got.panicked.(error)
					var pe *oncecache.PanicError
					if !errors.As(err, &pe) || pe.Value != "disk full" || !strings.Contains(err.Error(), "oncecache_test.diskFull(") {
						t.Errorf("the owner panics with %v", got.panicked)
					}
				case "Goexit":
					wantAll(t, []*call{owner.call}, result{err: oncecache.ErrGoexit})
				default:
					wantAll(t, []*call{owner.call}, tt.owner)
				}
			})
		})
	}
}

// A panic is not lost if nobody waits for it: Close has it.
func TestPanicThatNobodyHears(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*oncecache.Cache[string, int], asker)
	}{
		{"abandoned", func(_ *oncecache.Cache[string, int], owner asker) { owner.leave() }},
		{"Set", func(c *oncecache.Cache[string, int], _ asker) { c.Set("k", 3) }},
		{"Close", func(c *oncecache.Cache[string, int], _ asker) { go c.Close(context.Background()) }},
		{"Delete, abandoned", func(c *oncecache.Cache[string, int], owner asker) { c.Delete("k"); owner.leave() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				p := newPilot()
				owner := asks(t, &c, p.create)
				flight := <-p.ctx
				tt.end(&c, owner)
				owner.wait(t)
				synctest.Wait()
				if !cancelled(flight) {
					t.Error("the creation is not cancelled")
				}
				p.end <- panicking("disk full")
				err := c.Close(t.Context())
				var pe *oncecache.PanicError
				if !errors.As(err, &pe) || pe.Value != "disk full" {
					t.Errorf("Close returns %v", err)
				}
			})
		})
	}
}

// A key that holds a NaN is created each time, and may be left.
func TestNaNWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[float64, int]
		ctx, cancel := context.WithCancel(t.Context())
		flight, end := make(chan context.Context, 1), make(chan struct{})
		k := startCall(func() (int, error) {
			return c.GetOrCreateContext(ctx, nan, func(ctx context.Context, _ float64) (int, error) {
				flight <- ctx
				<-end
				return 1, nil
			})
		})
		f := <-flight
		cancel()
		wantAll(t, []*call{k}, left)
		synctest.Wait()
		if !cancelled(f) {
			t.Error("the creation is not cancelled")
		}
		close(end)
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		if v, err := c.GetOrCreateContext(ctx, nan, func(context.Context, float64) (int, error) { return 2, nil }); v != 2 || err != nil {
			t.Error(v, err)
		}
		if c.Len() != 0 {
			t.Error("kept")
		}
	})
}

// Nobody finds the creation of a key that holds a NaN, but Close calls it off.
func TestNaNIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[float64, int]
		k := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), nan, func(ctx context.Context, _ float64) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		})
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if r := k.wait(t); r.err != oncecache.ErrClosed {
			t.Error(r.err)
		}
	})
}

// way is one of the calls that ask for a key.
type way struct {
	name   string
	leaves bool // whether the end of ctx ends the call
	ask    func(ctx context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error)
}

var ways = []way{
	{"GetOrCreate", false, func(_ context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		return c.GetOrCreate(k, func() (int, error) { return create(context.Background(), k) })
	}},
	{"GetOrCreateContext of a context that cannot end", false, func(_ context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		return c.GetOrCreateContext(context.Background(), k, create)
	}},
	{"GetOrCreateContext", true, func(ctx context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		return c.GetOrCreateContext(ctx, k, create)
	}},
	{"Acquire of a context that cannot end", false, func(_ context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		return acquire(context.Background(), c, k, create)
	}},
	{"Acquire", true, func(ctx context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		return acquire(ctx, c, k, create)
	}},
	{"GetOrCreateMany", true, func(ctx context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		got, err := c.GetOrCreateMany(ctx, []string{k}, func(ctx context.Context, _ []string) (map[string]int, error) {
			v, err := create(ctx, k)
			if err != nil {
				return nil, err // a value would be kept
			}
			return map[string]int{k: v}, nil
		})
		var each oncecache.KeyErrors[string]
		if errors.As(err, &each) {
			return got[k], each[k]
		}
		return got[k], err
	}},
	{"Refresh", true, func(ctx context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
		return c.Refresh(ctx, k, anew(create))
	}},
}

func acquire(ctx context.Context, c *oncecache.Cache[string, int], k string, create func(context.Context, string) (int, error)) (int, error) {
	l, err := c.Acquire(ctx, k, create)
	if err != nil {
		return 0, err
	}
	defer l.Release()
	return l.Value(), nil
}

// Reported bug 20, Tailscale: joined with a context, a nil function is called.
// Whoever creates, and whoever joins and leaves, those who stay
// get what comes of it.
func TestT20_MixedCallers(t *testing.T) {
	for _, owner := range ways {
		for _, joins := range ways {
			for _, end := range []struct {
				how  func() (int, error)
				want result
			}{{with(7), result{value: 7}}, {failing, result{err: errRefused}}} {
				synctest.Test(t, func(t *testing.T) {
					s := newShop()
					p := newPilot()
					asks := func(w way, ctx context.Context, create func(context.Context, string) (int, error)) *call {
						return startCall(func() (int, error) { return w.ask(ctx, s.Cache, "k", create) })
					}
					first := asks(owner, t.Context(), p.create)
					<-p.ctx
					none := func(context.Context, string) (int, error) { t.Error("create called"); return -1, nil }
					ctx, leave := context.WithCancel(t.Context())
					goes, stays := asks(joins, ctx, none), asks(joins, t.Context(), none)
					synctest.Wait()
					leave()
					all := []*call{first, stays}
					if joins.leaves {
						wantAll(t, []*call{goes}, left)
					} else {
						all = append(all, goes)
					}
					p.end <- end.how
					wantAll(t, all, end.want)
					if err := s.Close(t.Context()); err != nil || oncecache.Pending(s.Cache) != 0 {
						t.Errorf("%s, %s: Close returns %v", owner.name, joins.name, err)
					}
					if end.want.err == nil {
						s.wantClosed(t, 7)
					}
				})
			}
		}
	}
}

// Reported bug 14, janos/singleflight, BuildBuddy: a cancelled call and its successor overlap.
// Callers come and leave as they like, and creations
// do not overlap; and who has not left does not get the error of those who have.
func TestT14_StressCancelledCreationsDoNotOverlap(t *testing.T) {
	var c oncecache.Cache[string, int]
	var running, created atomic.Int32
	create := func(ctx context.Context, _ string) (int, error) {
		if n := running.Add(1); n != 1 {
			t.Errorf("%d creations at once", n)
		}
		defer running.Add(-1)
		for range rand.IntN(8) {
			runtime.Gosched()
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		created.Add(1)
		return 1, nil
	}
	together(stressWorkers, func(worker int) {
		for range stressRounds() / 4 {
			ctx, leave := context.WithCancel(context.Background())
			patient := rand.IntN(4) == 0
			if !patient {
				go leave()
			}
			w := ways[rand.IntN(len(ways)-1)] // Refresh runs beside a creation
			v, err := w.ask(ctx, &c, "k", create)
			if (patient || !w.leaves) && (v != 1 || err != nil) || err != nil && err != context.Canceled {
				t.Errorf("%s: %d, %v", w.name, v, err)
			}
			leave()
			oncecache.CompareAndDelete(&c, "k", 1)
		}
	})
	if err := c.Close(t.Context()); err != nil || running.Load() != 0 {
		t.Error(err)
	}
	if creating, _ := oncecache.Creating(&c); creating != 0 {
		t.Errorf("%d creations counted at the end", creating)
	}
}

// Reported bug 19, BuildKit: losers sleep and retry.
// Nobody sleeps to try again. An heir has its value at the moment
// at which the creation before it ends.
func TestT19_NobodySleeps(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			ctx, leave := context.WithCancel(t.Context())
			began := time.Now()
			gone := ask(ctx, &c, func(ctx context.Context, _ string) (int, error) { time.Sleep(time.Hour); return 0, ctx.Err() })
			synctest.Wait()
			leave()
			wantAll(t, []*call{gone}, left)
			var heirs []*call
			for range 20 {
				heirs = append(heirs, startCall(func() (int, error) { return w.ask(t.Context(), &c, "k", makes(1)) }))
			}
			wantAll(t, heirs, result{value: 1})
			if d := time.Since(began); d != time.Hour {
				t.Errorf("%s: the heirs have their value after %v", w.name, d)
			}
		})
	}
}

// Reported bug 21, gopls: a value is thrown away as the context ends.
// A value that is made at the moment at which the last context ends
// is not lost, whether that caller gets it or not.
func TestT21_ValueAtTheLastMoment(t *testing.T) {
	for _, w := range ways {
		if !w.leaves {
			continue
		}
		for range 100 {
			synctest.Test(t, func(t *testing.T) {
				s := newShop()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				v, err := w.ask(ctx, s.Cache, "k", func(context.Context, string) (int, error) { time.Sleep(time.Second); return 7, nil })
				if (v != 7 || err != nil) && (v != 0 || err != context.DeadlineExceeded) {
					t.Errorf("%s: %d, %v", w.name, v, err)
				}
				synctest.Wait()
				wantGet(t, s.Cache, "k", 7)
				s.wantClosed(t)
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				s.wantClosed(t, 7)
			})
		}
	}
}

// Reported bug 22, go-sql-driver/mysql, ClickHouse, pool2: a leaver leaks what is made too late.
// What is made after all have left is in the cache, and
// closed with it; also if that is closed before.
func TestT22_LeaversLeaveNothingOpen(t *testing.T) {
	for _, w := range ways {
		for _, late := range []bool{false, true} {
			if !w.leaves {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				s := newShop()
				p := newPilot()
				ctx, leave := context.WithCancel(t.Context())
				gone := startCall(func() (int, error) { return w.ask(ctx, s.Cache, "k", p.create) })
				<-p.ctx
				leave()
				wantAll(t, []*call{gone}, left)
				if late {
					if err := s.Close(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: Close returns %v while a function runs", w.name, err)
					}
				}
				p.end <- with(7)
				synctest.Wait()
				if !late {
					wantGet(t, s.Cache, "k", 7)
					s.wantClosed(t)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Errorf("%s: %v", w.name, err)
				}
				s.wantClosed(t, 7)
			})
		}
	}
}

// Reported bug 34, aws-sdk-go, BitFaster: waiters try a failed provider one by one.
// One failure answers all who wait, and no second one follows.
func TestT34_OneFailureAnswersAll(t *testing.T) {
	for _, owner := range ways {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			began, calls := time.Now(), 0
			var all []*call
			for i := range 700 {
				w := ways[i%len(ways)]
				if i == 0 {
					w = owner
				}
				all = append(all, startCall(func() (int, error) {
					return w.ask(t.Context(), &c, "k", func(context.Context, string) (int, error) {
						calls++
						time.Sleep(time.Second)
						return 0, fmt.Errorf("call %d: %w", calls, errRefused)
					})
				}))
				if i == 0 {
					synctest.Wait()
				}
			}
			for _, k := range all {
				if r := k.wait(t); r.value != 0 || !errors.Is(r.err, errRefused) || r.err.Error() != "call 1: connection refused" {
					t.Fatalf("%s: %+v", owner.name, r)
				}
			}
			if d := time.Since(began); calls != 1 || d != time.Second {
				t.Errorf("%s: %d calls, after %v", owner.name, calls, d)
			}
		})
	}
}
