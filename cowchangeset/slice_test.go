//go:build !modelcheck

package cowchangeset_test

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
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

// Checks S1, S5.

// Reported bug 3, Go, containers/image, ocicrypt: two appends write the same place.
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

// Checks S1, S5.

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

// Reported bug 5, arc-swap, cascade: updates are lost; nested or panicking ones hang.
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

// Checks S2, S3, S4.

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

// Checks S2, S3, S4.

// Reported bug 9, append-only-vec, salsa: a descheduled append stops others.
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
	if items := snap.Items(); len(items) != 4 || cap(items) != 4 || items[1] != 11 {
		t.Errorf("snapshot of %v", items)
	}
}

// Reported bug 2, xiaq/persistent: a nil item is the end, or no item.
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

// Checks S6.

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

// Set and Delete leave no room that holds no items.
func TestSliceEditsAreExact(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1, 2, 3)
	for name, edit := range map[string]func(){"Set": func() { s.Set(0, 7) }, "Delete": func() { s.Delete(2) }} {
		s.Append(9, 9, 9, 9)
		if edit(); s.Cap() != s.Len() {
			t.Errorf("%s: room for %d items behind %d", name, s.Cap()-s.Len(), s.Len())
		}
	}
}

// What was deleted or replaced is not kept alive, nor what an Update leaves out of a copy.
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
		{"Update", func() { s.Update(func(old []*big) []*big { return slices.Clone(old[:1]) }) }, 5},
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

// Reported bug 9, append-only-vec, salsa: a descheduled append stops others.
// Edits of single items pass by writers that have stalled. The later
// steps of these harm nothing.
func TestSliceEditsPassStalledWriters(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*cowchangeset.Slice[int])
		want []int
	}{
		"Set":    {func(s *cowchangeset.Slice[int]) { s.Set(1, 7) }, []int{1, 7}},
		"Delete": {func(s *cowchangeset.Slice[int]) { s.Delete(0) }, []int{2}},
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
			want := map[string][]int{"Set": {1, 7, 3, 4, 5, 6}, "Delete": {3, 4, 5, 6}}[name]
			wantItems(t, &s, want...)
			if !slices.Equal(before, []int{1, 2}) {
				t.Errorf("an earlier load became %v", before)
			}
		})
	}
}

// Reported bug 6, rcu_ptr, dingo, h5i, growthbook: a writer never gets through.
// A Set gets through a stream of appends, which an Update might not: each
// append has it copy again.
func TestSliceSetAmongAppends(t *testing.T) {
	sets := 50
	if testing.Short() {
		sets = 10
	}
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
		for i := range sets {
			s.Set(i, i+1)
		}
	})
	crew.run()
	for i, v := range s.Load() {
		if want := i + 1; i < sets && v != want || i >= 1<<16 && v != -1 {
			t.Fatalf("item %d is %d", i, v)
		}
	}
}

// What users of other copy-on-write and append-only containers have reported;
// DESIGN.md says who.

// Reported bug 1, benbjohnson/immutable, bifurcan: a write changes an earlier version.
// The backing array of one version is written to by a later one.
func TestT1_OldVersionsNeverChange(t *testing.T) {
	var s cowchangeset.Slice[int]
	seed := maphash.MakeSeed()
	sum := func(items []int) uint64 {
		var h maphash.Hash
		h.SetSeed(seed)
		maphash.WriteComparable(&h, len(items))
		for _, v := range items {
			maphash.WriteComparable(&h, v)
		}
		return h.Sum64()
	}
	type version struct {
		items []int
		sum   uint64
	}
	var versions []version
	random := rand.New(rand.NewPCG(1, 2))
	for k := range 2000 {
		switch n := s.Len(); random.IntN(9) {
		case 0:
			s.Update(func(old []int) []int { return append(old, k, k) })
		case 1:
			s.Update(func(old []int) []int { return old[:n-n/8] })
		case 2:
			s.CompareAndSwap(s.Snapshot(), s.Load())
		case 3:
			s.Update(slices.Clone)
		case 4, 5:
			if n > 0 {
				s.Set(random.IntN(n), -k)
			}
		case 6:
			if n > 0 {
				s.Delete(random.IntN(n))
			}
		default:
			s.Append(slices.Repeat([]int{k}, random.IntN(9))...)
		}
		items := s.Load()
		versions = append(versions, version{items, sum(items)})
	}
	for i, v := range versions {
		if sum(v.items) != v.sum {
			t.Fatalf("version %d has changed", i)
		}
	}
}

