//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

func makesOne(context.Context, int) (int, error) { return 1, nil }

// closeAtOnce closes c with a context that has ended, and returns what is named.
func closeAtOnce(m *mc.M, c *oncecache.Cache[int, int]) (creating, leased, closing int) {
	ctx, end := atomics.WithCancel(context.Background())
	end()
	var p *oncecache.PendingError
	if err := c.Close(ctx); errors.As(err, &p) {
		return len(p.Creating), len(p.Leased), len(p.Closing)
	} else if err != nil {
		m.Failf("closed with %v", err)
	}
	return 0, 0, 0
}

// A lease is named, whoever has removed its value, and when: before, while, or
// after its creation ended.
func TestProtocolsOfNames(t *testing.T) {
	for name, removes := range map[string]func(m *mc.M, c *oncecache.Cache[int, int]){
		"Delete": func(_ *mc.M, c *oncecache.Cache[int, int]) { c.Delete(1) },
		"Close":  func(m *mc.M, c *oncecache.Cache[int, int]) { closeAtOnce(m, c) },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "PendingError: Acquire ∥ " + name}, func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
				c.Len()
				var l oncecache.Lease[int, int]
				var err error
				m.Go(func() { l, err = c.Acquire(context.Background(), 1, makesOne) })
				m.Go(func() { removes(m, c) })
				m.Final(func() {
					creating, leased, closing := closeAtOnce(m, c)
					if err == nil && leased != 1 || err != nil && leased != 0 || creating+closing != 0 {
						m.Failf("named %d, %d, %d after Acquire returned %v", creating, leased, closing, err)
					}
					l.Release()
				})
			})
		})
	}
}

// A lease that has ended is not named, though its value was removed meanwhile.
func TestEndedLeasesAreNotNamed(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "PendingError: Acquire, Release ∥ Delete"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		m.Go(func() {
			l, err := c.Acquire(context.Background(), 1, makesOne)
			if err != nil {
				m.Failf("%v", err)
			}
			l.Release()
		})
		m.Go(func() { c.Delete(1) })
		m.Final(func() {
			if names := oncecache.Named(c); len(names) != 0 {
				m.Failf("%v are named", names)
			}
		})
	})
}

// A value whose Close function hangs is named, from the moment at which Close has
// queued it.
func TestClosingIsNamed(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "PendingError: Close(ended)"}, func(m *mc.M) {
		hang := atomics.MakeEvent()
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { hang.Wait(); return nil }})
		c.Set(1, 1)
		m.Go(func() {
			if _, _, closing := closeAtOnce(m, c); closing != 1 {
				m.Failf("%d values are named", closing)
			}
			hang.Fire()
		})
	})
}

// Close waits for a value that was set, and is being closed, after another one whose end it may hear of late.
func TestProtocolsOfCloseBesideSets(t *testing.T) {
	mc.Check(t, twice.of("closed: Set ∥ Set ∥ Close, while the second value is being closed"), func(m *mc.M) {
		closing := atomics.MakeEvent()
		var ended atomics.Bool
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(k, _ int) error {
			if k == 2 {
				closing.Fire()
				ended.Store(true)
			}
			return nil
		}})
		if err := c.Close(context.Background()); err != nil {
			m.Failf("%v", err)
		}
		m.Go(func() { c.Set(1, 1) })
		m.Go(func() { c.Set(2, 1) })
		m.Go(func() {
			closing.Wait()
			if err := c.Close(context.Background()); err != nil || !ended.Load() {
				m.Failf("%v, the value is closed: %t", err, ended.Load())
			}
		})
	})
}

// Who comes too late for a value that is being evicted does not close it.
func TestAcquireClosesNothing(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "MaxEntries is 1: Acquire ∥ GetOrCreate of another key"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error {
			if s := string(debug.Stack()); strings.Contains(s, ".Acquire(") {
				m.Failf("%s", fmt.Sprint("closed by Acquire: ", s))
			}
			return nil
		}})
		c.GetOrCreateContext(context.Background(), 1, makesOne)
		m.Go(func() { c.Acquire(context.Background(), 1, makesOne) })
		m.Go(func() { c.GetOrCreateContext(context.Background(), 2, makesOne) })
	})
}

