//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

type config = shardedregistry.Config[string, int]

// lasting returns settings whose entities live for d.
func lasting(d time.Duration) config {
	return config{TTL: func(string, int) time.Duration { return d }}
}

// shapes are settings under which records have different parts.
func shapes(c config) iter.Seq2[string, config] {
	return func(yield func(string, config) bool) {
		for i := range 1 << 3 {
			c, name := c, ""
			if i&1 != 0 {
				name += " Indexes"
				c.Indexes = map[string]func(string, int) []string{"odd": func(_ string, v int) []string { return []string{strconv.Itoa(v % 2)} }}
				c.UniqueIndexes = map[string]func(string, int) []string{"key": func(k string, _ int) []string { return []string{k} }}
			}
			if i&2 != 0 {
				name += " History"
				c.History = 1 << 10
			}
			if !yield(name, c) {
				return
			}
		}
	}
}

// stores are the ways to store a value for the key k.
var stores = map[string]func(r *shardedregistry.Registry[string, int]) error{
	"Create": func(r *shardedregistry.Registry[string, int]) error { _, err := r.Create("k", 1); return err },
	"Put":    func(r *shardedregistry.Registry[string, int]) error { _, err := r.Put("k", 1); return err },
	"Update": func(r *shardedregistry.Registry[string, int]) error { _, err := r.Update("k", constant); return err },
	"UpdateIf": func(r *shardedregistry.Registry[string, int]) error {
		e, _ := r.Lookup("k")
		_, err := r.UpdateIf("k", e.Version, 1)
		return err
	},
	"Compute": func(r *shardedregistry.Registry[string, int]) error {
		_, _, err := r.Compute("k", func(int, bool) (int, shardedregistry.ComputeOp, error) { return 1, shardedregistry.UpdateOp, nil })
		return err
	},
	"GetOrCreate": func(r *shardedregistry.Registry[string, int]) error {
		_, created, err := r.GetOrCreate("k", answer(1, nil))
		if !created {
			return shardedregistry.ErrExists
		}
		return err
	},
	"Replace": func(r *shardedregistry.Registry[string, int]) error {
		return r.Replace(maps.All(map[string]int{"k": 1}), nil)
	},
	"Transact": func(r *shardedregistry.Registry[string, int]) error {
		return r.Transact(func(tx *tx) error { tx.Get("other"); return tx.Put("k", 1) })
	},
}

func constant(int) (int, error) { return 1, nil }

// creates and replaces say which of stores need the key to be absent or present.
func creates(name string) bool  { return name == "Create" || name == "GetOrCreate" }
func replaces(name string) bool { return strings.Contains(name, "Upd") }

