//go:build !modelcheck

package cowchangeset_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// wantVersion checks how many changes there have been.
func wantVersion[T any](t *testing.T, s *cowchangeset.Slice[T], want uint64) {
	t.Helper()
	if v := s.Snapshot().Version(); v != want {
		t.Fatalf("version %d, want %d", v, want)
	}
}

func TestSliceSet(t *testing.T) {
	var s cowchangeset.Slice[string]
	s.Append("a", "b", "c")
	before := s.Load()
	s.Set(0, "A")
	s.Set(2, "C")
	s.Set(2, "C") // a change, though to the same
	wantItems(t, &s, "A", "b", "C")
	wantVersion(t, &s, 6)
	s.Append("d")
	wantItems(t, &s, "A", "b", "C", "d")
	if !slices.Equal(before, []string{"a", "b", "c"}) {
		t.Errorf("an earlier load became %v", before)
	}
}

func TestSliceDelete(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(0, 1, 2, 3, 4)
	before := s.Load()
	s.Delete(4)
	wantItems(t, &s, 0, 1, 2, 3)
	s.Delete(0)
	wantItems(t, &s, 1, 2, 3)
	s.Delete(1)
	wantItems(t, &s, 1, 3)
	s.Append(5)
	wantItems(t, &s, 1, 3, 5)
	for range 3 {
		s.Delete(0)
	}
	wantItems(t, &s)
	wantVersion(t, &s, 5+3+1+3)
	s.Append(6)
	wantItems(t, &s, 6)
	if !slices.Equal(before, []int{0, 1, 2, 3, 4}) {
		t.Errorf("an earlier load became %v", before)
	}
}

func TestSliceEditsOutOfRange(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		var never, s cowchangeset.Slice[int]
		s.Append(make([]int, n)...)
		s.Update(slices.Clone[[]int])
		s.Append()
		slices := []*cowchangeset.Slice[int]{&s}
		if n == 0 {
			slices = append(slices, &never)
		}
		for _, s := range slices {
			version := s.Snapshot().Version()
			for _, i := range []int{-1, math.MinInt, n, n + 1, math.MaxInt} {
				for op, f := range map[string]func(){"Set": func() { s.Set(i, 9) }, "Delete": func() { s.Delete(i) }} {
					want := fmt.Sprintf("cowchangeset: Slice.%s called with index %d of %d items", op, i, n)
					if p := mustPanic(t, f); p != want {
						t.Errorf("got %q, want %q", p, want)
					}
				}
			}
			wantItems(t, s, make([]int, n)...)
			wantVersion(t, s, version)
		}
	}
}

// A panic leaves nothing behind that later writers would wait for.
func TestSliceEditThatPanicsHoldsNothing(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1)
	room := s.Cap()
	mustPanic(t, func() { s.Set(1, 2) })
	mustPanic(t, func() { s.Delete(1) })
	s.Append(2)
	wantItems(t, &s, 1, 2)
	if s.Cap() != room {
		t.Error("the array was frozen for nothing")
	}
}

func TestSliceClip(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Clip()
	wantItems(t, &s)
	wantVersion(t, &s, 0)
	s.Append(1, 2, 3)
	s.Append(4, 5)
	old, before := s.Snapshot(), s.Load()
	if s.Cap() == 5 {
		t.Fatal("there is no room to give back")
	}
	s.Clip()
	if s.Cap() != 5 {
		t.Errorf("room for %d items", s.Cap())
	}
	wantItems(t, &s, 1, 2, 3, 4, 5)
	wantVersion(t, &s, 5)
	if !slices.Equal(before, s.Load()) || &before[0] == &s.Load()[0] {
		t.Error("the contents were not copied")
	}
	clipped := &s.Load()[0]
	if s.Clip(); clipped != &s.Load()[0] {
		t.Error("what was clipped already was copied again")
	}
	if !s.CompareAndSwap(old, []int{6}) { // nothing has changed since
		t.Error("a snapshot from before the Clip does not match")
	}
	s.Append(7)
	wantItems(t, &s, 6, 7)
	s.Update(func([]int) []int { return nil })
	s.Clip()
	wantItems(t, &s)
	wantVersion(t, &s, 8)
}

