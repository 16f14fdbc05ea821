//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
)

// What it costs to keep idle keys: an insert looks at a word, and once the
// keys have doubled it looks at all of them.
func TestCostsOfIdleKeys(t *testing.T) {
	idle := func(keys int) func() func(int) {
		return func() func(int) {
			g := MustNewGroup(GroupConfig[string]{Default: never, IdleTimeout: time.Hour})
			for i := range keys {
				g.RecordFailure(fmt.Sprint(i))
			}
			g.Allow(k)
			return func(int) { g.RecordFailure(k) }
		}
	}
	mc.CheckCost(t, "Group that keeps idle keys: the first failure of its first key", idle(0), mc.Cost{Loads: 11, Stores: 2, RMWs: 4, TableReads: 1, TableWrites: 1, Clock: 2}, 2, 24.625, 248.08)
	mc.CheckCost(t, "Group that keeps idle keys: the first failure of a key", idle(1), mc.Cost{Loads: 12, Stores: 2, RMWs: 3, TableReads: 1, TableWrites: 1, Clock: 2}, 2, 24.625, 248.08)
	mc.CheckCost(t, "Group that keeps idle keys: the first failure of its 64th key", idle(firstSweep-1), mc.Cost{Loads: 271, Stores: 3, RMWs: 4, TableReads: 3, TableWrites: 1, Clock: 67}, 3, 24.625, 248.08)
}