// However a value was stored, and whatever the registry has besides: it is there until its
// deadline and then gone, and all are told that it has expired.
func TestExpiry(t *testing.T) {
	for way, store := range stores {
		for name, c := range shapes(lasting(10 * time.Millisecond)) {
			synctest.Test(t, func(t *testing.T) {
				first, base := math.MaxInt64*time.Nanosecond, c.TTL
				c.TTL = func(k string, v int) time.Duration {
					if v == 0 {
						return first
					}
					return base(k, v)
				}
				r := shardedregistry.MustNew(c)
				if replaces(way) {
					mustPut(t, r, "k", 0)
				}
				ctx, cancel := context.WithCancel(t.Context())
				got := following(ctx, r, c)
				synctest.Wait()
				if err := store(r); err != nil {
					t.Fatalf("%s,%s: %v", way, name, err)
				}
				time.Sleep(10*time.Millisecond - 1)
				synctest.Wait()
				e, ok := r.Lookup("k")
				if !ok || e.Value != 1 || r.Len() != 1 {
					t.Errorf("%s,%s: %v, %t before the deadline", way, name, e, ok)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if v, ok := r.Get("k"); ok || r.Len() != 0 || r.Snapshot().Len() != 0 || shardedregistry.Linked(r) != 0 {
					t.Errorf("%s,%s: %d, %t after the deadline; Len is %d, %d linked", way, name, v, ok, r.Len(), shardedregistry.Linked(r))
				}
				if c.Indexes != nil {
					if values := slices.Collect(r.IndexValues("odd")); len(values) != 0 {
						t.Errorf("%s,%s: %v are left in the index", way, name, values)
					}
				}
				cancel()
				synctest.Wait()
				want := event{Key: "k", Value: 1, Version: e.Version + 1, Deleted: true, Expired: true}
				for loop, events := range got {
					if last := (*events)[len(*events)-1]; last != want {
						t.Errorf("%s,%s: %s ends with %v, want %v", way, name, loop, last, want)
					}
				}
				if n, _ := shardedregistry.Scheduled(r); n != 0 {
					t.Errorf("%s,%s: %d are scheduled", way, name, n)
				}
				if v := mustPut(t, r, "k", 0); v <= want.Version {
					t.Errorf("%s,%s: version %d comes after %d", way, name, v, want.Version)
				}
				wantTraces(t, r)
			})
		}
	}
}

// following begins all loops that tell of changes, and returns where they put what they
// yield.
func following(ctx context.Context, r *shardedregistry.Registry[string, int], c config) map[string]*[]event {
	got := map[string]*[]event{"Watch": {}, "WatchSnapshot": {}}
	go func() {
		for e := range r.Watch(ctx) {
			*got["Watch"] = append(*got["Watch"], e)
		}
	}()
	go func() {
		for s, e := range r.WatchSnapshot(ctx) {
			if s == nil {
				*got["WatchSnapshot"] = append(*got["WatchSnapshot"], e)
			}
		}
	}()
	if c.History > 0 {
		all := &[]event{}
		got["WatchFrom"] = all
		go func() {
			for e := range r.WatchFrom(ctx, 0) {
				*all = append(*all, e.Event)
			}
		}()
	}
	return got
}

// A call that deletes is told as such, and so is what is created again.
func TestDeletedIsNotExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := lasting(time.Second)
		c.History = 100
		r := shardedregistry.MustNew(c)
		ctx, cancel := context.WithCancel(t.Context())
		got := following(ctx, r, c)
		synctest.Wait()
		mustPut(t, r, "k", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		mustPut(t, r, "k", 2)
		synctest.Wait()
		r.Delete("k")
		synctest.Wait()
		mustPut(t, r, "k", 3)
		synctest.Wait()
		r.DeleteIf("k", 5)
		synctest.Wait()
		mustPut(t, r, "k", 4)
		synctest.Wait()
		r.Clear()
		synctest.Wait()
		cancel()
		synctest.Wait()
		for loop, events := range got {
			if loop == "WatchSnapshot" {
				continue // Watch, but for the snapshot
			}
			wantEvents(t, *events, event{"k", 1, 1, false, false}, event{"k", 1, 2, true, true}, event{"k", 2, 3, false, false},
				event{"k", 2, 4, true, false}, event{"k", 3, 5, false, false}, event{"k", 3, 6, true, false},
				event{"k", 4, 7, false, false}, event{"k", 4, 8, true, false})
		}
	})
}

