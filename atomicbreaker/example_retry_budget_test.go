//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/oncecache"
)

// Each host has a budget of its own, so that one that fails does not use up the retries
// of the others. The budget of a host that nobody calls is forgotten once it is full.
func ExampleRetryBudget_byKey() {
	budgets := oncecache.MustNew(oncecache.Config[string, *atomicbreaker.RetryBudget]{
		Create: func(context.Context, string) (*atomicbreaker.RetryBudget, error) {
			return atomicbreaker.NewRetryBudget(atomicbreaker.RetryBudgetConfig{Capacity: 10, MinPerSecond: 0.1})
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
