package oncecache

import "github.com/latchfree/latchfree/internal/atomics"

var _ = inlined

// inlined is never run: see internal/atomics/inline.go.
func inlined(n *atomics.Int64, w *atomics.Uint64) {
	atomics.InlineInt64(n)
	atomics.InlineUint64(w)
}
