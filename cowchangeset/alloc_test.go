//go:build !modelcheck

package cowchangeset_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/cowchangeset"
)

func wantAllocs(t *testing.T, name string, want float64, f func()) {
	t.Helper()
	if got := testing.AllocsPerRun(100, f); got != want {
		t.Errorf("%s allocates %v times, want %v", name, got, want)
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSliceAllocs(t *testing.T) {
	var s cowchangeset.Slice[string]
	items := make([]string, 600)
	s.Append(items...) // leaves room for as many
	wantAllocs(t, "Load", 0, func() { s.Load() })
	wantAllocs(t, "Len", 0, func() { s.Len() })
	wantAllocs(t, "Snapshot", 0, func() { s.Snapshot() })
	wantAllocs(t, "All", 0, func() {
		for range s.All() {
		}
	})
	wantAllocs(t, "Append", 0, func() { s.Append("a") })
	wantAllocs(t, "Append of a batch", 0, func() { s.Append("a", "b") })
	wantAllocs(t, "Update", 1, func() { s.Update(func(old []string) []string { return old }) })
	wantAllocs(t, "Set", 2, func() { s.Set(0, "b") }) // the copy, and the word beside it
	wantAllocs(t, "Delete", 2, func() { s.Delete(1) })
	wantAllocs(t, "Clip of what Delete left", 0, func() { s.Clip() })
}

// The cost of n appends is linear in n.
func TestSliceAppendIsAmortized(t *testing.T) {
	const n = 100_000
	var s cowchangeset.Slice[int]
	bytes := allocated(func() {
		for i := range n {
			s.Append(i)
		}
	})
	if size := uint64(n * unsafe.Sizeof(int(0))); bytes > 6*size {
		t.Errorf("%d bytes allocated for %d bytes of items", bytes, size)
	}
	if c := s.Cap(); c > 3*n {
		t.Errorf("room for %d items", c)
	}
}

func TestRecordAllocs(t *testing.T) {
	var tracker cowchangeset.Tracker[string]
	wantAllocs(t, "Record without a changeset", 0, func() { tracker.Record("a") })
	c := start(t, &tracker)
	fill := make([]string, 2*cowchangeset.MaxChunk-cowchangeset.FirstChunk)
	tracker.RecordBatch(fill) // up to the start of the second chunk of full size
	tracker.Record("a")
	wantAllocs(t, "Record", 0, func() { tracker.Record("a") })
	wantAllocs(t, "RecordBatch", 0, func() { tracker.RecordBatch(fill[:3]) })
	wantAllocs(t, "Changeset.Record", 0, func() { c.Record("a") })
	wantAllocs(t, "Len after a Record", 1, func() { tracker.Record("a"); c.Len() })
	wantAllocs(t, "Len", 0, func() { c.Len() })
	wantAllocs(t, "Current", 0, func() { tracker.Current() })
	wantAllocs(t, "Trail", 0, func() { tracker.Trail() })
	wantAllocs(t, "Entries", 0, func() {
		for range c.Entries() {
		}
	})
	mustSeal(t, c)
	wantAllocs(t, "Seal again", 0, func() { c.Seal(t.Context()) })
	wantAllocs(t, "Record into the sealed", 0, func() { tracker.Record("a") })
	wantAllocs(t, "Changeset.Record into the sealed", 0, func() { c.Record("a") })
}

// A log costs no more than its slots, half as many idle ones, and small change.
func TestRecordIsCompact(t *testing.T) {
	const n = 100_000
	var tracker cowchangeset.Tracker[int]
	start(t, &tracker)
	bytes := allocated(func() {
		for i := range n {
			tracker.Record(i)
		}
	})
	if slots := uint64(n * 2 * unsafe.Sizeof(int64(0))); bytes > slots+slots/10 {
		t.Errorf("%d bytes allocated for %d bytes of slots", bytes, slots)
	}
}

// A cut copies nothing, whatever there is.
func TestCutsCopyNothing(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	c := start(t, &tracker)
	tracker.RecordBatch(make([]int, 1_000_000))
	for name, cut := range map[string]func(){
		"Trail": func() { tracker.Trail() },
		"Len":   func() { c.Len() },
		"Entries": func() {
			for range c.Entries() {
				break
			}
		},
		"Seal": func() { c.Seal(t.Context()) },
	} {
		tracker.Record(1)                    // so that there is something to cut
		if n := allocated(cut); n > 64<<10 { // the tests' own things included
			t.Errorf("%s allocates %d bytes", name, n)
		}
	}
}
