//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What sweeps cost: an insert looks at a word, and once the keys have doubled it
// looks at all of them.
func TestCostsOfSweeps(t *testing.T) {
	holding := func(keys int) func() func(int) {
		return func() func(int) {
			g := MustNewGroup(GroupConfig[string]{Default: never})
			for i := range keys {
				g.RecordFailure(fmt.Sprint(i))
			}
			g.Allow(k)
			return func(int) { g.RecordFailure(k) }
		}
	}
	mc.CheckCost(t, "Group: the first failure of its first key", holding(0), mc.Cost{Loads: 12, Stores: 2, RMWs: 5, TableWrites: 1, Clock: 1}, 8, 39.125, 346.58)
	mc.CheckCost(t, "Group: the first failure of a key", holding(1), mc.Cost{Loads: 13, Stores: 2, RMWs: 4, TableWrites: 1, Clock: 1}, 8, 39.125, 346.58)
	mc.CheckCost(t, "Group: the first failure of its 64th key", holding(firstSweep-1), mc.Cost{Loads: 208, Stores: 3, RMWs: 5, TableReads: 2, TableWrites: 1, Clock: 65}, 4, 30, 345.53)
}
