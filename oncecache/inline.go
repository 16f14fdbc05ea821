package oncecache

import "github.com/latchfree/latchfree/internal/atomics"

var _ = inlined

// inlined is never run: see internal/atomics/inline.go.
func inlined(n *atomics.Int64) { atomics.InlineInt64(n) }
