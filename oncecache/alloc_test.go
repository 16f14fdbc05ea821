//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/latchfree/latchfree/oncecache"
)

// The budgets: an entry and the flight of a creation are one allocation each.
func TestAllocs(t *testing.T) {
	const key = "postgres://plans@db-001:5432/tenant"
	var c oncecache.Cache[string, *int]
	one := new(int)
	c.Set(key, one)
	records := oncecache.MustNew(oncecache.Config[string, *int]{RecordStats: true})
	records.Set(key, one)
	captured := 0
	fails := errors.New("no route to host")

	for _, tt := range []struct {
		name string
		want float64
		op   func()
	}{
		{"GetOrCreate hit with a capturing closure", 0, func() {
			v, err := c.GetOrCreate(key, func() (*int, error) { captured++; return new(int), nil })
			if v != one || err != nil {
				t.Error(v, err)
			}
		}},
		{"the same with RecordStats", 0, func() {
			records.GetOrCreate(key, func() (*int, error) { captured++; return new(int), nil })
		}},
		{"GetOrCreate of a new key with RecordStats, and Delete", 3, func() {
			records.GetOrCreate("new", func() (*int, error) { captured++; return one, nil })
			records.Delete("new")
		}},
		{"New, without an order of entries", 8, func() { oncecache.MustNew(oncecache.Config[string, *int]{}) }},
		{"Get", 0, func() { c.Get(key) }},
		{"Get of an absent key", 0, func() { c.Get("absent") }},
		{"Len", 0, func() { c.Len() }},
		{"Delete of an absent key", 0, func() { c.Delete("absent") }},
		{"SetIfAbsent of a present key", 0, func() { c.SetIfAbsent(key, one) }},
		{"CompareAndDelete of another value", 0, func() { oncecache.CompareAndDelete(&c, key, nil) }},
		{"Set", 1, func() { c.Set(key, one) }},
		{"GetOrCreate of a new key, and Delete", 2, func() {
			c.GetOrCreate("new", func() (*int, error) { captured++; return one, nil })
			c.Delete("new")
		}},
		{"GetOrCreate that fails", 4, func() {
			c.GetOrCreate("new", func() (*int, error) { captured++; return nil, fails })
		}},
	} {
		if got := testing.AllocsPerRun(100, tt.op); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}

// A hit with a context allocates nothing, as long as the create function
// captures nothing; and a lease is a value. What a creation with a context
// takes beside that of a plain one: a context that can be cancelled, and the call of the function;
// and if the caller can leave, a goroutine, a record for its panic, and an event to wait for.
func TestAllocsOfContextsAndLeases(t *testing.T) {
	turn := 0
	var c oncecache.Cache[string, int]
	owner := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { return nil }})
	for _, c := range []*oncecache.Cache[string, int]{&c, owner} {
		c.Set("k", 1)
	}
	ctx := context.Background()
	leaving, cancel := context.WithCancel(ctx)
	defer cancel()
	create := func(context.Context, string) (int, error) { return 2, nil }
	keys := []string{"k"}
	for _, tt := range []struct {
		name string
		want float64
		op   func()
	}{
		{"GetOrCreateContext hit", 0, func() {
			c.GetOrCreateContext(leaving, "k", func(_ context.Context, k string) (int, error) { return len(k), nil })
		}},
		{"the same, where values are closed", 0, func() { owner.GetOrCreateContext(leaving, "k", create) }},
		{"Acquire and Release", 0, func() {
			l, _ := owner.Acquire(leaving, "k", create)
			l.Release()
		}},
		{"the same, where nothing is closed", 0, func() {
			l, _ := c.Acquire(leaving, "k", create)
			l.Release()
		}},
		{"GetOrCreateMany hits", 2, func() { c.GetOrCreateMany(leaving, keys, manyNotAsked) }}, // a map and its slots
		{"Get where values are closed", 0, func() { owner.Get("k") }},
		{"Set where values are closed", 3, func() { turn++; owner.Set("k", turn) }}, // the count, and the mark that it is dead
		{"Set of the very value", 2, func() { owner.Set("k", turn) }},
		{"GetOrCreate of a new key where values are closed, and Delete", 4, func() {
			owner.GetOrCreate("new", func() (int, error) { return 2, nil })
			owner.Delete("new")
		}},
		{"GetOrCreateContext of a new key, and Delete", 6, func() {
			c.GetOrCreateContext(ctx, "new", create)
			c.Delete("new")
		}},
		{"Refresh", 9, func() { c.Refresh(ctx, "k", anew(create)) }},
	} {
		if got := testing.AllocsPerRun(100, tt.op); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
	if got := testing.AllocsPerRun(100, func() {
		c.GetOrCreateContext(leaving, "new", create)
		c.Delete("new")
	}); got > 12 { // fewer if the value is there before its caller waits
		t.Errorf("the same with a caller that can leave: %v allocations, want at most 10", got)
	}
}

