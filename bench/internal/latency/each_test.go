package latency_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/latency"
)

// What the report says of a benchmark is what its name says.
func TestPatterns_Names(t *testing.T) {
	for _, p := range latency.Steady {
		kind := "closed"
		if p.Open {
			kind = "open"
		}
		if want := fmt.Sprintf("load=%s/threads=%dx", kind, p.Times); p.Name != want {
			t.Errorf("pattern %s is named %s", want, p.Name)
		}
	}
}
