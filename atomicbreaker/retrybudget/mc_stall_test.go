//go:build modelcheck

package retrybudget

import (
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Every operation progresses as its documentation says, whoever stops for ever.
func TestProgress(t *testing.T) {
	op := func(name string, do func(b *Budget)) mc.Operation[*Budget] {
		return mc.Operation[*Budget]{Name: "Budget." + name, Do: do}
	}
	spent := func() *Budget {
		b := MustNew(Config{Capacity: 4, Ratio: 0.5})
		b.Retry()
		b.Retry()
		return b
	}
	mc.CheckProgress(t, nil,
		mc.World[*Budget]{Name: "a full bucket", New: func() *Budget { return MustNew(Config{}) }, Operations: []mc.Operation[*Budget]{
			op("Success", func(b *Budget) { b.Success() }).Bounded(1),
			op("Available", func(b *Budget) { b.Available() }).Bounded(3),
		}},
		mc.World[*Budget]{Name: "a bucket that is not full", New: spent, Operations: []mc.Operation[*Budget]{
			op("Success", func(b *Budget) { b.Success() }).Free(),
			op("Retry", func(b *Budget) { b.Retry() }).Free(),
			op("Available", func(b *Budget) { b.Available() }).Bounded(3),
		}},
	)
}
