//go:build !modelcheck

package cowchangeset_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// wantItems checks the contents, and what Load promises about its slice.
func wantItems[T comparable](t *testing.T, s *cowchangeset.Slice[T], want ...T) {
	t.Helper()
	got := s.Load()
	if !slices.Equal(got, want) || s.Len() != len(want) {
		t.Fatalf("got %v and length %d, want %v", got, s.Len(), want)
	}
	if len(got) != cap(got) {
		t.Fatalf("length %d, capacity %d", len(got), cap(got))
	}
}

// mustPanic runs f and returns what it panics with.
func mustPanic(t *testing.T, f func()) (value any) {
	t.Helper()
	defer func() {
		if value = recover(); value == nil {
			t.Error("no panic")
		}
	}()
	f()
	return nil
}

// goexit runs f on a goroutine that f ends by runtime.Goexit.
func goexit(t *testing.T, f func()) {
	t.Helper()
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	if returned {
		t.Error("Goexit did not get through")
	}
}

func TestSliceZero(t *testing.T) {
	var s cowchangeset.Slice[string]
	wantItems(t, &s)
	for range s.All() {
		t.Error("an item in an empty slice")
	}
	if v := s.Snapshot().Version(); v != 0 {
		t.Errorf("version %d", v)
	}
	if i := s.Append(); i != 0 || s.Snapshot().Version() != 0 {
		t.Errorf("appending nothing returned %d and made version %d", i, s.Snapshot().Version())
	}
}

func TestSliceAppend(t *testing.T) {
	var s cowchangeset.Slice[int]
	if i := s.Append(1); i != 0 {
		t.Errorf("first index %d", i)
	}
	if i := s.Append(2, 3); i != 1 {
		t.Errorf("index of a batch %d", i)
	}
	if i := s.Append(); i != 3 {
		t.Errorf("index of nothing %d", i)
	}
	given := []int{4, 5, 6, 7, 8}
	s.Append(given...)
	clear(given) // Append has copied
	wantItems(t, &s, 1, 2, 3, 4, 5, 6, 7, 8)
	if v := s.Snapshot().Version(); v != 8 {
		t.Errorf("version %d after 8 items", v)
	}
}

// What a slice handed out never changes, nor does what users append to it.
func TestSliceLoadIsImmutable(t *testing.T) {
	var s cowchangeset.Slice[int]
	var loads [][]int
	for i := range 100 {
		loads = append(loads, s.Load())
		if i%10 == 9 {
			s.Update(func(old []int) []int { return slices.Clone(old) })
		}
		s.Append(i)
	}
	for i, l := range loads {
		a, b := append(l, -1), append(l, -2)
		if a[i] != -1 || b[i] != -2 {
			t.Fatal("two users' appends share an array")
		}
	}
	for i, l := range loads {
		for j, v := range l {
			if len(l) != i || v != j {
				t.Fatalf("load %d became %v", i, l)
			}
		}
	}
	if s.Len() != 100 {
		t.Fatalf("length %d", s.Len())
	}
}

func TestSliceUpdate(t *testing.T) {
	var s cowchangeset.Slice[string]
	s.Update(func(old []string) []string { return append(old, "a", "b", "c", "d") })
	wantItems(t, &s, "a", "b", "c", "d")
	s.Update(func(old []string) []string { return slices.Delete(slices.Clone(old), 1, 2) })
	wantItems(t, &s, "a", "c", "d")
	s.Update(func([]string) []string { return nil })
	wantItems(t, &s)
	s.Append("e")
	wantItems(t, &s, "e")
	if v := s.Snapshot().Version(); v != 4 {
		t.Errorf("version %d after 4 changes", v)
	}
}

// Fn may return its argument or a part of it: what shares the old array is
// never written through.
func TestSliceUpdateAliases(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(0, 1, 2, 3)
	before := s.Load()
	s.Update(func(old []int) []int { return old })
	s.Append(4)
	s.Update(func(old []int) []int { return old[:2] })
	s.Append(-2, -3)
	wantItems(t, &s, 0, 1, -2, -3)
	middle := s.Load()
	s.Update(func(old []int) []int { return old[1:3] })
	s.Append(9)
	wantItems(t, &s, 1, -2, 9)
	if !slices.Equal(before, []int{0, 1, 2, 3}) || !slices.Equal(middle, []int{0, 1, -2, -3}) {
		t.Errorf("earlier loads became %v and %v", before, middle)
	}
	shared := []int{7, 8, 9, 10} // spare capacity that is somebody's data
	s.Update(func([]int) []int { return shared[:1] })
	s.Append(-8)
	if shared[1] != 8 {
		t.Error("Append wrote behind the slice that Update was given")
	}
}

func TestSliceUpdateBadFunctions(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1)
	if p := fmt.Sprint(mustPanic(t, func() { s.Update(nil) })); p != "cowchangeset: Slice.Update called with a nil function" {
		t.Error(p)
	}
	if p := mustPanic(t, func() { s.Update(func([]int) []int { panic("mine") }) }); p != "mine" {
		t.Error(p)
	}
	goexit(t, func() { s.Update(func([]int) []int { runtime.Goexit(); return nil }) })
	if v := s.Snapshot().Version(); v != 1 {
		t.Errorf("version %d", v)
	}
	s.Append(2)
	wantItems(t, &s, 1, 2)
}

// A function that changes the slice it updates runs again, on that change.
func TestSliceUpdateReentrant(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1)
	runs := 0
	s.Update(func(old []int) []int {
		if runs++; runs == 1 {
			s.Append(2)
			s.Update(func(old []int) []int { return append(old, 3) })
		}
		return append(old, 4)
	})
	wantItems(t, &s, 1, 2, 3, 4)
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

