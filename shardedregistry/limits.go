package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// attemptsBeforeDetecting is how many attempts fail before a call suspects itself. Other
// goroutines rarely win that often in a row, and a function that changes its
// own key has then cost microseconds. In the model, the first failure is enough.
func attemptsBeforeDetecting() int { return atomics.Limit(64, 1) }

// provenReentries is how many attempts in a row must be caught before a call gives up.
// One would do for a function that always changes its key; more spare one that
// does so now and then.
func provenReentries() int { return atomics.Limit(4, 2) }
