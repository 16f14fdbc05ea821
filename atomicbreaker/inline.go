package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// See internal/atomics/inline.go.
var _ = inlined

func inlined(i *atomics.Int64, u *atomics.Uint64) {
	atomics.InlineInt64(i)
	atomics.InlineUint64(u)
}
