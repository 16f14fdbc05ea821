//go:build !modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const Modeled = false