// Set and Delete leave nothing for Clip to do.
func TestSliceEditsAreExact(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1, 2, 3)
	for name, edit := range map[string]func(){"Set": func() { s.Set(0, 7) }, "Delete": func() { s.Delete(2) }} {
		s.Append(9, 9, 9, 9)
		edit()
		first := &s.Load()[0]
		if s.Clip(); s.Cap() != s.Len() || first != &s.Load()[0] {
			t.Errorf("%s: room for %d items behind %d, copied: %v", name, s.Cap()-s.Len(), s.Len(), first != &s.Load()[0])
		}
	}
}

// What a part of an array keeps alive goes with Clip, as what was deleted or
// replaced goes by itself.
func TestSliceKeepsNothingAlive(t *testing.T) {
	type big struct{ _ [1 << 16]byte }
	var freed atomic.Int64
	item := func() *big {
		b := new(big)
		runtime.AddCleanup(b, func(struct{}) { freed.Add(1) }, struct{}{})
		return b
	}
	var s cowchangeset.Slice[*big]
	s.Append(item(), item(), item(), item(), item())
	for _, tt := range []struct {
		name string
		do   func()
		want int64
	}{
		{"Delete of the last", func() { s.Delete(4) }, 1},
		{"Delete of the first", func() { s.Delete(0) }, 2},
		{"Set", func() { s.Set(0, nil) }, 3},
		{"Update and Clip", func() { s.Update(func(old []*big) []*big { return old[:1] }); s.Clip() }, 5},
		{"Delete of all, and Append", func() { s.Set(0, item()); s.Delete(0); s.Append(nil) }, 6},
	} {
		tt.do()
		for range 100 {
			if runtime.GC(); freed.Load() >= tt.want {
				break
			}
			runtime.Gosched()
		}
		if freed.Load() != tt.want {
			t.Errorf("after %s: %d items are gone, want %d", tt.name, freed.Load(), tt.want)
		}
	}
	runtime.KeepAlive(&s)
}

// Edits of single items, and of the room, pass by writers that have stalled. The later
// steps of these harm nothing.
func TestSliceEditsPassStalledWriters(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*cowchangeset.Slice[int])
		want []int
	}{
		"Set":    {func(s *cowchangeset.Slice[int]) { s.Set(1, 7) }, []int{1, 7}},
		"Delete": {func(s *cowchangeset.Slice[int]) { s.Delete(0) }, []int{2}},
		"Clip":   {func(s *cowchangeset.Slice[int]) { s.Clip() }, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var s cowchangeset.Slice[int]
			s.Append(1, 2)
			before := s.Load()
			finish := s.AppendClaim(-1)
			tt.edit(&s)
			if finish() {
				t.Error("the stalled append was published after all")
			}
			wantItems(t, &s, tt.want...)
			s.Append(3, 4, 5) // with room behind them
			s.Freeze()
			s.Append(6)
			s.Freeze()
			tt.edit(&s)
			want := map[string][]int{"Set": {1, 7, 3, 4, 5, 6}, "Delete": {3, 4, 5, 6}, "Clip": {1, 2, 3, 4, 5, 6}}[name]
			wantItems(t, &s, want...)
			if !slices.Equal(before, []int{1, 2}) {
				t.Errorf("an earlier load became %v", before)
			}
		})
	}
}

// A Set gets through a stream of appends, which an Update might not: each
// append has it copy again.
func TestSliceSetAmongAppends(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(make([]int, 1<<16)...)
	var stop atomic.Bool
	crew := newCrew()
	for range 2 {
		crew.add(func() {
			for !stop.Load() && s.Len() < 1<<22 {
				s.Append(-1)
			}
		})
	}
	crew.add(func() {
		defer stop.Store(true)
		for i := range 50 {
			s.Set(i, i+1)
			s.Clip()
		}
	})
	crew.run()
	for i, v := range s.Load() {
		if want := i + 1; i < 50 && v != want || i >= 1<<16 && v != -1 {
			t.Fatalf("item %d is %d", i, v)
		}
	}
}