// A call that finds a value or an error whose time is over, and then a closed cache, gets
// ErrClosed or what it creates.
func TestClosedBesideWhatIsOver(t *testing.T) {
	var (
		makesTwo = func() (int, error) { return 2, nil }
		fails    = func() (int, error) { return 0, errors.New("not today") }
	)
	values := oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return 0 }}
	failures := oncecache.Config[int, int]{MaxEntries: 1, ErrorTTL: time.Millisecond}
	set := func(c *oncecache.Cache[int, int]) { c.Set(1, 1) }
	ask := map[string]func(c *oncecache.Cache[int, int]) (int, error){
		"GetOrCreate": func(c *oncecache.Cache[int, int]) (int, error) { return c.GetOrCreate(1, makesTwo) },
		"GetOrCreateContext": func(c *oncecache.Cache[int, int]) (int, error) {
			return c.GetOrCreateContext(context.Background(), 1, func(context.Context, int) (int, error) { return makesTwo() })
		},
		"Refresh": func(c *oncecache.Cache[int, int]) (int, error) {
			return c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return makesTwo() })
		},
	}
	for name, call := range ask {
		t.Run("a value, "+name, func(t *testing.T) {
			mc.Check(t, twice.of("TTL is over: Set ∥ "+name+" ∥ Close"), func(m *mc.M) {
				c := oncecache.MustNew(values)
				m.Go(func() { set(c) })
				endsClosed(m, c, call)
			})
		})
		t.Run("an error, "+name, func(t *testing.T) {
			mc.Check(t, twice.of("ErrorTTL is over: "+name+" ∥ Close"), func(m *mc.M) {
				c := oncecache.MustNew(failures)
				c.GetOrCreate(1, fails)
				m.Advance(2 * time.Millisecond)
				endsClosed(m, c, call)
			})
		})
	}
}

// endsClosed makes a call for a key beside Close.
func endsClosed(m *mc.M, c *oncecache.Cache[int, int], call func(*oncecache.Cache[int, int]) (int, error)) {
	m.Go(func() {
		switch v, err := call(c); {
		case err == nil && (v == 1 || v == 2): // Set may have ended its creation
		case errors.Is(err, oncecache.ErrClosed):
		default:
			m.Failf("%d, %v", v, err)
		}
	})
	m.Go(func() {
		if err := c.Close(context.Background()); err != nil {
			m.Failf("Close returns %v", err)
		}
	})
	m.Final(func() {
		if n := c.Len(); n != 0 {
			m.Failf("%d values are left in a closed cache", n)
		}
	})
}

// Callers of a creation that Delete has made the cache forget get ErrClosed when Close calls it
// off, whatever its function makes of that.
func TestProtocolsOfForgottenCreationsThatCloseEnds(t *testing.T) {
	mc.Check(t, twice.of("GetOrCreateContext, whose function waits for its context ∥ Delete, then Close"), func(m *mc.M) {
		var c oncecache.Cache[int, int]
		m.Go(func() {
			_, err := c.GetOrCreateContext(context.Background(), 1, func(ctx context.Context, _ int) (int, error) {
				never := atomics.MakeEvent()
				return 0, never.WaitContext(ctx)
			})
			if err != oncecache.ErrClosed {
				m.Failf("%v", err)
			}
		})
		m.Go(func() {
			c.Delete(1)
			_ = c.Close(context.Background())
		})
	})
}