// Each version has its own deadline: a change may put it off or bring it forward, and the
// deadline of the version before no longer matters.
func TestVersionsHaveDeadlines(t *testing.T) {
	const day = 24 * time.Hour
	for _, lives := range [][]time.Duration{
		{time.Minute, time.Hour}, {time.Hour, time.Minute}, {math.MaxInt64, time.Minute}, {time.Minute, math.MaxInt64},
		{time.Hour, time.Minute, day}, {time.Hour, day, time.Minute}, {time.Minute, math.MaxInt64, time.Hour}, {day, 0}, {1, day}, // not 0 at first: the timer may come before the next version
	} {
		for way, store := range stores {
			if creates(way) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				next := 0
				r := shardedregistry.MustNew(config{TTL: func(k string, _ int) time.Duration {
					next++
					return lives[next-1]
				}})
				mustPut(t, r, "k", 1)
				for range lives[1:] {
					if err := store(r); err != nil {
						t.Fatal(err)
					}
				}
				last := lives[len(lives)-1]
				if last == math.MaxInt64 {
					time.Sleep(100 * 365 * day)
					synctest.Wait()
					wantValue(t, r, "k", 1)
					return
				}
				time.Sleep(max(0, last-1))
				if last > 0 {
					synctest.Wait()
					wantValue(t, r, "k", 1)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if _, ok := r.Get("k"); ok || next != len(lives) {
					t.Errorf("%v by %s: there at the end: %t; TTL was called %d times", lives, way, ok, next)
				}
				if n, _ := shardedregistry.Scheduled(r); n != 0 {
					t.Errorf("%v by %s: %d are scheduled", lives, way, n)
				}
			})
		}
	}
}

// TTL may return anything, and sums may overflow.
func TestExtremeTTL(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for _, tt := range []struct {
		ttl         time.Duration
		soon, later bool // whether it is there when timers have run, and two centuries later
	}{
		{0, false, false}, {-1, false, false}, {math.MinInt64, false, false}, {1, true, false}, {century, true, false},
		{math.MaxInt64 - 1, true, true}, {math.MaxInt64 - time.Hour, true, true},
		{math.MaxInt64 - time.Hour - 2*time.Microsecond, true, true}, // which overflows when it is rounded up {math.MaxInt64, true, true},
	} {
		for how, store := range map[string]func(r *shardedregistry.Registry[string, int]){
			"Put": func(r *shardedregistry.Registry[string, int]) { r.Put("k", 1) },
			"Renew": func(r *shardedregistry.Registry[string, int]) {
				version, _ := r.Put("k", 0)
				if err := r.Renew("k", version, tt.ttl); err != nil {
					t.Error(err)
				}
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := shardedregistry.MustNew(config{TTL: func(_ string, v int) time.Duration {
					if v == 0 {
						return time.Minute
					}
					return tt.ttl
				}})
				time.Sleep(time.Hour + time.Microsecond)
				store(r)
				for i := range 100 {
					mustPut(t, r, key(i), 0) // which expire all the same
				}
				time.Sleep(0)
				synctest.Wait()
				if _, ok := r.Get("k"); ok != tt.soon {
					t.Errorf("%s of %v: there at once: %t", how, tt.ttl, ok)
				}
				time.Sleep(century)
				time.Sleep(century)
				synctest.Wait()
				if _, ok := r.Get("k"); ok != tt.later {
					t.Errorf("%s of %v: there at last: %t", how, tt.ttl, ok)
				}
				if n := r.Len(); n > 1 {
					t.Errorf("%s of %v: %d others are there", how, tt.ttl, n)
				}
			})
		}
	}
}

// Deadlines are rounded up, so that one timer serves those within a millisecond.
func TestDeadlinesAreRounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(lasting(1500 * time.Microsecond))
		mustPut(t, r, "k", 1)
		time.Sleep(2*time.Millisecond - 1)
		synctest.Wait()
		shardedregistry.Expire(r, "k") // as a timer that fires too early
		shardedregistry.ExpireAll(r)
		wantValue(t, r, "k", 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if r.Len() != 0 {
			t.Error("it is there after 2 ms")
		}
	})
}

