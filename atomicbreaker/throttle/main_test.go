//go:build !modelcheck

package throttle

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