// Whoever takes a value away closes it, also if a Refresh has just made another one, which is closed first and whose
// Close function exits.
func TestProtocolsOfARefreshWhoseCloseExits(t *testing.T) {
	type cache = *oncecache.Cache[int, int]
	for name, goes := range map[string]func(c cache){
		"Delete":           func(c cache) { c.Delete(1) },
		"CompareAndDelete": func(c cache) { oncecache.CompareAndDelete(c, 1, 1) },
		"Clear":            func(c cache) { c.Clear() },
		"Set":              func(c cache) { c.Set(1, 3) },
		"Discard": func(c cache) {
			l, _ := c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) { return 4, nil })
			l.Discard()
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("Refresh, the Close function of whose value calls runtime.Goexit ∥ "+name), func(m *mc.M) {
				var shut [5]atomics.Uint32
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(_, v int) error {
					if shut[v].Add(1); v == 2 {
						runtime.Goexit()
					}
					return nil
				}})
				c.Set(1, 1)
				m.Go(func() { c.Refresh(context.Background(), 1, anew(makesTwo)) })
				m.Go(func() { goes(c) })
				m.Final(func() {
					left := c.Len()
					if n := oncecache.Pending(c); n != left {
						m.Failf("%d values are pending, and %d are there", n, left)
					}
					for v := range shut {
						if n := shut[v].Load(); n > 1 {
							m.Failf("%d is closed %d times", v, n)
						}
					}
				})
			})
		})
	}
}

// A bureau is a cache of several keys whose listener notes what it is told, and whose
// callers note what they have removed. Each value is made once, and told once, with the
// reason of whoever has removed it.
type bureau struct {
	m       *mc.M
	c       *oncecache.Cache[int, int]
	made    [10]mc.Tally
	told    [10]mc.Tally
	reasons [10]oncecache.Reason
	removed [10]oncecache.Reason // by a call that has returned the value
	closed  [10]mc.Tally
}

func listen(m *mc.M, config oncecache.Config[int, int]) *bureau {
	b := &bureau{m: m}
	config.OnRemove = func(_, v int, why oncecache.Reason, err error) {
		if b.told[v].Add(1); config.Close != nil && b.closed[v].Value() != 1 {
			m.Failf("%d is told before it is closed", v)
		}
		b.reasons[v] = why
	}
	if config.Close != nil {
		config.Close = func(_, v int) error { b.closed[v].Add(1); return nil }
	}
	b.c = oncecache.MustNew(config)
	return b
}

func (b *bureau) removes(v int, why oncecache.Reason, ok bool) {
	if !ok {
		return
	}
	if b.removed[v] != 0 {
		b.m.Failf("%d was removed twice", v)
	}
	b.removed[v] = why
}

func (b *bureau) set(k, v int) {
	b.made[v].Add(1)
	old, ok := b.c.Set(k, v)
	b.removes(old, oncecache.ReasonReplaced, ok)
}

func (b *bureau) delete(k int) {
	old, ok := b.c.Delete(k)
	b.removes(old, oncecache.ReasonDeleted, ok)
}

// hold acquires the value of a key, or makes v, and ends the lease.
func (b *bureau) hold(k, v int, discard bool) {
	l, err := b.c.Acquire(context.Background(), k, func(context.Context, int) (int, error) { b.made[v].Add(1); return v, nil })
	if err != nil {
		return
	}
	if got := l.Value(); b.told[got].Value() != 0 {
		b.m.Failf("%d is in use, and told", got)
	}
	if discard {
		l.Discard()
	} else {
		l.Release()
	}
}

func (b *bureau) create(k, v int) {
	b.c.GetOrCreate(k, func() (int, error) { b.made[v].Add(1); return v, nil })
}

func (b *bureau) refresh(k, v int) {
	b.c.Refresh(context.Background(), k, func(context.Context, int, int, bool) (int, error) { b.made[v].Add(1); return v, nil })
}

// over closes the cache. Others are the reasons that no call returns.
func (b *bureau) over(others ...oncecache.Reason) {
	if err := b.c.Close(context.Background()); err != nil {
		b.m.Failf("Close returns %v", err)
	}
	for v := range b.made {
		if made, told := b.made[v].Value(), b.told[v].Value(); made != told {
			b.m.Failf("%d was made %d times and told %d times", v, made, told)
		}
		known := b.removed[v] == b.reasons[v]
		for _, why := range append(others, oncecache.ReasonClosed) {
			known = known || b.removed[v] == 0 && b.reasons[v] == why
		}
		if !known {
			b.m.Failf("%d was removed by %v, and told %v", v, b.removed[v], b.reasons[v])
		}
	}
	if n := oncecache.Pending(b.c); n != 0 {
		b.m.Failf("%d are pending", n)
	}
}