func TestAllocsOfOtherKeys(t *testing.T) {
	var ints oncecache.Cache[int, int]
	var structs oncecache.Cache[route, int]
	var anys oncecache.Cache[any, int]
	var key any = route{"billing", "/plans"}
	captured := 0
	create := func() (int, error) { captured++; return 1, nil }

	for name, op := range map[string]func(){
		"int":    func() { ints.GetOrCreate(1<<20, create) },
		"struct": func() { structs.GetOrCreate(route{"billing", "/plans"}, create) },
		"any":    func() { anys.GetOrCreate(key, create) },
	} {
		op()
		if got := testing.AllocsPerRun(100, op); got != 0 {
			t.Errorf("hit with a key of type %s: %v allocations, want 0", name, got)
		}
	}
	if captured != 3 {
		t.Errorf("%d creations, want 3", captured)
	}
	if got := testing.AllocsPerRun(100, func() { anys.SetIfAbsent(key, 1) }); got != 0 {
		t.Errorf("SetIfAbsent of a present key of type any: %v allocations, want 0", got)
	}
}

// What is written takes no more than so many allocations, and so many bytes.
func TestAllocsOfWrites(t *testing.T) {
	const many = 100
	keys := make([]string, many)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	ctx, one, turn, next := context.Background(), new(int), 0, 0
	var c oncecache.Cache[string, *int]
	owner := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { return nil }})
	bounded := oncecache.MustNew(oncecache.Config[string, *int]{MaxEntries: 100})
	lasting := oncecache.MustNew(oncecache.Config[string, *int]{TTL: time.Hour})
	lasting.Set("first", one) // whose timer stays
	c.Set("k", one)
	owner.Set("k", turn)
	open := func() (*int, error) { return one, nil }
	openContext := func(context.Context, string) (*int, error) { return one, nil }
	made := make(map[string]*int, many)
	for _, k := range keys {
		made[k] = one
	}
	openAll := func(context.Context, []string) (map[string]*int, error) { return made, nil }
	for _, tt := range []struct {
		name          string
		allocs, bytes uint64
		op            func()
	}{
		{"GetOrCreate of a new key", 2, 240, func() { // and the table grows
			c.GetOrCreate(keys[next%many], open)
			next++
		}},
		{"GetOrCreate of a new key, and Delete", 2, 144, func() { c.GetOrCreate("new", open); c.Delete("new") }},
		{"the same with MaxEntries", 3, 288, func() { bounded.GetOrCreate("new", open); bounded.Delete("new") }},
		{"GetOrCreateContext of a new key, and Delete", 6, 464, func() { c.GetOrCreateContext(ctx, "new", openContext); c.Delete("new") }},
		{"Set", 1, 48, func() { c.Set("k", one) }},
		{"Set with a TTL, beside another", 4, 400, func() { lasting.Set("k", one) }},
		{"Set where values are closed", 3, 152, func() { turn++; owner.Set("k", turn) }},
		{"Refresh", 9, 544, func() { c.Refresh(ctx, "k", anew(openContext)) }},
		{"GetOrCreateMany of 100 new keys, and Clear", 150, 65_000, func() { c.GetOrCreateMany(ctx, keys, openAll); c.Clear() }}, // and some buckets
	} {
		tt.op() // what is allocated once
		allocs, bytes := allocated(50, tt.op)
		if allocs > tt.allocs || bytes > tt.bytes {
			t.Errorf("%s: %d allocations and %d bytes, want at most %d and %d", tt.name, allocs, bytes, tt.allocs, tt.bytes)
		}
	}
}

// allocated returns what a call of f allocates on average, in whole numbers.
func allocated(runs uint64, f func()) (allocs, bytes uint64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / runs, (after.TotalAlloc - before.TotalAlloc) / runs
}

// BenchmarkCacheHitBounded is a hit in caches whose values have a place in the order, next to
// one in a cache without bounds.
func BenchmarkCacheHitBounded(b *testing.B) {
	hour := func(string, int) time.Duration { return time.Hour }
	for _, keys := range []int{100, 100_000} {
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprintf("https://example.com/tenant/%d", i*7919)
		}
		for _, impl := range []struct {
			name string
			config
		}{
			{"unbounded", config{}},
			{"maxentries", config{MaxEntries: 1 << 20}},
			{"ttl", config{TTLFunc: hour}},
		} {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl.name), func(b *testing.B) {
				c := oncecache.MustNew(impl.config)
				for i, k := range names {
					c.Set(k, i)
					c.Get(k)
				}
				order := rand.New(rand.NewPCG(1, 2)).Perm(keys)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if v, err := c.GetOrCreate(names[order[i%keys]], failing); v < 0 || err != nil {
						b.Fatal(v, err)
					}
				}
			})
		}
	}
}

