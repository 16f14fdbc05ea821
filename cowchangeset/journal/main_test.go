package journal_test

import (
	"os"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

// childFile is the variable of the environment that makes the test binary the
// child of TestKilled, and names its file.
const childFile = "JOURNAL_TEST_CHILD_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path)
		return
	}
	leak.Main(m)
}
