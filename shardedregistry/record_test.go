//go:build !modelcheck

package shardedregistry_test

import (
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A value begins where its record ends, whatever it is: also one that must be
// aligned to 8 bytes on machines of 32 bits.
func TestValuesFollowRecords(t *testing.T) {
	for name, gaps := range map[string][8]uintptr{
		"bool":       shardedregistry.Gaps[bool](),
		"struct{}":   shardedregistry.Gaps[struct{}](),
		"string":     shardedregistry.Gaps[string](),
		"uint64":     shardedregistry.Gaps[uint64](),
		"two words":  shardedregistry.Gaps[[2]atomic.Uint64](),
		"complex128": shardedregistry.Gaps[complex128](),
	} {
		if gaps != [8]uintptr{} {
			t.Errorf("%s: %v bytes between a record and its value", name, gaps)
		}
	}
}
