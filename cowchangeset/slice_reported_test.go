//go:build !modelcheck

package cowchangeset_test

import (
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// What users of other copy-on-write and append-only containers have reported;
// DESIGN.md says who.

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
			s.Clip()
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

// Nil and zero items are taken for places where there is none.
func TestT2_NilAndZeroItems(t *testing.T) {
	var pointers cowchangeset.Slice[*int]
	pointers.Append(nil, nil)
	pointers.Append(new(int))
	pointers.Append(nil)
	pointers.Set(2, nil)
	pointers.Delete(0)
	pointers.Clip()
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
	nothing.Clip()
	wantItems(t, &nothing, struct{}{}, struct{}{})
}

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
			s.Clip()
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
						if s.CompareAndSwap(old, append(slices.Collect(iterValues(old)), e)) {
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
			s.Clip()
		}
	})
	crew.run()
	if s.Len() != 104 {
		t.Errorf("%d items", s.Len())
	}
}

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

// Two that grow the array at once put theirs in place of each other's, and
// lose what was appended to one of them.
func TestT11_GrowingLosesNothing(t *testing.T) {
	for range rounds(300) {
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
