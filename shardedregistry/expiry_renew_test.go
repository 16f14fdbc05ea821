//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Renew puts the deadline of a version off or brings it forward, from now on, and nothing
// else changes.
func TestRenew(t *testing.T) {
	const never = math.MaxInt64
	for name, c := range layouts(lasting(10 * time.Second)) {
		for _, step := range []time.Duration{time.Second, 9 * time.Second, 10*time.Second - 1} {
			for _, ttl := range []time.Duration{1, time.Second, 10 * time.Second, time.Hour, never, 0, -1} {
				synctest.Test(t, func(t *testing.T) {
					r := shardedregistry.MustNew(c)
					ctx, cancel := context.WithCancel(t.Context())
					version := mustPut(t, r, "k", 1)
					synctest.Wait()
					got := following(ctx, r, c)
					synctest.Wait()
					renew := func() error { return r.Renew("k", version, ttl) }
					for range 3 {
						time.Sleep(min(step, max(ttl-1, 0)))
						if ttl <= 0 || ttl == 1 {
							break
						}
						synctest.Wait()
						if err := renew(); err != nil {
							t.Fatalf("%s: Renew = %v", name, err)
						}
					}
					if err := renew(); err != nil {
						t.Fatalf("%s: Renew = %v", name, err)
					}
					if ttl > 0 {
						time.Sleep(min(ttl, 10*time.Hour) - 1)
						synctest.Wait()
						if e, ok := r.Lookup("k"); !ok || e.Version != version || e.Value != 1 {
							t.Errorf("%s, renewed for %v: %v, %t before that", name, ttl, e, ok)
						}
					}
					time.Sleep(time.Millisecond)
					synctest.Wait()
					if _, ok := r.Get("k"); ok != (ttl == never) {
						t.Errorf("%s, renewed for %v: there after that: %t", name, ttl, ok)
					}
					cancel()
					synctest.Wait()
					for loop, events := range got { // that of WatchFrom may show what was there before
						for _, e := range *events {
							if e != (event{"k", 1, version, false, false}) && (ttl == never || e != event{"k", 1, version + 1, true, true}) {
								t.Errorf("%s: %s yields %v", name, loop, *events)
							}
						}
					}
				})
			}
		}
	}
}

// A call that comes too late, or for another version, changes nothing.
func TestRenewFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := lasting(time.Second)
		c.Normalize = normalize
		r := shardedregistry.MustNew(c)
		if err := r.Renew("k", 1, time.Hour); err != shardedregistry.ErrNotFound {
			t.Errorf("absent: %v", err)
		}
		if err := r.Renew(" ", 1, time.Hour); !errors.Is(err, shardedregistry.ErrInvalidKey) {
			t.Errorf("invalid: %v", err)
		}
		old := mustPut(t, r, "k", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := r.Renew("K", old, time.Hour); err != shardedregistry.ErrNotFound {
			t.Errorf("expired: %v", err)
		}
		now := mustPut(t, r, "k", 2)
		var conflict *shardedregistry.ConflictError
		if err := r.Renew("k", old, time.Hour); !errors.As(err, &conflict) || conflict.Have != now || conflict.Want != old {
			t.Errorf("another version: %v", err)
		}
		if err := r.Renew("K", now, 2*time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		wantValue(t, r, "k", 2)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if r.Len() != 0 {
			t.Error("the call that failed has renewed the other version")
		}
	})
}

func TestRenewWithoutTTL(t *testing.T) {
	var zero shardedregistry.Registry[string, int]
	for name, r := range map[string]*shardedregistry.Registry[string, int]{
		"zero": &zero, "indexed": shardedregistry.MustNew(config{History: 1024}),
	} {
		func() {
			defer func() {
				if v := recover(); v != "shardedregistry: Renew without Config.TTL" {
					t.Errorf("%s: the panic is %v", name, v)
				}
			}()
			r.Renew("k", 1, time.Hour)
		}()
	}
}

// When a timer has decided that an entity expires, and stalls, the entity is there until it is
// deleted; it cannot be renewed any more, and whoever tries deletes it.
func TestRenewHelps(t *testing.T) {
	for name, c := range layouts(lasting(time.Hour)) {
		synctest.Test(t, func(t *testing.T) {
			r := shardedregistry.MustNew(c)
			version := mustPut(t, r, "k", 1)
			ctx, cancel := context.WithCancel(t.Context())
			got := following(ctx, r, c)
			synctest.Wait()
			shardedregistry.Claim(r, "k")
			wantValue(t, r, "k", 1)
			if err := r.Renew("k", version, time.Hour); err != shardedregistry.ErrNotFound {
				t.Errorf("%s: %v", name, err)
			}
			if _, ok := r.Get("k"); ok {
				t.Errorf("%s: it is there", name)
			}
			synctest.Wait()
			if n := shardedregistry.Linked(r); n != 0 {
				t.Errorf("%s: %d are linked", name, n)
			}
			cancel()
			synctest.Wait()
			for loop, events := range got {
				if !slices.Contains(*events, event{"k", 1, version + 1, true, true}) {
					t.Errorf("%s: %s yields %v", name, loop, *events)
				}
			}
			if n, _ := shardedregistry.Scheduled(r); n != 0 {
				t.Errorf("%s: %d are scheduled", name, n)
			}
		})
	}
}

// What has been claimed and is replaced before it is deleted lives on with its new deadline.
func TestReplacedInTime(t *testing.T) {
	for way, store := range stores {
		if creates(way) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			r := shardedregistry.MustNew(lasting(time.Minute))
			mustPut(t, r, "k", 1)
			shardedregistry.Claim(r, "k")
			if err := store(r); err != nil {
				t.Fatal(err)
			}
			shardedregistry.Expire(r, "k")
			e, ok := r.Lookup("k")
			if !ok || e.Version != 2 {
				t.Errorf("%s: %v, %t", way, e, ok)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if _, ok := r.Get("k"); ok {
				t.Errorf("%s: there after the deadline", way)
			}
		})
	}
}

// To renew, and to put a deadline off, moves nothing in a schedule and allocates nothing.
func TestRenewAllocates(t *testing.T) {
	r := shardedregistry.MustNew(lasting(time.Hour))
	version := mustPut(t, r, "k", 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := r.Renew("k", version, 2*time.Hour); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("Renew: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { mustPut(t, r, "k", 2) }); n != 1 {
		t.Errorf("Put: %v allocations, want the record", n)
	}
}
