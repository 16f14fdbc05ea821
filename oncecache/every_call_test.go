//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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
