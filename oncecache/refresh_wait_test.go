//go:build !modelcheck

package oncecache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// What may become of a value while it is refreshed, without anyone having asked
// that its key be forgotten.
var goes = map[string]struct {
	config
	remove func(t *testing.T, c *oncecache.Cache[string, int])
}{
	"TTL": {config{TTLFunc: func(_ string, v int) time.Duration {
		if v == 1 {
			return time.Minute
		}
		return time.Hour
	}}, func(*testing.T, *oncecache.Cache[string, int]) { time.Sleep(2 * time.Minute) }},
}

// Who asks for a key whose value has gone while it is refreshed waits for what
// that makes, and is no second creation.
func TestCreationsWaitForARefresh(t *testing.T) {
	for name, tt := range goes {
		for _, w := range ways {
			for _, end := range []struct {
				how  func() (int, error)
				want result
			}{{with(2), result{value: 2}}, {failing, result{err: errRefused}}} {
				synctest.Test(t, func(t *testing.T) {
					tt.Close = func(string, int) error { return nil }
					c := oncecache.MustNew(tt.config)
					c.Set("k", 1)
					p := newPilot()
					refresh := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
					<-p.ctx
					tt.remove(t, c)
					if _, ok := c.Get("k"); ok {
						t.Fatalf("%s: the key has a value", name)
					}
					var all []*call
					for range 3 {
						all = append(all, startCall(func() (int, error) {
							return w.ask(t.Context(), c, "k", func(context.Context, string) (int, error) {
								t.Errorf("%s, %s: called", name, w.name)
								return 3, nil
							})
						}))
						synctest.Wait()
					}
					p.end <- end.how
					wantAll(t, append(all, refresh), end.want)
					synctest.Wait()
					if v, ok := c.Get("k"); ok != (end.want.err == nil) || v != end.want.value {
						t.Errorf("%s, %s: the key has %d, %t", name, w.name, v, ok)
					}
					if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
						t.Error(err, oncecache.Pending(c))
					}
				})
			}
		}
	}
}

// Who waits for a Refresh leaves when its context ends, and its function is never
// called.
func TestCreationsThatLeaveARefresh(t *testing.T) {
	for _, w := range ways {
		if !w.leaves {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(goes["TTL"].config)
			c.Set("k", 1)
			p := newPilot()
			refresh := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
			<-p.ctx
			goes["TTL"].remove(t, c)
			ctx, leave := context.WithCancel(t.Context())
			x := startCall(func() (int, error) { return w.ask(ctx, c, "k", notAsked) })
			synctest.Wait()
			leave()
			wantAll(t, []*call{x}, left)
			p.end <- with(2)
			wantAll(t, []*call{refresh}, result{value: 2})
			synctest.Wait()
			wantEven(t, c)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Delete, Clear and Set forget a Refresh as they forget a creation: nobody waits
// for it.
func TestNobodyWaitsForAForgottenRefresh(t *testing.T) {
	for name, remove := range map[string]func(*oncecache.Cache[string, int]){
		"Delete":           func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Clear":            func(c *oncecache.Cache[string, int]) { c.Clear() },
		"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
		"Discard": func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(context.Background(), "k", notAsked)
			l.Discard()
		},
		"Set": func(c *oncecache.Cache[string, int]) { c.Set("k", 5); oncecache.CompareAndDelete(c, "k", 5) },
	} {
		got := 2
		if name == "Set" {
			got = 5
		}
		for _, w := range ways {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				c.Set("k", 1)
				p := newPilot()
				refresh := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
				<-p.ctx
				remove(&c)
				x := startCall(func() (int, error) { return w.ask(t.Context(), &c, "k", makes(3)) })
				wantAll(t, []*call{x}, result{value: 3})
				p.end <- with(2)
				wantAll(t, []*call{refresh}, result{value: got})
				if v, ok := c.Get("k"); v != 3 || !ok {
					t.Errorf("%s, %s: the key has %d", name, w.name, v)
				}
				wantEven(t, &c)
			})
		}
	}
}

// Who refreshes a key after Set, Delete or Clear joins no Refresh that began
// before, and gets what its own function makes.
func TestRefreshAfterSetBeginsAnew(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*oncecache.Cache[string, int])
	}{
		"Set":           {func(c *oncecache.Cache[string, int]) { c.Set("k", 5) }},
		"Delete":        {func(c *oncecache.Cache[string, int]) { c.Delete("k") }},
		"Delete, Set":   {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.Set("k", 5) }},
		"Clear":         {func(c *oncecache.Cache[string, int]) { c.Clear() }},
		"another value": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1); c.SetIfAbsent("k", 5) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			closed := map[int]int{}
			c := oncecache.MustNew(config{Close: func(_ string, v int) error {
				mu.Lock()
				defer mu.Unlock()
				closed[v]++
				return nil
			}})
			c.Set("k", 1)
			p := newPilot()
			older := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
			<-p.ctx
			tt.change(c)
			newer := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(makes(3))) })
			synctest.Wait()
			select {
			case <-newer.done:
			default:
				t.Fatalf("%s: the newer Refresh waits for the older one", name)
			}
			wantAll(t, []*call{newer}, result{value: 3})
			p.end <- with(2)
			got := 2
			if name == "Set" {
				got = 5
			}
			wantAll(t, []*call{older}, result{value: got})
			synctest.Wait()
			wantGet(t, c, "k", 3)
			if err := c.Close(t.Context()); err != nil || closed[1] != 1 || closed[2] != 1 || closed[3] != 1 {
				t.Errorf("%s: %v, closed %v", name, err, closed)
			}
		})
	}
}

// An heir gets no ErrCreateTimeout of a creation that others have left; who has
// stayed does.
func TestHeirsDoNotTimeOutForOthers(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(config{CreateTimeout: time.Minute, Close: func(string, int) error { return nil }})
			hang := func(context.Context, string) (int, error) { time.Sleep(time.Hour); return 1, nil }
			ctx, leave := context.WithCancel(t.Context())
			began := time.Now()
			gone := ask(ctx, c, hang)
			time.Sleep(30 * time.Second)
			leave()
			wantAll(t, []*call{gone}, left)
			heir := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(3)) })
			waits := startCall(func() (int, error) { return c.Wait(t.Context(), "k") })
			wantAll(t, []*call{heir}, result{value: 3})
			if d := time.Since(began); d != time.Minute {
				t.Errorf("%s: the heir has its value after %v", w.name, d)
			}
			if r := waits.wait(t); r.err != oncecache.ErrNotFound && (r.value != 3 || r.err != nil) {
				t.Errorf("%s: Wait returns %+v", w.name, r)
			}

			c.Delete("k")
			first := ask(t.Context(), c, hang)
			synctest.Wait()
			stays := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", notAsked) })
			wantAll(t, []*call{first, stays}, result{err: oncecache.ErrCreateTimeout})
			time.Sleep(2 * time.Hour)
			if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
				t.Error(err, oncecache.Pending(c))
			}
		})
	}
}