// TTL is called once for what is stored, with the key as it is stored,
// under no lock, and not if Check rejects the value.
func TestTTLIsCalled(t *testing.T) {
	var (
		calls []string
		r     *shardedregistry.Registry[string, *int]
	)
	r = shardedregistry.MustNew(shardedregistry.Config[string, *int]{
		Shards:    1,
		Normalize: normalize,
		Check: func(_ string, v *int) error {
			if *v < 0 {
				return errTest
			}
			return nil
		},
		TTL: func(k string, v *int) time.Duration {
			calls = append(calls, fmt.Sprint(k, *v))
			if k == "a" {
				n := 5
				mustPut(t, r, "inner", &n)
				r.Delete("inner")
			}
			return time.Hour
		},
	})
	n := 1
	mustPut(t, r, " A", &n)
	if v, _ := r.Get("a"); *v != 1 {
		t.Errorf("the value is %d", *v)
	}
	n = -1
	if _, err := r.Put("a", &n); err != errTest {
		t.Error(err)
	}
	if want := []string{"a1", "inner5"}; !slices.Equal(calls, want) {
		t.Errorf("TTL was called for %q, want %q", calls, want)
	}
}

// Where TTL panics or exits, nothing has changed, and nothing waits for a timer.
func TestTTLFails(t *testing.T) {
	for way, store := range stores {
		for how, fail := range map[string]func(){"panics": func() { panic(errTest) }, "exits": runtime.Goexit} {
			for name, c := range shapes(config{}) {
				failing := false
				c.TTL = func(string, int) time.Duration {
					if failing {
						fail()
					}
					return time.Hour
				}
				r := shardedregistry.MustNew(c)
				if !creates(way) {
					mustPut(t, r, "k", 7)
				}
				before, present := r.Lookup("k")
				scheduled, _ := shardedregistry.Scheduled(r)
				failing = true
				within(t, func() {
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() {
							if v := recover(); how == "panics" != (v == errTest) {
								t.Errorf("%s,%s: the panic is %v", way, name, v)
							}
						}()
						store(r)
						t.Errorf("%s,%s: it returns", way, name)
					}()
					<-done
				})
				failing = false
				after, ok := r.Lookup("k")
				if n, _ := shardedregistry.Scheduled(r); after != before || ok != present || n != scheduled {
					t.Errorf("%s,%s: %v, %t afterwards, %v, %t before; %d scheduled", way, name, after, ok, before, present, n)
				}
				within(t, func() { mustPut(t, r, "k", 8) })
			}
		}
	}
}

// A restored registry gives each entity a new deadline, and no timer runs before all are
// there.
func TestRestoreWithTTL(t *testing.T) {
	for name, c := range shapes(lasting(time.Minute)) {
		synctest.Test(t, func(t *testing.T) {
			r := shardedregistry.MustNew(c)
			for i := range 100 {
				mustPut(t, r, key(i), i)
			}
			saved := r.Snapshot()
			time.Sleep(30 * time.Second)
			slow := func(yield func(shardedregistry.Entry[string, int]) bool) {
				for e := range saved.Entries() {
					e.Version += 10
					if !yield(e) {
						return
					}
					time.Sleep(time.Second)
					synctest.Wait()
				}
			}
			again, err := shardedregistry.Restore(c, 0, slow)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			n := again.Len()
			if n != 60 && n != 59 { // the others have expired
				t.Errorf("%s: %d were restored", name, n)
			}
			for e := range again.Entries() {
				if e.Version != 11 {
					t.Errorf("%s: %v was restored", name, e)
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if again.Len() != 0 {
				t.Errorf("%s: %d are left", name, again.Len())
			}
		})
	}
}

// What expires at once is restored with its version all the same.
func TestRestoreWhatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, err := shardedregistry.Restore(lasting(0), 0, func(yield func(shardedregistry.Entry[string, int]) bool) {
			yield(shardedregistry.Entry[string, int]{Key: "k", Value: 1, Version: 10})
			synctest.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := again.Len(); n != 0 {
			t.Errorf("%d are there", n)
		}
		if v := mustPut(t, again, "k", 2); v != 12 {
			t.Errorf("version %d follows 10 and its deletion", v)
		}
	})
}

// A snapshot has what was there at its cut, also if that expires while it is taken.
func TestExpiryDuringSnapshot(t *testing.T) {
	for name, c := range shapes(config{TTL: func(_ string, v int) time.Duration { return time.Duration(v) * time.Millisecond }}) {
		synctest.Test(t, func(t *testing.T) {
			r := shardedregistry.MustNew(c)
			mustPut(t, r, "k", 1)
			taking := shardedregistry.Join(r)
			mustPut(t, r, "dated", 2)
			if !taking.Collect() {
				t.Fatal("not the last cut")
			}
			mustPut(t, r, "dated", 3)
			time.Sleep(time.Hour)
			synctest.Wait()
			if r.Len() != 0 {
				t.Errorf("%s: %d have not expired", name, r.Len())
			}
			want := map[string]int{"k": 1, "dated": 2}
			if got := maps.Collect(taking.Leave().All()); !maps.Equal(got, want) {
				t.Errorf("%s: the snapshot has %v, want %v", name, got, want)
			}
			if n := shardedregistry.Linked(r); n != 0 {
				t.Errorf("%s: %d are linked", name, n)
			}
		})
	}
}

// Many entities expire together.
func TestManyExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(config{TTL: func(_ string, v int) time.Duration { return time.Duration(v%7+1) * time.Second }})
		const n = 10_000
		for i := range n {
			mustPut(t, r, key(i), i)
		}
		for i := range 7 {
			time.Sleep(time.Second)
			synctest.Wait()
			left := 0
			for j := range n {
				if j%7 > i {
					left++
				}
			}
			if got := r.Len(); got != left {
				t.Errorf("after %d seconds %d are there, want %d", i+1, got, left)
			}
		}
		if n, space := shardedregistry.Scheduled(r); n != 0 || space > shardedregistry.Schedules*256 {
			t.Errorf("%d are scheduled, with room for %d", n, space)
		}
	})
}

