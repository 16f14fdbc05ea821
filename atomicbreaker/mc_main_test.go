//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

func TestMain(m *testing.M) { mc.Main(m) }

// Modeled: shared words are the model checker's here, and stress is not for them.
const Modeled = true
