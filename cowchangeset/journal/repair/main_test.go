package repair_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