// What is deleted by calls, or changes all the time, leaves nothing in the schedules.
func TestScheduleIsBounded(t *testing.T) {
	r := shardedregistry.MustNew(lasting(time.Hour))
	for i := range iterations(20_000) {
		k := key(i % 50)
		mustPut(t, r, k, i)
		mustPut(t, r, k, i)
		if i%3 == 0 {
			r.Delete(k)
		}
	}
	if n, space := shardedregistry.Scheduled(r); n != r.Len() || space > 10*shardedregistry.Schedules*50 {
		t.Errorf("%d entities, %d scheduled, with room for %d", r.Len(), n, space)
	}
	for name, clear := range map[string]func(){
		"DeleteFunc": func() { r.DeleteFunc(func(string, int) bool { return true }) },
		"Clear":      func() { r.Clear() },
		"Replace":    func() { r.Replace(maps.All(map[string]int{}), nil) },
	} {
		if clear(); r.Len() != 0 {
			t.Errorf("%s leaves %d entities", name, r.Len())
		}
		if n, _ := shardedregistry.Scheduled(r); n != 0 {
			t.Errorf("%s leaves %d in the schedules", name, n)
		}
		mustPut(t, r, "a", 1)
		mustPut(t, r, "b", 1)
	}
}

// What is deleted gives its room in the schedules back, now and then.
func TestSchedulesShrink(t *testing.T) {
	const n = 20_000
	r := shardedregistry.MustNew(lasting(time.Hour))
	for i := range n {
		mustPut(t, r, key(i), i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		r.Delete(key(i))
	}
	runtime.ReadMemStats(&after)
	if _, space := shardedregistry.Scheduled(r); space > 64*shardedregistry.Schedules {
		t.Errorf("there is room for %d in the schedules of nothing", space)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 1000 {
		t.Errorf("a deletion takes %d bytes", each)
	}
}

// Of a timer that has fired nothing is kept, though its registry is in use.
func TestFiredTimersLeaveNothing(t *testing.T) {
	r := shardedregistry.MustNew(lasting(20 * time.Millisecond))
	left := func() bool { return false }
	for !left() { // the first may have fired before it is found
		mustPut(t, r, "k", 1)
		left = shardedregistry.TimerOf(r, "k")
	}
	for began := time.Now(); left(); runtime.GC() {
		if runtime.Gosched(); time.Since(began) > 10*time.Second {
			t.Fatal("it is kept")
		}
	}
	runtime.KeepAlive(r)
}

// Neither is anything of a timer that an earlier one replaces.
func TestReplacedTimersLeaveNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as in TestTimersGoWithTheirRegistry
	const n = 5000
	r := shardedregistry.MustNew(lasting(10_000 * time.Hour))
	version := mustPut(t, r, "k", 1)
	renewals := 0
	renew := func() {
		for range n {
			renewals++
			if err := r.Renew("k", version, 9000*time.Hour-time.Duration(renewals)*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	renew()
	heap()
	before := heap()
	renew()
	for began := time.Now(); ; runtime.Gosched() {
		left := (heap() - before) / n
		if left < 30 {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d bytes are left of each timer", left)
		}
	}
	runtime.KeepAlive(r)
}

// A timer keeps no registry alive.
func TestTimersKeepNothing(t *testing.T) {
	dropped := func() weak.Pointer[shardedregistry.Registry[string, int]] {
		r := shardedregistry.MustNew(lasting(time.Hour))
		for i := range 100 {
			mustPut(t, r, key(i), i)
		}
		return weak.Make(r)
	}()
	value := func() weak.Pointer[[1 << 10]byte] {
		r := shardedregistry.MustNew(shardedregistry.Config[string, *[1 << 10]byte]{TTL: func(string, *[1 << 10]byte) time.Duration { return time.Hour }})
		v := new([1 << 10]byte)
		mustPut(t, r, "a", v)
		return weak.Make(v)
	}()
	for began := time.Now(); dropped.Value() != nil || value.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("not collected")
		}
	}
}

// Of registries that nobody uses any more no timers are left, though none fires.
func TestTimersGoWithTheirRegistry(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // each processor forgets its stopped timers when it looks for what to run
	const n = 200
	config := shardedregistry.Config[int, int]{Shards: 1, TTL: func(int, int) time.Duration { return 1000 * time.Hour }}
	use := func(i int) {
		r := shardedregistry.MustNew(config)
		for k := range 64 {
			mustPut(t, r, k, i)
		}
		if i%2 == 0 {
			r.Clear()
		}
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for i := range n { // the runtime keeps the room that so many timers have had
		use(i)
	}
	heap()
	before := heap()
	for i := range n {
		use(i)
	}
	for began := time.Now(); ; runtime.Gosched() { // until cleanups have run, on their goroutine
		left := (heap() - before) / n
		if left < 1000 {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d bytes are left of each registry, for 1000 hours", left)
		}
	}
}

// A timer that was made in a bubble may be stopped there only: it is left alone when its
// registry is garbage.
func TestTimersOfABubble(t *testing.T) {
	gone := make(chan struct{})
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(lasting(time.Hour))
		mustPut(t, r, "a", 1)
		runtime.AddCleanup(r, func(gone chan struct{}) { close(gone) }, gone)
	})
	for began := time.Now(); ; runtime.GC() {
		select {
		case <-gone:
			for range 10 { // and the root goes
				runtime.GC()
				runtime.Gosched()
			}
			return
		default:
		}
		if time.Since(began) > 10*time.Second {
			t.Skip("not collected")
		}
	}
}

// A transaction that is in the way of a timer is finished.
func TestExpiryMeetsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(lasting(time.Second))
		mustPut(t, r, "k", 1)
		runs := 0
		err := r.Transact(func(tx *tx) error {
			runs++
			v, ok := tx.Get("k")
			if runs == 1 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if ok != (runs == 1) {
				t.Errorf("run %d finds %d, %t", runs, v, ok)
			}
			return tx.Put("other", v)
		})
		if err != nil || runs != 2 {
			t.Errorf("%v after %d runs", err, runs)
		}
		wantValue(t, r, "other", 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if r.Len() != 0 {
			t.Errorf("%d are left", r.Len())
		}
	})
}

