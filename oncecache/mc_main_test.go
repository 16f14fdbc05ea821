//go:build modelcheck

package oncecache_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

func TestMain(m *testing.M) { mc.Main(m) }