// Reported bug 2, xiaq/persistent: a nil item is the end, or no item.
// Nil and zero items are taken for places where there is none.
func TestT2_NilAndZeroItems(t *testing.T) {
	var pointers cowchangeset.Slice[*int]
	pointers.Append(nil, nil)
	pointers.Append(new(int))
	pointers.Append(nil)
	pointers.Set(2, nil)
	pointers.Delete(0)
	wantItems(t, &pointers, nil, nil, nil)
	n := 0
	for i, p := range pointers.All() {
		if i != n || p != nil {
			t.Errorf("item %d is %v", i, p)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d items in a loop", n)
	}

	var errs cowchangeset.Slice[error]
	errs.Update(func(old []error) []error { return append(old, nil) })
	errs.Append(nil)
	wantItems(t, &errs, nil, nil)
	var strings cowchangeset.Slice[string]
	strings.Append("", "")
	strings.Set(1, "")
	wantItems(t, &strings, "", "")
	var nothing cowchangeset.Slice[struct{}]
	nothing.Append(struct{}{}, struct{}{}, struct{}{})
	nothing.Delete(1)
	nothing.Set(1, struct{}{})
	wantItems(t, &nothing, struct{}{}, struct{}{})
}

// Reported bug 3, Go, containers/image, ocicrypt: two appends write the same place.
// A reader appends to what it was given, and two such readers, or a reader and
// a writer, share the array behind it.
func TestT3_ReadersAppend(t *testing.T) {
	var s cowchangeset.Slice[int]
	crew := newCrew()
	for r := range 3 {
		crew.add(func() {
			for k := range 300 {
				items := s.Load()
				n := len(items)
				items = append(items, -r, -k)
				stumble()
				if items[n] != -r || items[n+1] != -k {
					t.Errorf("reader %d appended %d, and has %v", r, k, items[n:])
				}
			}
		})
	}
	crew.add(func() {
		for k := range 300 {
			s.Append(k)
			stumble()
		}
	})
	crew.run()
	for i, v := range s.Load() {
		if v != i {
			t.Fatalf("item %d is %d", i, v)
		}
	}
}

// Reported bug 4, slf4j-test, jcabi-jdbc, sentry-java, elps: n appends copy n² items.
// Copy-on-write lists copy all items for each that is appended. Here the copies
// of n appends are fewer than 3n items; TestSliceAppendIsAmortized counts bytes.
func TestT4_AppendsCopyLittle(t *testing.T) {
	const n = 100_000
	var s cowchangeset.Slice[byte]
	copied := 0
	var array *byte
	for i := range n {
		s.Append(byte(i))
		if first := &s.Load()[0]; first != array {
			array = first
			copied += i
		}
	}
	if copied >= 3*n {
		t.Errorf("%d items copied for %d appends", copied, n)
	}
}

// Reported bug 5, arc-swap, cascade: updates are lost; nested or panicking ones hang.
// A load, a change and a store lose the changes in between; so there is no
// store. Functions that panic, exit or update again leave the contents as they
// should be, and hang nobody.
func TestT5_UpdatesWithinUpdates(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(1)
	if p := mustPanic(t, func() {
		s.Update(func([]int) []int {
			s.Update(func(old []int) []int { return append(old, 2) })
			s.Set(0, 7)
			panic("after changes of its own")
		})
	}); p != "after changes of its own" {
		t.Error(p)
	}
	wantItems(t, &s, 7, 2)
	goexit(t, func() {
		s.Update(func([]int) []int {
			s.Delete(0)
			runtime.Goexit()
			return nil
		})
	})
	wantItems(t, &s, 2)
	depth := 0
	var nest func(old []int) []int
	nest = func(old []int) []int {
		if depth++; depth <= 5 {
			s.Update(nest)
		}
		return append(old, depth)
	}
	s.Update(nest)
	if s.Len() != 7 { // six levels, each once
		t.Errorf("%v after nested updates", s.Load())
	}
}

// Reported bug 6, rcu_ptr, dingo, h5i, growthbook: a writer never gets through.
// Writers that give up after so many attempts, or lose to others, lose what
// they write.
func TestT6_AllWritersLand(t *testing.T) {
	const writers, each = 64, 12
	var s cowchangeset.Slice[entry]
	var shared cowchangeset.Slice[int]
	shared.Append(make([]int, writers)...)
	crew := newCrew()
	for w := range writers {
		crew.add(func() {
			for k := range each {
				e := entry{w, k}
				switch (w + k) % 3 {
				case 0:
					s.Append(e)
				case 1:
					s.Update(func(old []entry) []entry { stumble(); return append(old, e) })
				case 2:
					for {
						old := s.Snapshot()
						if s.CompareAndSwap(old, append(slices.Clone(old.Items()), e)) {
							break
						}
					}
				}
				shared.Set(w, k+1)
				stumble()
			}
		})
	}
	crew.run()
	next := make([]int, writers)
	for _, e := range s.Load() {
		if e.k != next[e.writer] {
			t.Fatalf("writer %d: entry %d after %d others", e.writer, e.k, next[e.writer])
		}
		next[e.writer]++
	}
	for w := range writers {
		if next[w] != each || shared.Load()[w] != each {
			t.Errorf("writer %d: %d entries, and last set %d", w, next[w], shared.Load()[w])
		}
	}
}

// Reported bug 7, left-right, evmap: a parked reader blocks writers.
// A reader that stays in a loop keeps writers waiting, or sees what they do.
func TestT7_ParkedReaderBlocksNobody(t *testing.T) {
	var s cowchangeset.Slice[int]
	s.Append(0, 1, 2, 3)
	parked, resume := make(chan struct{}), make(chan struct{})
	crew := newCrew()
	crew.add(func() {
		got := []int{}
		for i, v := range s.All() {
			if i == 1 {
				close(parked)
				<-resume
			}
			got = append(got, v)
		}
		if !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Errorf("the loop saw %v", got)
		}
	})
	crew.add(func() {
		defer close(resume) // which only this goroutine does, when it is through
		<-parked
		for k := range 100 {
			s.Append(k)
			s.Set(2, -k)
			s.Update(func(old []int) []int { return append(old, k) })
			s.Delete(3)
		}
	})
	crew.run()
	if s.Len() != 104 {
		t.Errorf("%d items", s.Len())
	}
}

