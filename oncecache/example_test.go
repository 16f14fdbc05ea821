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

// A caller that does not want to wait any longer leaves, and the others get
// what it has waited for.
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
// opened again, though whoever uses it takes a while to let it go.
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

// What has not changed since is not made anew.
func ExampleCache_Reload() {
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
		fmt.Println(pages.Reload(ctx, "/index.html", fetch))
	}
	changed = true
	fmt.Println(pages.Reload(ctx, "/index.html", fetch))
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

// Whoever has made the value may have more to do than those who find it.
func ExampleCache_LoadOrCreate() {
	var engines oncecache.Cache[string, *engine]
	open := func(_ context.Context, url string) (*engine, error) { return &engine{url}, nil }
	for range 2 {
		e, loaded, err := engines.LoadOrCreate(context.Background(), "postgres://db-001", open)
		fmt.Println(e.url, loaded, err)
	}
	// Output:
	// postgres://db-001 false <nil>
	// postgres://db-001 true <nil>
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
