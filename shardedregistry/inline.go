package shardedregistry

import (
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

var _ = inlined

// inlined makes the methods of the words that this package uses inlinable in
// the packages that instantiate it; see internal/atomics/inline.go. It is never
// called.
func inlined(i *atomics.Int64, s *atomics.Uint32, u *atomics.Uint64) {
	atomics.InlineInt64(i)
	atomics.InlineUint32(s)
	atomics.InlineUint64(u)
	table.InlineTags(u.Load())
	table.InlineHash(nil, "")
}
