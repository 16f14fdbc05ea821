//go:build !modelcheck

package retrybudget_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/oncecache"
)

func ExampleBudget() {
	budget := retrybudget.MustNew(retrybudget.Config{Capacity: 2, MinPerSecond: -1})
	call := func() (attempts int) {
		for {
			attempts++ // and it fails
			if !budget.Retry() {
				return attempts
			}
		}
	}
	fmt.Println(call(), call())
	for range 10 {
		budget.Success()
	}
	fmt.Println(budget.Available(), call())
	// Output:
	// 3 1
	// 1 2
}

var errUnavailable = errors.New("unavailable")

// Each host has a budget of its own, so that one that fails does not use up the retries
// of the others. The budget of a host that nobody calls is forgotten once it is full.
func ExampleBudget_byKey() {
	budgets := oncecache.MustNew(oncecache.Config[string, *retrybudget.Budget]{
		Create: func(context.Context, string) (*retrybudget.Budget, error) {
			return retrybudget.New(retrybudget.Config{Capacity: 10, MinPerSecond: 0.1})
		},
		IdleTimeout: 10 * time.Minute, // by then time has filled the budget
	})
	call := func(ctx context.Context, host string, fn func() error) (attempts int, err error) {
		budget, err := budgets.Load(ctx, host)
		if err != nil {
			return 0, err
		}
		for {
			attempts++
			if err = fn(); err == nil {
				budget.Success()
				return attempts, nil
			}
			if !budget.Retry() {
				return attempts, err
			}
		}
	}

	ctx := context.Background()
	fmt.Println(call(ctx, "db-1", func() error { return errUnavailable }))
	fmt.Println(call(ctx, "db-1", func() error { return errUnavailable }))
	tries := 0
	fmt.Println(call(ctx, "db-2", func() error {
		if tries++; tries == 1 {
			return errUnavailable
		}
		return nil
	}))
	// Output:
	// 11 unavailable
	// 1 unavailable
	// 2 <nil>
}
