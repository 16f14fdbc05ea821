//go:build !modelcheck

package cowchangeset_test

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/latchfree/latchfree/cowchangeset"
)

type large = [1 << 16]byte

// collected waits until the garbage collector has taken what p points to.
func collected(t *testing.T, what string, p weak.Pointer[large]) {
	t.Helper()
	for began := time.Now(); p.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Errorf("%s is kept", what)
			return
		}
	}
}

// A Final keeps its own entries, and neither its changeset nor those before and
// after it: however many entries it has, with gaps or none.
func TestFinalKeepsItsEntriesAlone(t *testing.T) {
	for _, n := range []int{0, 1, cowchangeset.FirstChunk, 1000} {
		for _, gap := range []bool{false, true} {
			tracker := cowchangeset.MustNew(cowchangeset.Config[*large]{PruneUnapplied: true})
			var finals []cowchangeset.Final[*large]
			var pointers []weak.Pointer[large]
			for i := range 3 {
				c := start(t, tracker)
				own := new(large)
				own[0] = byte(i)
				for range n {
					tracker.Record(own)
				}
				if n == 0 && i != 1 {
					tracker.Record(own) // which the Final of an empty one must not reach
				}
				if gap {
					w, _ := c.Reserve(own) // beyond the last entry
					c.Len()
					w.Put()
				}
				if i == 1 {
					finals = append(finals, mustSeal(t, c))
				}
				pointers = append(pointers, weak.Make(own))
			}
			start(t, tracker)
			tracker.Prune(1)
			collected(t, "what was recorded before", pointers[0])
			collected(t, "what was recorded afterwards", pointers[2])
			if got := values(t, finals[0].All()); len(got) != n || n > 0 && (got[0][0] != 1 || pointers[1].Value() == nil) || finals[0].Len() != n {
				t.Errorf("%d entries, want %d", len(got), n)
			}
			runtime.KeepAlive(tracker)
		}
	}
}

// Sealing again returns an equal Final, also to a writer that came too late, and
// those of different changesets differ, empty or not.
func TestFinalsAreEqual(t *testing.T) {
	tracker, c := opened(t, 1, 2)
	late, _ := c.Reserve(make([]int, 3*cowchangeset.MaxChunk)...)
	f := mustSeal(t, c)
	if late.PutAll() {
		t.Error("recorded after the seal")
	}
	if again := mustSeal(t, c); again != f || !slices.Equal(values(t, again.All()), []int{1, 2}) {
		t.Error("two Finals")
	}
	if g := mustSeal(t, start(t, tracker)); g == f || g == (cowchangeset.Final[int]{}) || g.Len() != 0 {
		t.Error("Finals of different changesets are equal")
	}
	var zero cowchangeset.Final[int]
	if zero.Len() != 0 || values(t, zero.All()) != nil {
		t.Error("the zero Final is not empty")
	}
}