// Whoever is first of those that evict, delete, replace, discard and close a value, and
// whether it was made in time: the listener is told once, with the reason of the first,
// after the last lease and after Close.
func TestProtocolsOfRemovals(t *testing.T) {
	type threads = []func(*bureau)
	set := func(k, v int) func(*bureau) { return func(b *bureau) { b.set(k, v) } }
	deletes := func(b *bureau) { b.delete(1) }
	evicted, lost := oncecache.ReasonEvicted, oncecache.ReasonDiscarded
	closes := func(int, int) error { return nil }
	for _, tt := range []struct {
		name    string
		close   func(int, int) error
		explore extent
		threads threads
		others  []oncecache.Reason
	}{
		{"evict ∥ Delete", nil, everything, threads{set(2, 2), deletes}, []oncecache.Reason{evicted}},
		{"evict ∥ Set", nil, twice, threads{set(2, 2), set(1, 3)}, []oncecache.Reason{evicted}},
		{"evict ∥ Delete ∥ Set", nil, twice, threads{set(2, 2), deletes, set(1, 3)}, []oncecache.Reason{evicted}},
		{"evict ∥ Delete, with Close", closes, everything, threads{set(2, 2), deletes}, []oncecache.Reason{evicted}},
		{"Delete ∥ Set ∥ a lease", nil, twice, threads{deletes, set(1, 3), func(b *bureau) { b.hold(1, 4, false) }}, []oncecache.Reason{lost, evicted}},
		{"Discard ∥ Delete", nil, everything, threads{func(b *bureau) { b.hold(1, 4, true) }, deletes}, []oncecache.Reason{lost}},
		{"Delete ∥ a sweep", nil, everything, threads{deletes, func(b *bureau) { oncecache.SweepIdle(b.c) }}, []oncecache.Reason{oncecache.ReasonIdle}},
		{"Set ∥ Close", nil, twice, threads{set(1, 3), func(b *bureau) { _ = b.c.Close(context.Background()) }}, []oncecache.Reason{lost}},
		{"a creation ∥ Clear", nil, twice, threads{func(b *bureau) { b.create(2, 2) }, func(b *bureau) { b.c.Clear() }}, []oncecache.Reason{lost, evicted, oncecache.ReasonDeleted}},
		{"a creation ∥ Delete ∥ Set", nil, twice, threads{func(b *bureau) { b.delete(1); b.create(1, 4) }, deletes, set(1, 3)}, []oncecache.Reason{lost, evicted}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of(fmt.Sprint("MaxEntries is 1: ", tt.name)), func(m *mc.M) {
				b := listen(m, oncecache.Config[int, int]{MaxEntries: 1, Close: tt.close})
				b.set(1, 1)
				for _, f := range tt.threads {
					m.Go(func() { f(b) })
				}
				m.Final(func() { b.over(tt.others...) })
			})
		})
	}
}

// Close finds a value that a Refresh has just made: its reason is that it never was its key's.
func TestProtocolsOfRefreshBesideClose(t *testing.T) {
	mc.Check(t, twice.of("OnRemove: Refresh ∥ Close"), func(m *mc.M) {
		b := listen(m, oncecache.Config[int, int]{})
		b.set(1, 1)
		var got int
		var err error
		m.Go(func() {
			got, err = b.c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { b.made[2].Add(1); return 2, nil })
		})
		m.Go(func() { _ = b.c.Close(context.Background()) })
		m.Final(func() {
			b.over(oncecache.ReasonReplaced, oncecache.ReasonDiscarded)
			if wasKeys := b.reasons[1] == oncecache.ReasonReplaced; b.made[2].Value() == 1 && wasKeys != (b.reasons[2] == oncecache.ReasonClosed) {
				m.Failf("1 was told %v, and 2 was told %v; Refresh returned %d, %v", b.reasons[1], b.reasons[2], got, err)
			}
		})
	})
}

