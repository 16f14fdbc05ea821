package throttle

import "github.com/latchfree/latchfree/internal/atomics"

// See internal/atomics/inline.go.
var _ = inlined

func inlined(w *atomics.Uint64) { atomics.InlineUint64(w) }