// A schedule keeps nothing of what was deleted.
func TestSchedulesKeepNothingDeleted(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, *[1 << 10]int]{
		TTL: func(string, *[1 << 10]int) time.Duration { return time.Hour },
	})
	var gone []weak.Pointer[[1 << 10]int]
	for i := range 100 {
		value := new([1 << 10]int)
		r.Put(key(i), value)
		gone = append(gone, weak.Make(value))
	}
	for i := range 90 {
		r.Delete(key(i))
	}
	runtime.GC()
	if slices.ContainsFunc(gone[:90], func(p weak.Pointer[[1 << 10]int]) bool { return p.Value() != nil }) {
		t.Error("a value is kept that was deleted")
	}
	r.Clear()
}

// Renew puts the deadline of a version off or brings it forward, from now on, and nothing
// else changes.
func TestRenew(t *testing.T) {
	const never = math.MaxInt64
	for name, c := range shapes(lasting(10 * time.Second)) {
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
	for name, c := range shapes(lasting(time.Hour)) {
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

// A timer fires for the earliest deadline of its schedule, also if that is the last one that was given.
func TestEarlierDeadlineComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for keys := 2; keys < 5; keys++ {
			r := shardedregistry.MustNew(config{TTL: func(_ string, v int) time.Duration { return time.Duration(v) * time.Minute }})
			shardedregistry.SetHash(r, func(string) uint64 { return 1 << 63 }) // one schedule
			for i := keys; i > 0; i-- {
				mustPut(t, r, key(i), 10*i)
			}
			for left := keys - 1; left >= 0; left-- {
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := r.Len(); n != left {
					t.Errorf("%d keys of %d are left, want %d", n, keys, left)
				}
			}
		}
	})
}

