//go:build modelcheck

package oncecache_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

func TestMain(m *testing.M) { mc.Main(m) }

// extent is how much of a protocol is explored: everything, or what at most so
// many preemptions lead to.
type extent int

const (
	everything extent = 0
	twice      extent = 2
)

func (x extent) of(operations string) mc.Config {
	if x == everything {
		return mc.Config{Operations: operations}
	}
	return mc.Config{Operations: operations, Mode: mc.Bounded, Preemptions: int(x)}
}
