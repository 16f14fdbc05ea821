package oncecache

import (
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

var _ = inlined

// inlined is never run: see internal/atomics/inline.go.
func inlined(b *atomics.Bool, i *atomics.Uint32, n *atomics.Int64, w *atomics.Uint64) {
	atomics.InlineBool(b)
	atomics.InlineUint32(i)
	atomics.InlineInt64(n)
	atomics.InlineUint64(w)
	table.InlineTags(w.Load())
	table.InlineHash(nil, "")
}
