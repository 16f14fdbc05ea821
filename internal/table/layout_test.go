//go:build !modelcheck

package table_test

import (
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/internal/table"
)

// A bucket is a cache line.
func TestLinesLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the layout is for 64 bits")
	}
	if n := table.BucketSize; n != 64 {
		t.Errorf("a bucket has %d bytes", n)
	}
}
