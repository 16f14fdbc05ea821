//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
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
}

// Reported bug 4, slf4j-test, jcabi-jdbc, sentry-java, elps: n appends copy n² items.
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
	wantAllocs(t, "All", 0, func() {
		for range tracker.All() {
		}
	})
	wantAllocs(t, "IsSealed", 0, func() { c.IsSealed() })
	wantAllocs(t, "Trail", 0, func() { tracker.Trail() })
	wantAllocs(t, "Entries", 0, func() {
		for range c.Entries() {
		}
	})
	mustSeal(t, c)
	wantAllocs(t, "Seal again", 0, func() { c.Seal(t.Context()) })
	wantAllocs(t, "Record into the sealed", 1, func() { tracker.Record("a") })
	wantAllocs(t, "Changeset.Record into the sealed", 0, func() { c.Record("a") })
}

// wantBytes checks what f allocates each time. One percent is for what others allocate
// meanwhile.
func wantBytes(t *testing.T, name string, want uint64, f func()) {
	t.Helper()
	f()
	const times = 10_000
	got := allocated(func() {
		for range times {
			f()
		}
	})
	if got < times*want || got > times*want+times*want/100 {
		t.Errorf("%s allocates %v bytes, want %d", name, float64(got)/times, want)
	}
}

// A changeset is one allocation, and its parts that may never be needed are made when
// they are needed: the first chunk by a Record, the channel by Sealed, the error by the
// first Record that comes too late.
func TestStartAllocs(t *testing.T) {
	skipUnderRace(t)
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{NewID: func(context.Context) (string, error) { return "a", nil }})
	start := func() *cowchangeset.Changeset[string] { return start(t, tracker) }
	wantAllocs(t, "Start", 1, func() { start() })
	wantAllocs(t, "Start and Seal", 2, func() { mustSeal(t, start()) })
	wantAllocs(t, "Start and Record", 3, func() { start(); tracker.Record("a") })
	wantAllocs(t, "Start and RecordBatch", 3, func() { start(); tracker.RecordBatch([]string{"a", "b"}) })
	wantAllocs(t, "Start and Sealed", 3, func() { start().Sealed() })
	wantAllocs(t, "Start, Seal and Record", 4, func() { mustSeal(t, start()); tracker.Record("a"); tracker.Record("a") })
	var random cowchangeset.Tracker[string]
	wantAllocs(t, "Start with an ID of crypto/rand", 2, func() { random.Start(t.Context()) })
	if unsafe.Sizeof(uintptr(0)) < 8 {
		return
	}
	wantBytes(t, "Start", 3*64, func() { start() })
	wantBytes(t, "Start and Seal", 3*64+32, func() { mustSeal(t, start()) })
	wantBytes(t, "Start and Record", 3*64+48+16*24, func() { start(); tracker.Record("a") })
}

// A log costs no more than its slots, a few idle ones, and small change, whether the
// entries come one by one or ten at a time and whether or not they have pointers.
func TestRecordAllocatesLittle(t *testing.T) {
	skipUnderRace(t)
	t.Run("int", func(t *testing.T) { recordAllocatesLittle(t, 1) })
	t.Run("string", func(t *testing.T) { recordAllocatesLittle(t, "a") })
	t.Run("nothing", func(t *testing.T) { recordAllocatesLittle(t, struct{}{}) })
}

func recordAllocatesLittle[E any](t *testing.T, e E) {
	const n = 100_000
	type slot struct {
		_ uint64
		_ E
	}
	for _, k := range []int{1, 10} {
		var tracker cowchangeset.Tracker[E]
		start(t, &tracker)
		batch := slices.Repeat([]E{e}, k)
		bytes := allocated(func() {
			for range n / k {
				if k == 1 {
					tracker.Record(e)
				} else {
					tracker.RecordBatch(batch)
				}
			}
		})
		if slots := n * uint64(unsafe.Sizeof(slot{})); bytes > slots+slots/25 {
			t.Errorf("%d bytes allocated for %d bytes of slots, %d at a time", bytes, slots, k)
		}
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

// skipUnderRace skips a test that measures memory if the race detector is on, which changes that.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector changes what is allocated")
	}
}