// A timer that an earlier one replaces is stopped, and not left behind until it fires.
func TestReplacedTimersAreStopped(t *testing.T) {
	r := shardedregistry.MustNew(lasting(1000 * time.Hour))
	version := mustPut(t, r, "k", 1)
	stopped := 0
	for i := range 3 {
		shardedregistry.OnStop(r, "k", func() { stopped++ })
		if err := r.Renew("k", version, time.Duration(100-i)*time.Hour); err != nil || stopped != i+1 {
			t.Errorf("%d timers are stopped after %d renewals, %v", stopped, i+1, err)
		}
	}
}

// A deletion leaves the others in the order of their deadlines. The last of the schedule takes the place of what is
// deleted: that may be below one with a later deadline.
func TestDeletionKeepsDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		minutes := []int{1, 10, 2, 11, 12, 20, 3} // each is after that at half its index, so all are in this order in the heap
		for _, deleted := range minutes {
			r := shardedregistry.MustNew(config{TTL: func(_ string, v int) time.Duration { return time.Duration(v) * time.Minute }})
			shardedregistry.SetHash(r, func(string) uint64 { return 1 << 63 }) // one schedule
			for _, v := range minutes {
				mustPut(t, r, key(v), v)
			}
			r.Delete(key(deleted))
			for now := 1; now <= slices.Max(minutes); now++ {
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, v := range minutes {
					if _, ok := r.Get(key(v)); ok != (v > now && v != deleted) {
						t.Errorf("without %d: %d is there after %d minutes: %t", deleted, v, now, ok)
					}
				}
			}
		}
	})
}

// Without Config.TTL Renew panics, whatever the key is.
func TestRenewWithoutTTLOfAnInvalidKey(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(string) (string, error) { return "", errors.New("invalid") }})
	defer func() {
		if recover() == nil {
			t.Error("Renew of an invalid key does not panic")
		}
	}()
	t.Log(r.Renew("", 1, time.Second))
}