// row is a value of 40 bytes.
type row [5]uint64

func unexpectedRow(context.Context, string) (row, error) { return row{}, errRefused }

// Those who wait on new goroutines do with the stacks of 2 KiB that these begin
// with. If their contexts can end they wait for two things at once, for which the
// runtime takes half a kilobyte more: then a stack may grow once.
func TestMemoryOfAStampede(t *testing.T) {
	if runtime.GOARCH == "wasm" || testing.CoverMode() != "" {
		t.Skip("the frames of WebAssembly, and of code that counts its statements, are larger")
	}
	ctx := context.Background()
	for _, tt := range []struct {
		name string
		ask  func(c *oncecache.Cache[string, row], leaving context.Context) error
		own  int // frames that there is room for, beside those of the test
		each int // by how many bytes a stack may grow
	}{
		{"GetOrCreate", func(c *oncecache.Cache[string, row], _ context.Context) error {
			_, err := c.GetOrCreate("k", func() (row, error) { return unexpectedRow(ctx, "k") })
			return err
		}, 1, 0},
		{"GetOrCreateContext", func(c *oncecache.Cache[string, row], _ context.Context) error {
			_, err := c.GetOrCreateContext(ctx, "k", unexpectedRow)
			return err
		}, 0, 0},
		{"Acquire", func(c *oncecache.Cache[string, row], _ context.Context) error {
			lease, err := c.Acquire(ctx, "k", unexpectedRow)
			release(lease)
			return err
		}, 0, 0},
		{"Wait", func(c *oncecache.Cache[string, row], _ context.Context) error {
			_, err := c.Wait(ctx, "k")
			return err
		}, 1, 0},
		{"GetOrCreateContext of callers who may leave", func(c *oncecache.Cache[string, row], leaving context.Context) error {
			_, err := c.GetOrCreateContext(leaving, "k", unexpectedRow)
			return err
		}, 0, 4096},
	} {
		const some = 1024 // for each: those that something else came to on the way, and what nobody has yet
		if got, most := stampede(t, tt.own, tt.ask), callers*(tt.each+some); got > most {
			t.Errorf("%s: the stacks of %d waiters grow by %d bytes, want at most %d", tt.name, callers, got, most)
		}
	}
}

const callers = 1000

// stampede lets new goroutines ask for what is being created, and returns how many
// bytes their stacks take when they wait, beside those of goroutines that do nothing.
func stampede(t *testing.T, own int, ask func(c *oncecache.Cache[string, row], leaving context.Context) error) (grown int) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		leaving, leave := context.WithCancel(t.Context())
		defer leave()
		var all sync.WaitGroup
		for _, look := range []func(){
			runtime.GC, // so many small stacks tell the runtime to begin with small ones
			func() { grown -= stacks() },
			func() { grown += stacks() },
		} {
			c := oncecache.MustNew(oncecache.Config[string, row]{Close: func(string, row) error { return nil }})
			goOn := make(chan struct{})
			create := func() (row, error) { <-goOn; return row{}, nil }
			all.Go(func() { c.GetOrCreate("k", create) })
			synctest.Wait()
			for range callers {
				all.Go(func() {
					if grown == 0 {
						<-goOn
					} else if err := under(own, ask, c, leaving); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			look()
			close(goOn)
			all.Wait()
		}
	})
	return grown
}

// under calls ask with so many frames of its caller's own below it.
//
//go:noinline
func under(own int, ask func(*oncecache.Cache[string, row], context.Context) error, c *oncecache.Cache[string, row], leaving context.Context) (err error) {
	if own == 0 {
		return ask(c, leaving)
	}
	return under(own-1, ask, c, leaving)
}

// release is apart, so that it takes no room while its caller waits.
//
//go:noinline
func release(lease oncecache.Lease[string, row]) { lease.Release() }

// stacks returns how many bytes all stacks take.
func stacks() int {
	m := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(m)
	return int(m[0].Value.Uint64())
}

// collect collects garbage until there is what the test waits for.
func collect(t *testing.T, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("not collected")
		}
	}
}

