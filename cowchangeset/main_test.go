//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"os"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

// noContext is nil, for what refuses that.
var noContext context.Context

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path) // until it is killed; see kill_test.go
	}
	leak.Main(m)
}