// The value that replaces another may leave while the cache asks whether it is the same.
func TestProtocolsOfValuesThatMayRecur(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Close, values refer to something: Set ∥ Delete"}, func(m *mc.M) {
		var closed atomics.Int32
		c := oncecache.MustNew(oncecache.Config[int, *int]{Close: func(int, *int) error { closed.Add(1); return nil }})
		c.Set(1, new(int))
		m.Go(func() { c.Set(1, new(int)) })
		m.Go(func() { c.Delete(1) })
		m.Final(func() {
			if err := c.Close(context.Background()); err != nil || closed.Load() != 2 {
				m.Failf("closed %d, %v", closed.Load(), err)
			}
		})
	})
}

// The very value comes again while it is deleted: it stays until then, or it comes anew.
func TestProtocolsOfTheVeryValue(t *testing.T) {
	mc.Check(t, twice.of("MaxEntries is 1, Close: Set of the very value ∥ Delete"), func(m *mc.M) {
		var closed, stays mc.Tally
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error { closed.Add(1); return nil }})
		c.Set(1, 1)
		m.Go(func() {
			if _, replaced := c.Set(1, 1); replaced {
				stays.Add(1)
			}
		})
		m.Go(func() { c.Delete(1) })
		m.Final(func() {
			err := c.Close(context.Background())
			if closed.Value()+stays.Value() != 2 || err != nil || oncecache.Pending(c) != 0 {
				m.Failf("it has stayed %d times, and is closed %d times; Close returns %v", stays.Value(), closed.Value(), err)
			}
		})
	})
}

// What a cache keeps of all keys together: calls for different keys meet there.

// A create function that still runs when Delete and Close have returned is
// cancelled, whichever of the two was first.
func TestCloseFindsHiddenCreations(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreateContext(in it Delete) ∥ Close(ended)"}, func(m *mc.M) {
		c := new(cache)
		var closed atomics.Bool
		ended, end := atomics.WithCancel(context.Background())
		end()
		m.Go(func() {
			c.GetOrCreateContext(context.Background(), key, func(ctx context.Context, _ string) (int, error) {
				c.Delete(key)
				if closed.Load() && ctx.Err() == nil {
					m.Failf("Delete and Close have returned, and the creation is not cancelled")
				}
				return 1, nil
			})
		})
		m.Go(func() {
			c.Close(ended)
			closed.Store(true)
		})
	})
}

// The same of a creation that Delete is about to hide: few interleavings, so that a sample has them.
func TestCloseFindsACreationThatIsBeingHidden(t *testing.T) {
	mc.Check(t, twice.of("GetOrCreateContext(in it the last step of Delete) ∥ Close(ended)"), func(m *mc.M) {
		c := new(cache)
		ended, end := atomics.WithCancel(context.Background())
		end()
		taken, closed := atomics.MakeEvent(), atomics.MakeEvent()
		m.Go(func() {
			c.GetOrCreateContext(context.Background(), key, func(ctx context.Context, _ string) (int, error) {
				finish := oncecache.StartDelete(c, key)
				taken.Fire()
				finish()
				closed.Wait()
				if ctx.Err() == nil {
					m.Failf("Delete and Close have returned, and the creation is not cancelled")
				}
				return 1, nil
			})
		})
		m.Go(func() {
			taken.Wait()
			c.Close(ended)
			closed.Fire()
		})
	})
}

// A creation that Delete has hidden is kept no longer than it runs, whichever of
// the two comes first.
func TestHiddenCreationsAreLetGo(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreateContext ∥ Delete"}, func(m *mc.M) {
		c := new(cache)
		m.Go(func() {
			c.GetOrCreateContext(context.Background(), key, func(context.Context, string) (int, error) { return 1, nil })
		})
		m.Go(func() { c.Delete(key) })
		m.Final(func() {
			if n := oncecache.Hidden(c); n != 0 {
				m.Failf("%d creations that have ended are kept", n)
			}
		})
	})
}