// Reported bug 33, Otter, ccache: a goroutine per cache keeps it alive.
// A cache that nobody has any more goes, with what is in it, though
// nobody has closed it, its timers are set, and its functions refer to it.
func TestT33_DroppedCachesAreCollected(t *testing.T) {
	type cache = oncecache.Cache[string, *instance]
	type config = oncecache.Config[string, *instance]
	for name, make := range map[string]func() *cache{
		"zero":        func() *cache { return new(cache) },
		"MaxEntries":  func() *cache { return oncecache.MustNew(config{MaxEntries: 10}) },
		"IdleTimeout": func() *cache { return oncecache.MustNew(config{IdleTimeout: time.Hour}) },
		"all": func() *cache {
			var c *cache
			c = oncecache.MustNew(config{
				MaxEntries: 10, IdleTimeout: time.Hour, CreateTimeout: time.Hour,
				Close:        func(string, *instance) error { c.Len(); return nil },
				ErrorTTLFunc: func(string, error) time.Duration { c.Len(); return time.Hour },
				OnLeak:       func(string, []byte) { c.Len() },
			})
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			cached, value := func() (weak.Pointer[cache], weak.Pointer[instance]) {
				c := make()
				create := func(context.Context, string) (*instance, error) { return new(instance), nil }
				c.GetOrCreate("failed", func() (*instance, error) { return nil, errRefused })
				c.GetOrCreateContext(t.Context(), "made", create)
				c.Refresh(t.Context(), "made", anew(create))
				c.Delete("made")
				l, err := c.Acquire(t.Context(), "leased", create)
				if err != nil {
					t.Fatal(err)
				}
				l.Release()
				forgotten, err := c.Acquire(t.Context(), "leased", create)
				if err != nil {
					t.Fatal(err)
				}
				return weak.Make(c), weak.Make(forgotten.Value())
			}()
			collect(t, func() bool { return cached.Value() == nil && value.Value() == nil })
		})
	}
}

// A value that has left goes, though others have places beside which it had its own.
func TestDeletedValuesAreCollected(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[string, *instance]{TTL: time.Hour})
	c.Set("stays", new(instance))
	value := func() weak.Pointer[instance] {
		v := new(instance)
		c.Set("k", v)
		c.Delete("k")
		return weak.Make(v)
	}()
	collect(t, func() bool { return value.Value() == nil })
	runtime.KeepAlive(c)
}

// Reported bug 33, Otter, ccache: a goroutine per cache keeps it alive.
// A bubble ends although its cache is not closed and has a timer.
func TestT33_BubblesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: time.Hour, CreateTimeout: time.Hour})
		c.Set("k", 1)
		if v, err := c.GetOrCreateContext(t.Context(), "l", makes(2)); v != 2 || err != nil {
			t.Error(v, err)
		}
	})
}

// Reported bug 32, Kubernetes: a process-wide cache only grows.
// A cache with a bound does not grow, whatever is asked of it:
// values, failures that are kept for ever, batches and refreshes.
func TestT32_BoundedCachesDoNotGrow(t *testing.T) {
	const bound = 50
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: bound, ErrorTTLFunc: func(int, error) time.Duration { return -1 }})
	r := rand.New(rand.NewPCG(32, 0))
	same := func(_ context.Context, k int) (int, error) { return k, nil }
	for range stressRounds() {
		switch k := r.IntN(10_000); r.IntN(8) {
		case 0, 1:
			c.GetOrCreate(k, failing)
		case 2:
			c.GetOrCreateMany(context.Background(), []int{k, k + 1, k + 2}, squares)
		case 3:
			c.Refresh(context.Background(), k, anew(same))
		case 4:
			c.Set(k, k)
		case 5:
			c.SetIfAbsent(k, k)
		case 6:
			c.Delete(k)
		default:
			c.GetOrCreateContext(context.Background(), k, same)
		}
		if _, entries := oncecache.Creating(c); entries > bound {
			t.Fatalf("%d entries, want %d at most", entries, bound)
		}
	}
	if n := oncecache.Places(c); n > bound || n == 0 {
		t.Errorf("the order has %d places", n)
	}
}

// Reported bug 32, Kubernetes: a process-wide cache only grows.
// And one that nobody uses is empty after a while.
func TestT32_IdleCachesAreEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{
			IdleTimeout: time.Minute, ErrorTTLFunc: func(int, error) time.Duration { return time.Second },
		})
		for k := range 1000 {
			c.Set(2*k, k)
			c.GetOrCreate(2*k+1, failing)
		}
		time.Sleep(2 * time.Minute)
		if _, entries := oncecache.Creating(c); entries != 0 || oncecache.Places(c) != 0 {
			t.Errorf("%d entries, %d places in the order", entries, oncecache.Places(c))
		}
	})
}
