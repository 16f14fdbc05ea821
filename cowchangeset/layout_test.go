//go:build !modelcheck

package cowchangeset

import (
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// What every Record reads, what cuts read, and what every Record writes are in three
// cache lines. A Changeset is a whole number of them, and the allocator puts objects of
// that size at the beginning of one, so that none is shared with another object.
func TestChangesetLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("the layout is that of 64-bit machines")
	}
	var c Changeset[string]
	for name, x := range map[string]struct{ at, size, want uintptr }{
		"tracker":  {unsafe.Offsetof(c.tracker), unsafe.Sizeof(c.tracker), 0},
		"flusher":  {unsafe.Offsetof(c.flusher), unsafe.Sizeof(c.flusher), 0},
		"closed":   {unsafe.Offsetof(c.log.closed), unsafe.Sizeof(c.log.closed), 0},
		"watch":    {unsafe.Offsetof(c.log.watch), unsafe.Sizeof(c.log.watch), 0},
		"decided":  {unsafe.Offsetof(c.log.decided), unsafe.Sizeof(c.log.decided), 1},
		"head":     {unsafe.Offsetof(c.log.head), unsafe.Sizeof(c.log.head), 1},
		"reserved": {unsafe.Offsetof(c.log.reserved), unsafe.Sizeof(c.log.reserved), 2},
	} {
		if name != "tracker" && name != "flusher" {
			x.at += unsafe.Offsetof(c.log)
		}
		if first, last := x.at/atomics.CacheLineSize, (x.at+x.size-1)/atomics.CacheLineSize; first != x.want || last != x.want {
			t.Errorf("%s is in cache lines %d to %d, want %d", name, first, last, x.want)
		}
	}
	if n := unsafe.Sizeof(c); n != 3*atomics.CacheLineSize {
		t.Errorf("a Changeset has %d bytes", n)
	}
	var tracker Tracker[string]
	for range 100 {
		c, err := tracker.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Safety: the address is only looked at.
		if at := uintptr(unsafe.Pointer(c)); at%atomics.CacheLineSize != 0 {
			t.Fatalf("a Changeset is at %#x", at)
		}
	}
}
