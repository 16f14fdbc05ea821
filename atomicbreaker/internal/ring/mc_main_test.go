//go:build modelcheck

package ring

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

func TestMain(m *testing.M) { mc.Main(m) }
