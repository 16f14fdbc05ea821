//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

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
		{"GetOrCreateMany hits", 3, func() { c.GetOrCreateMany(leaving, keys, manyNotAsked) }}, // a map and its slots
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
	type id struct {
		tenant uint32
		name   string
	}
	var ints oncecache.Cache[int, int]
	var structs oncecache.Cache[id, int]
	var anys oncecache.Cache[any, int]
	var key any = id{7, "billing"}
	captured := 0
	create := func() (int, error) { captured++; return 1, nil }

	for name, op := range map[string]func(){
		"int":    func() { ints.GetOrCreate(1<<20, create) },
		"struct": func() { structs.GetOrCreate(id{7, "billing"}, create) },
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
		{"Set where values are closed", 3, 152, func() { turn++; owner.Set("k", turn) }},
		{"Refresh", 9, 544, func() { c.Refresh(ctx, "k", anew(openContext)) }},
		{"GetOrCreateMany of 100 new keys, and Clear", 150, 67_000, func() { c.GetOrCreateMany(ctx, keys, openAll); c.Clear() }}, // and some buckets
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
