package locked_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
