//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// The first callers of a zero Breaker agree on its settings, and with that on
// the epoch that deadlines are counted from.
func TestZeroBreakerHasOneEpoch(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "settings ∥ settings ∥ settings"}, func(m *mc.M) {
		b := new(Breaker)
		var seen [3]*settings
		for i := range seen {
			m.Go(func() { seen[i] = b.core.settings() })
		}
		m.Final(func() {
			for _, s := range seen {
				if s == nil || s != b.core.set.Load() {
					m.Failf("the breaker's settings have changed")
				}
			}
		})
	})
}
