package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A list of subscriptions is never extended in place: two who add to the same one at the
// same time would overwrite one another, and a loop would miss a change for ever.
func TestSubscriptionListsKeepApart(t *testing.T) {
	for n := range 10 {
		if !shardedregistry.KeepsApart(n) {
			t.Errorf("two that extend a list of %d subscriptions overwrite one another", n)
		}
	}
}
