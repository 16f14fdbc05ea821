//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

type engine struct{ url string }

func Example() {
	var engines oncecache.Cache[string, *engine]
	open := func(url string) (*engine, error) {
		return engines.GetOrCreate(url, func() (*engine, error) {
			fmt.Println("opening", url)
			return &engine{url}, nil
		})
	}

	schema, _ := open("sqlite://:memory:")
	reports, _ := open("sqlite://:memory:")
	fmt.Println("one engine:", schema == reports)
	// Output:
	// opening sqlite://:memory:
	// one engine: true
}

func ExampleCache_GetOrCreate_error() {
	var engines oncecache.Cache[string, *engine]
	const url = "postgres://db-001"

	_, err := engines.GetOrCreate(url, func() (*engine, error) {
		return nil, errors.New("connection refused")
	})
	fmt.Println(err, engines.Len())

	e, err := engines.GetOrCreate(url, func() (*engine, error) {
		return &engine{url}, nil
	})
	fmt.Println(e.url, err, engines.Len())
	// Output:
	// connection refused 0
	// postgres://db-001 <nil> 1
}

// A caller that does not want to wait any longer leaves. The others get the value.
func ExampleCache_GetOrCreateContext() {
	var engines oncecache.Cache[string, *engine]
	const url = "postgres://db-001"
	begun, proceed := make(chan struct{}), make(chan struct{})
	open := func(ctx context.Context, url string) (*engine, error) {
		close(begun)
		<-proceed // a database that takes its time
		return &engine{url}, ctx.Err()
	}

	patient := make(chan *engine)
	go func() {
		e, _ := engines.GetOrCreateContext(context.Background(), url, open)
		patient <- e
	}()
	<-begun
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := engines.GetOrCreateContext(impatient, url, open)
	fmt.Println(err)

	close(proceed)
	fmt.Println((<-patient).url)
	// Output:
	// context canceled
	// postgres://db-001
}

// A value with leases may be replaced while it is in use: it is closed when
// its last user releases it.
func ExampleCache_Acquire() {
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		Close: func(_ string, e *engine) error {
			fmt.Println("closing", e.url)
			return nil
		},
	})
	open := func(_ context.Context, name string) (*engine, error) {
		return &engine{"postgres://db-001/" + name}, nil
	}
	ctx := context.Background()

	lease, err := engines.Acquire(ctx, "orders", open)
	if err != nil {
		fmt.Println(err)
		return
	}
	engines.Set("orders", &engine{"postgres://db-002/orders"})
	fmt.Println("using", lease.Value().url)
	lease.Release()
	fmt.Println("closed:", engines.Close(ctx))
	// Output:
	// using postgres://db-001/orders
	// closing postgres://db-001/orders
	// closing postgres://db-002/orders
	// closed: <nil>
}

// A database that one process may open once at a time is closed before it is
// opened again, though its user takes a while to release it.
func ExampleConfig_closeBeforeCreate() {
	databases := oncecache.MustNew(oncecache.Config[string, *engine]{
		CloseBeforeCreate: true,
		Close: func(_ string, e *engine) error {
			fmt.Println("closing", e.url)
			return nil
		},
	})
	open := func(_ context.Context, path string) (*engine, error) {
		fmt.Println("opening", path)
		return &engine{path}, nil
	}
	ctx := context.Background()

	lease, err := databases.Acquire(ctx, "orders.db", open)
	if err != nil {
		fmt.Println(err)
		return
	}
	databases.Delete("orders.db")
	impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = databases.GetOrCreateContext(impatient, "orders.db", open)
	fmt.Println(err)

	lease.Release()
	e, err := databases.GetOrCreateContext(ctx, "orders.db", open)
	fmt.Println(e.url, err)
	// Output:
	// opening orders.db
	// context deadline exceeded
	// closing orders.db
	// opening orders.db
	// orders.db <nil>
}

