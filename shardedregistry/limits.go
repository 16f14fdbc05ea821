package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// patience is how many attempts fail before a call suspects itself. Other
// goroutines rarely win that often in a row, and a function that changes its
// own key has then cost microseconds. In the model, the first failure is enough.
func patience() int { return atomics.Limit(64, 1) }

// proofs is how many attempts in a row must be caught before a call gives up.
// One would do for a function that always changes its key; more spare one that
// does so now and then.
func proofs() int { return atomics.Limit(4, 2) }
