// Package retrybudget limits how many calls are made again, so that retries do not
// multiply the load of something that is failing.
//
//	for {
//		err := call(ctx)
//		if err == nil {
//			budget.Success()
//			return nil
//		}
//		if !budget.Retry() {
//			return err
//		}
//	}
//
// A Breaker of package atomicbreaker and a Budget complement each other: the breaker
// looks at failures in a row, the budget at their share of all calls. Use one budget for
// each thing that is called, and share it among all callers.
package retrybudget