// A page that has not changed is not made anew.
func ExampleCache_Refresh_notModified() {
	var pages oncecache.Cache[string, string]
	ctx := context.Background()
	changed := false
	fetch := func(_ context.Context, url, old string, exists bool) (string, error) {
		switch {
		case !exists:
			return "first edition", nil
		case !changed:
			return "", oncecache.ErrNotModified
		}
		return old + ", revised", nil
	}
	for range 2 {
		fmt.Println(pages.Refresh(ctx, "/index.html", fetch))
	}
	changed = true
	fmt.Println(pages.Refresh(ctx, "/index.html", fetch))
	// Output:
	// first edition <nil>
	// first edition <nil>
	// first edition, revised <nil>
}

func ExampleCache_Clear() {
	var engines oncecache.Cache[string, *engine]
	engines.Set("orders", &engine{"postgres://db-001"})
	engines.Set("users", &engine{"postgres://db-002"})
	fmt.Println(engines.Clear(), engines.Len())
	// Output: 2 0
}

// Many users of one value may find it broken. It is replaced once.
func ExampleLease_Discard() {
	var engines oncecache.Cache[string, *engine]
	opened := 0
	open := func(_ context.Context, url string) (*engine, error) {
		opened++
		return &engine{url}, nil
	}
	ctx := context.Background()

	first, _ := engines.Acquire(ctx, "postgres://db-001", open)
	second, _ := engines.Acquire(ctx, "postgres://db-001", open)
	first.Discard()
	third, _ := engines.Acquire(ctx, "postgres://db-001", open)
	second.Discard() // the one that is gone already
	fourth, _ := engines.Acquire(ctx, "postgres://db-001", open)
	fmt.Println(opened, third.Value() == fourth.Value())
	// Output: 2 true
}

func ExampleCache_Set() {
	var engines oncecache.Cache[string, *engine]
	engines.Set("orders", &engine{"postgres://db-001"})
	old, replaced := engines.Set("orders", &engine{"postgres://db-002"})
	fmt.Println(old.url, replaced)
	// Output: postgres://db-001 true
}

func ExampleCompareAndDelete() {
	var engines oncecache.Cache[string, *engine]
	broken := &engine{"postgres://db-001"}
	engines.Set("orders", broken)

	// Two users find the same engine broken. One of them removes it.
	fmt.Println(oncecache.CompareAndDelete(&engines, "orders", broken))
	engines.Set("orders", &engine{"postgres://db-001"})
	fmt.Println(oncecache.CompareAndDelete(&engines, "orders", broken))
	// Output:
	// true
	// false
}

func ExampleCache_Keys() {
	cache := oncecache.MustNew(oncecache.Config[string, int]{SizeHint: 100})
	cache.Set("one", 1)
	cache.Set("two", 2)
	fmt.Println(slices.Sorted(cache.Keys()))
	// Output: [one two]
}

func ExampleCache_All() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	prices.Set("coffee", 4)
	total := 0
	for _, price := range prices.All() {
		total += price
	}
	fmt.Println(total)
	// Output: 7
}

func ExampleCache_Get() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	fmt.Println(prices.Get("tea"))
	fmt.Println(prices.Get("coffee"))
	// Output:
	// 3 true
	// 0 false
}

func ExampleCache_SetIfAbsent() {
	var prices oncecache.Cache[string, int]
	fmt.Println(stored(prices.SetIfAbsent("tea", 3)), stored(prices.SetIfAbsent("tea", 4)))
	fmt.Println(prices.Get("tea"))
	// Output:
	// true false
	// 3 true
}

func ExampleCache_Delete() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	fmt.Println(prices.Delete("tea"))
	fmt.Println(prices.Delete("tea"))
	// Output:
	// 3 true
	// 0 false
}

// The old value serves while the new one is made.
func ExampleCache_Refresh() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	price, err := prices.Refresh(context.Background(), "tea", anew(func(_ context.Context, name string) (int, error) {
		old, _ := prices.Get(name)
		fmt.Println("meanwhile:", old)
		return 4, nil
	}))
	fmt.Println(price, err)
	// Output:
	// meanwhile: 3
	// 4 <nil>
}

