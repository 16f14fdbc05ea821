//go:build !modelcheck

package oncecache_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

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
