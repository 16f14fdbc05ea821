package changeset_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// long reports whether tests may take minutes.
func long() bool { return natstest.Long() }

// TestMain fails if a goroutine of the package, or of a client, is left.
func TestMain(m *testing.M) {
	code := m.Run()
	left := ""
	for range 3000 {
		if left = leftovers(); left == "" {
			os.Exit(code)
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("left:", left)
	os.Exit(1)
}

func leftovers() string {
	all := make([]byte, 1<<20)
	var left []string
	for _, g := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(g, "TestMain") {
			continue
		}
		if strings.Contains(g, "/changeset.") || strings.Contains(g, "nats-io/nats.go") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}