// One call of the function loads all users that are not there. A user that it does
// not find is left out.
func ExampleCache_GetOrCreateMany() {
	var users oncecache.Cache[int, string]
	users.Set(1, "Ada")
	found, err := users.GetOrCreateMany(context.Background(), []int{1, 2, 3}, func(_ context.Context, ids []int) (map[int]string, error) {
		fmt.Println("loading", ids)
		return map[int]string{2: "Grace"}, nil
	})
	fmt.Println(found, err)
	// Output:
	// loading [2 3]
	// map[1:Ada 2:Grace] <nil>
}

// The value that has not been used makes room.
func ExampleConfig_maxEntries() {
	prices := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 2})
	prices.Set("tea", 3)
	prices.Set("coffee", 4)
	prices.Get("tea")
	prices.Set("milk", 1)
	fmt.Println(slices.Sorted(prices.Keys()))
	// Output: [milk tea]
}

func ExampleCache_InFlight() {
	var engines oncecache.Cache[string, *engine]
	_, err := engines.GetOrCreate("orders", func() (*engine, error) {
		for flight := range engines.InFlight() {
			fmt.Println("under way:", flight.Key, "waiting:", flight.Waiting)
		}
		return &engine{"postgres://db-001"}, nil
	})
	fmt.Println(err)
	// Output:
	// under way: orders waiting: 0
	// <nil>
}

func ExampleCache_Stats() {
	var engines oncecache.Cache[string, *engine]
	engines.GetOrCreate("orders", func() (*engine, error) { return nil, errors.New("connection refused") })
	engines.GetOrCreate("orders", func() (*engine, error) { return &engine{"postgres://db-001"}, nil })
	s := engines.Stats()
	fmt.Println(s.Created, s.Failed)
	// Output: 1 1
}

// A listener learns of each value that leaves the cache, and why. It may use the cache.
func ExampleConfig_onRemove() {
	sessions := oncecache.MustNew(oncecache.Config[string, int]{
		MaxEntries: 2,
		Close:      func(string, int) error { return errors.New("connection reset") },
		OnRemove: func(user string, id int, why oncecache.Reason, err error) {
			fmt.Println(user, id, why, err)
		},
	})
	sessions.Set("mira", 1)
	sessions.Set("mira", 2)
	sessions.Delete("mira")
	// Output:
	// mira 1 Replaced connection reset
	// mira 2 Deleted connection reset
}

// What an exporter of metrics needs: counters from Stats, and a callback for a histogram.
func ExampleConfig_recordStats() {
	const url = "postgres://db-001"
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		RecordStats: true,
		OnCreate: func(url string, took time.Duration, err error) {
			fmt.Println("created", url, took < time.Minute, err) // histogram.Observe(took.Seconds())
		},
	})
	for range 3 {
		engines.GetOrCreate(url, func() (*engine, error) { return &engine{url}, nil })
	}
	s := engines.Stats()
	fmt.Println(s.Hits, "hits,", s.Misses, "miss,", s.Created, "created")
	// Output:
	// created postgres://db-001 true <nil>
	// 2 hits, 1 miss, 1 created
}

// Pages of up to 1 MiB together. A larger one is served, and not kept.
func ExampleConfig_maxWeight() {
	pages := oncecache.MustNew(oncecache.Config[string, []byte]{
		MaxWeight: 1 << 20,
		Weight:    func(path string, page []byte) int64 { return int64(len(path) + len(page)) },
	})
	pages.Set("/plans", make([]byte, 700<<10))
	pages.Set("/users", make([]byte, 200<<10))
	pages.Set("/report", make([]byte, 300<<10)) // "/plans" makes room
	pages.GetOrCreate("/export", func() ([]byte, error) { return make([]byte, 2<<20), nil })
	fmt.Println(slices.Sorted(pages.Keys()), pages.Stats().Weight>>10, "KiB")
	// Output:
	// [/report /users] 500 KiB
}