// All creations that Delete has hidden are cancelled by Close, and none is lost
// because others are hidden at the same moment, or because the function that
// closes another value ends Close's goroutine.
func TestCloseFindsAllHiddenCreations(t *testing.T) {
	mc.Check(t, twice.of("GetOrCreateContext(in it Delete), of a ∥ the same of b ∥ Close(ended) when both are deleted"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(k string, _ int) error {
			if k == "c" {
				runtime.Goexit()
			}
			return nil
		}})
		c.Set("c", 7)
		ended, end := atomics.WithCancel(context.Background())
		end()
		var hidden atomics.WaitGroup
		hidden.Add(2)
		closed := atomics.MakeEvent()
		for _, k := range []string{"a", "b"} {
			m.Go(func() {
				c.GetOrCreateContext(context.Background(), k, func(ctx context.Context, k string) (int, error) {
					c.Delete(k)
					hidden.Done()
					closed.Wait()
					if ctx.Err() == nil {
						m.Failf("Close has returned, and the creation of %s is not cancelled", k)
					}
					return 1, nil
				})
			})
		}
		m.Go(func() {
			defer closed.Fire()
			hidden.Wait()
			c.Close(ended)
		})
	})
}

// A Close function that always fails: Close returns each of the errors, or
// counts it if there are too many. If it does not wait, these are the errors so
// far.
func TestProtocolsOfTroubles(t *testing.T) {
	for _, before := range []int{0, maxTroubles - 1, maxTroubles} {
		after := fmt.Sprintf("after %d errors: ", before)
		t.Run(fmt.Sprint("two, after ", before), func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: after + "Delete(a) ∥ Delete(b)"}, func(m *mc.M) {
				c := troubled(before, "a", "b")
				m.Go(func() { c.Delete("a") })
				m.Go(func() { c.Delete("b") })
				m.Final(func() {
					err := c.Close(context.Background())
					if n := troubles(m, err, nil); n != before+2 {
						m.Failf("%d errors, want %d: %v", n, before+2, err)
					}
				})
			})
		})
		t.Run(fmt.Sprint("Close, after ", before), func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: after + "Delete(a) ∥ Close(∞)"}, func(m *mc.M) {
				c := troubled(before, "a")
				m.Go(func() { c.Delete("a") })
				m.Go(func() {
					err := c.Close(context.Background())
					if n := troubles(m, err, nil); n != before+1 {
						m.Failf("%d errors, want %d: %v", n, before+1, err)
					}
				})
			})
		})
		t.Run(fmt.Sprint("Close that does not wait, after ", before), func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: after + "Delete(a) ∥ Close(ended)"}, func(m *mc.M) {
				c := troubled(before, "a")
				ended, end := atomics.WithCancel(context.Background())
				end()
				m.Go(func() { c.Delete("a") })
				m.Go(func() {
					err := c.Close(ended)
					if n := troubles(m, err, context.Canceled); n != before && n != before+1 {
						m.Failf("%d errors, want %d or one more: %v", n, before, err)
					}
				})
			})
		})
	}
}

// maxTroubles is how many errors a cache keeps.
const maxTroubles = 100

// troubled returns a cache with values for keys, whose Close function always
// fails and has done so already.
func troubled(before int, keys ...string) *cache {
	c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(_ string, v int) error { return refused(v) }})
	for v := range before {
		c.Set("k", v)
	}
	c.Delete("k")
	for i, k := range keys {
		c.Set(k, before+i)
	}
	return c
}

// troubles returns how many errors of the Close function are in err, with
// those that it only counts. Beside them there may be one that is gaveUp.
func troubles(m *mc.M, err, gaveUp error) (n int) {
	if _, joined := err.(interface{ Unwrap() []error }); !joined {
		if !errors.Is(err, gaveUp) {
			m.Failf("Close returns %v", err)
		}
		return 0
	}
	told := map[error]bool{}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		more := 0
		switch _, isRefused := e.(refused); {
		case isRefused && !told[e]:
			told[e] = true
			n++
		case errors.Is(e, gaveUp):
		default:
			if _, err := fmt.Sscanf(e.Error(), "oncecache: and %d more errors", &more); err != nil || more == 0 {
				m.Failf("Close returns %v", e)
			}
			n += more
		}
	}
	if n == 0 {
		m.Failf("Close joins %v with nothing", err)
	}
	return n
}