// Reported bug 8, boxcar: appenders miss their own items.
// A goroutine that has appended an item does not find it, or finds another in its
// place, while others append.
func TestT8_WritersReadWhatTheyWrote(t *testing.T) {
	const writers, each = 4, 300
	var s cowchangeset.Slice[entry]
	crew := newCrew()
	for w := range writers {
		crew.add(func() {
			for k := range each {
				e := entry{w, k}
				i := s.Append(e, e)
				stumble()
				if items := s.Load(); len(items) < i+2 || items[i] != e || items[i+1] != e {
					t.Errorf("%v is not at %d", e, i)
					return
				}
			}
		})
	}
	crew.run()
}

// Reported bug 9, append-only-vec, salsa: a descheduled append stops others.
// An append that has stalled halfway keeps all others waiting, so that with one
// processor and many goroutines nothing moves.
func TestT9_StalledAppendDelaysNobody(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const writers = 10_000
	var s cowchangeset.Slice[int]
	s.Append(0)
	finish := s.AppendClaim(-1)
	crew := newCrew()
	for range writers {
		crew.add(func() { s.Append(1) })
	}
	crew.run()
	if finish() {
		t.Error("the stalled append was published after all")
	}
	items := s.Load()
	if len(items) != writers+1 || slices.Index(items, 0) != 0 || slices.Contains(items, -1) {
		t.Errorf("%d items", len(items))
	}
}

// Reported bug 10, oneTBB, MadFS, freesync: the length counts unwritten items.
// The length counts items that have not been written yet, and readers find
// zeroes or stumble over them.
func TestT10_LengthCountsWhatIsThere(t *testing.T) {
	var s cowchangeset.Slice[*entry]
	var left atomic.Int64
	const writers = 3
	left.Store(writers)
	crew := newCrew()
	for w := range writers {
		crew.add(func() {
			defer left.Add(-1)
			for k := range 500 {
				s.AppendSlowly(&entry{w, k}, stumble)
			}
		})
	}
	crew.add(func() {
		for left.Load() > 0 {
			n := s.Len()
			items := s.Load()
			if len(items) < n || slices.Contains(items, nil) {
				t.Errorf("length %d, and then %d items, complete: %v", n, len(items), !slices.Contains(items, nil))
				return
			}
			stumble()
		}
	})
	crew.run()
}

// Reported bug 11, oneTBB: two that grow at once lose items.
// Two that grow the array at once put theirs in place of each other's, and
// lose what was appended to one of them.
func TestT11_GrowingLosesNothing(t *testing.T) {
	for range iterations(300) {
		const writers = 4
		var s cowchangeset.Slice[entry]
		s.Append(make([]entry, 4)...) // full, as it is at first
		if s.Cap() != 4 {
			t.Fatalf("room for %d items", s.Cap())
		}
		crew := newCrew()
		for w := range writers {
			crew.add(func() { s.Append(slices.Repeat([]entry{{w + 1, 1}}, w+3)...) })
		}
		crew.run()
		counts := [writers + 1]int{}
		for _, e := range s.Load() {
			counts[e.writer]++
		}
		if counts != [...]int{4, 3, 4, 5, 6} {
			t.Fatalf("items of each writer: %v", counts)
		}
	}
}
