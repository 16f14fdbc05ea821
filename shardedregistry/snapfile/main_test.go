package snapfile_test

import (
	"os"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path)
		return
	}
	leak.Main(m)
}
