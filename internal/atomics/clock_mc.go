//go:build modelcheck

package atomics

import (
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Now is the modelled clock, which stands still but for mc.M.Advance.
func Now() time.Time { return mc.Now() }

// Since is Now().Sub(t).
func Since(t time.Time) time.Duration { return mc.Now().Sub(t) }
