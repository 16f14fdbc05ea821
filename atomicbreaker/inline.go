package atomicbreaker

import (
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// See internal/atomics/inline.go.
var _ = inlined

func inlined(u32 *atomics.Uint32, i64 *atomics.Int64, u64 *atomics.Uint64) {
	atomics.InlineUint32(u32)
	atomics.InlineInt64(i64)
	atomics.InlineUint64(u64)
	table.InlineHash(nil, "")
}
