package sequences

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	model "github.com/latchfree/latchfree/internal/tools/model/retrybudget"
)

// FuzzRetryBudgetOps applies operations to a Budget and to its model, and
// compares every result. The first three bytes are the settings, and each that
// follows is an operation. The clock goes by full seconds, so that nothing is
// rounded.
func FuzzRetryBudgetOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 3 || len(program) > 400 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			spec := &model.Budget{Capacity: 1000 * (1 + int(program[0]%8)), Earns: earns(program[1]), PerSecond: perSecond(program[2])}
			b := retrybudget.MustNew(retrybudget.Config{
				Capacity:     spec.Capacity / 1000,
				Ratio:        float64(spec.Earns) / 1000,
				MinPerSecond: cmp.Or(float64(spec.PerSecond)/1000, -1),
			})
			if program[0] >= 224 {
				b, spec = new(retrybudget.Budget), &model.Budget{Capacity: 100_000, Earns: 100, PerSecond: 1000}
			}
			for _, op := range program[3:] {
				switch n := int(op / 4); op % 4 {
				case 0:
					b.Success()
					spec.Success()
				case 1: // a few at once
					for range 1 + n {
						require.Equal(t, spec.Retry(), b.Retry(), "Retry")
					}
				case 2:
					for range n {
						b.Success()
						spec.Success()
					}
				case 3:
					time.Sleep(time.Duration(n) * time.Second)
					if n == 63 { // long enough for any budget to be full
						time.Sleep(24 * time.Hour)
					}
					spec.Now = time.Since(start)
				}
				require.Equal(t, spec.Available(), b.Available(), "Available")
			}
		})
	})
}

// earns is what a success earns, in thousandths of a token: little, or more
// than one.
func earns(b byte) int {
	if b >= 128 {
		return 1000 * (1 + int(b%8))
	}
	return 1 + 37*int(b)
}

// perSecond is what a second adds: nothing for every fourth, or little, or more
// than the bucket holds.
func perSecond(b byte) int {
	switch b % 4 {
	case 0:
		return 0
	case 1:
		return 1 + int(b)
	}
	return 997 * int(b)
}
