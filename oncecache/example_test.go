package oncecache_test

import (
	"errors"
	"fmt"
	"slices"

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
