//go:build modelcheck

package table_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

func TestMain(m *testing.M) { mc.Main(m) }
