//go:build !modelcheck

package cowchangeset_test

import (
	"os"
	"testing"

	"github.com/latchfree/latchfree/internal/leak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path) // until it is killed; see kill_test.go
	}
	leak.Main(m)
}
