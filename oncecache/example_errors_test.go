//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

func ExampleNew() {
	_, err := oncecache.New(oncecache.Config[string, *engine]{MaxEntries: -1})
	fmt.Println(err)
	// Output: oncecache: Config.MaxEntries -1: must not be negative
}

// A server that is down is asked once, until the key is deleted.
func ExampleConfig_errorTTL() {
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		ErrorTTLFunc: func(string, error) time.Duration { return -1 },
	})
	dial := func() (*engine, error) {
		fmt.Println("dialling")
		return nil, errors.New("connection refused")
	}
	for range 2 {
		_, err := engines.GetOrCreate("orders", dial)
		fmt.Println(err)
	}
	engines.Delete("orders")
	_, err := engines.GetOrCreate("orders", dial)
	fmt.Println(err)
	// Output:
	// dialling
	// connection refused
	// connection refused
	// dialling
	// connection refused
}

// Each of two functions asks for the key of the other. The call that closes the circle
// gets an error with the way.
func ExampleCycleError() {
	var modules oncecache.Cache[string, string]
	imports := map[string]string{"a": "b", "b": "a"}
	var load func(ctx context.Context, name string) (string, error)
	load = func(ctx context.Context, name string) (string, error) {
		return modules.GetOrCreateContext(ctx, imports[name], load)
	}
	_, err := modules.GetOrCreateContext(context.Background(), "a", load)
	var cycle *oncecache.CycleError
	if errors.As(err, &cycle) {
		fmt.Println(cycle.Path)
	}
	// Output: [b a b]
}

// A function may have an error for each key, beside the values.
func ExampleKeyErrors() {
	var users oncecache.Cache[int, string]
	found, err := users.GetOrCreateMany(context.Background(), []int{1, 2}, func(context.Context, []int) (map[int]string, error) {
		return map[int]string{1: "Ada"}, oncecache.KeyErrors[int]{2: errors.New("suspended")}
	})
	fmt.Println(found, err)
	// Output: map[1:Ada] 2: suspended
}

// Close says what it has not waited for, and waits for it the next time.
func ExampleCache_Close() {
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		Close: func(_ string, e *engine) error {
			fmt.Println("closing", e.url)
			return nil
		},
	})
	lease, err := engines.Acquire(context.Background(), "orders", func(context.Context, string) (*engine, error) {
		return &engine{"postgres://db-001"}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	var pending *oncecache.PendingError
	if errors.As(engines.Close(impatient), &pending) {
		fmt.Println("leased:", pending.Leased)
	}
	lease.Release()
	fmt.Println("closed:", engines.Close(context.Background()))
	// Output:
	// leased: [orders]
	// closing postgres://db-001
	// closed: <nil>
}

// Wait creates nothing.
func ExampleCache_Wait() {
	var prices oncecache.Cache[string, int]
	_, err := prices.Wait(context.Background(), "tea")
	fmt.Println(errors.Is(err, oncecache.ErrNotFound))
	prices.Set("tea", 3)
	fmt.Println(prices.Wait(context.Background(), "tea"))
	// Output:
	// true
	// 3 <nil>
}
