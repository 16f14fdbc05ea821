package cowchangeset

import "github.com/latchfree/latchfree/internal/atomics"

var _ = inlined

// inlined is never run: see internal/atomics/inline.go.
func inlined(b *atomics.Bool, w *atomics.Uint64) {
	atomics.InlineBool(b)
	atomics.InlineUint64(w)
}
