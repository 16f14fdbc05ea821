package bench

import (
	"flag"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() != "" {
		load.TouchHeap()
	}
	leak.Main(m)
}