func TestSliceCompareAndSwap(t *testing.T) {
	var s, other cowchangeset.Slice[int]
	zero := s.Snapshot()
	other.Append(1)
	s.Append(1)
	old := s.Snapshot()
	for name, stale := range map[string]cowchangeset.Snapshot[int]{
		"of an earlier version": zero,
		"of no slice":           {},
		"of another slice":      other.Snapshot(),
	} {
		if s.CompareAndSwap(stale, []int{0}) {
			t.Errorf("a snapshot %s matched", name)
		}
	}
	if !s.CompareAndSwap(old, []int{5, 6}) || s.CompareAndSwap(old, []int{7}) {
		t.Error("a snapshot did not match exactly once")
	}
	wantItems(t, &s, 5, 6)
	var fresh cowchangeset.Slice[int]
	if !fresh.CompareAndSwap(cowchangeset.Snapshot[int]{}, nil) || fresh.Snapshot().Version() != 1 {
		t.Error("the zero snapshot did not match an unchanged slice")
	}
	if fresh.CompareAndSwap(cowchangeset.Snapshot[int]{}, nil) {
		t.Error("the zero snapshot matched a changed slice")
	}
}

// A version outlives copies that only change the representation.
func TestSliceCompareAndSwapAfterStall(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1)
	old := s.Snapshot()
	finish := s.AppendClaim(9)
	s.Freeze()
	if finish() {
		t.Fatal("a claim survived the freeze")
	}
	if !s.CompareAndSwap(old, []int{2}) {
		t.Error("nothing changed, but the snapshot does not match")
	}
	wantItems(t, &s, 2)
}

// Appenders and replacers that stall after any step are passed by.
func TestSliceStalledWriters(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1)
	before := s.Load()
	finish := s.AppendClaim(-1, -2)
	if i := s.Append(2); i != 1 {
		t.Errorf("index %d", i)
	}
	if finish() {
		t.Error("the stalled append was published twice over")
	}
	s.Freeze()
	s.Append(3)
	s.Freeze()
	s.Update(func(old []int) []int { return append(old, 4) })
	s.Append(5) // Update leaves no room to claim
	finish = s.AppendClaim(-3)
	s.Update(func(old []int) []int { return append(old, 6) })
	if finish() {
		t.Error("the stalled append was published after an update")
	}
	wantItems(t, &s, 1, 2, 3, 4, 5, 6)
	if !slices.Equal(before, []int{1}) {
		t.Errorf("an earlier load became %v", before)
	}
}

// An append waits for another one longer if it would have to copy many items otherwise,
// and no longer if it would have to copy few.
func TestSliceAppendLingers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the append runs whenever this yields
	for items, want := range map[int]bool{10: false, 100_000: true} {
		var s cowchangeset.Slice[int]
		s.Append(make([]int, items)...)
		s.Append(0) // makes room
		finish := s.AppendClaim(1)
		at := make(chan int)
		go func() { at <- s.Append(2) }()
		for range 20 {
			runtime.Gosched()
		}
		if got := finish(); got != want {
			t.Errorf("%d items: the append that came first is published: %v", items, got)
		}
		if i, room := <-at, items+1; want && i != room+1 || !want && i != room {
			t.Errorf("%d items: the other one is at %d", items, i)
		}
	}
}

func TestSliceIteration(t *testing.T) {
	var s cowchangeset.Slice[int]
	all := s.All()
	s.Append(10, 11)
	got := []int{}
	for i, v := range all {
		got = append(got, i, v)
		s.Append(99) // not seen by this loop
	}
	if !slices.Equal(got, []int{0, 10, 1, 11}) {
		t.Errorf("a loop yielded %v", got)
	}
	for range all {
		break
	}
	snap := s.Snapshot()
	if snap.Len() != 4 || snap.At(1) != 11 {
		t.Errorf("snapshot of %d items, second is %d", snap.Len(), snap.At(1))
	}
	for i, v := range snap.All() {
		if snap.At(i) != v {
			t.Errorf("item %d is %d", i, v)
		}
	}
	mustPanic(t, func() { snap.At(4) })
}

// Nothing depends on what items are: no comparison, no zero-value sentinel.
func TestSliceOddItems(t *testing.T) {
	var s cowchangeset.Slice[any]
	s.Append(nil, math.NaN(), []int{}, func() {})
	s.Append(nil)
	if got := s.Load(); len(got) != 5 || got[0] != nil || got[4] != nil {
		t.Errorf("got %v", got)
	}
	var empty cowchangeset.Slice[struct{}]
	for range 1000 {
		empty.Append(struct{}{}, struct{}{})
	}
	if empty.Len() != 2000 {
		t.Errorf("%d empty structs", empty.Len())
	}
}

// Items without a size can be more than a length has bits for.
func TestSliceTooLong(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("no slice is that long")
	}
	type nothing = struct{}
	many := make([]nothing, math.MaxInt/4+1)
	var s cowchangeset.Slice[nothing]
	s.Append(many...)
	before := s.Snapshot()
	for name, f := range map[string]func(){
		"Append":         func() { s.Append(many...) },
		"Update":         func() { s.Update(func(old []nothing) []nothing { return append(old, many...) }) },
		"CompareAndSwap": func() { s.CompareAndSwap(before, make([]nothing, 2*len(many))) },
	} {
		if p := mustPanic(t, f); p != "cowchangeset: a Slice cannot have 2^62 items" {
			t.Error(name, p)
		}
	}
	if s.Snapshot().Version() != before.Version() || s.Append(nothing{}) != len(many) {
		t.Error("a change that panicked changed something")
	}
}
