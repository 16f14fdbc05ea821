//go:build modelcheck

package cowchangeset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// list is what threads do to a slice. Threads have numbers, by which they keep
// what they have seen.
type list interface {
	append(items ...int) int
	load(thread int) []int
	snapshot(thread int) string           // version and items
	compareAndSwap(thread, item int) bool // with the thread's latest snapshot
	update(item int)                      // appends, by Update
	set(i, item int)
	delete(i int)
	audit() string
}

type listCall = mc.Call[list]

func appends(items ...int) listCall {
	return listCall{Name: fmt.Sprint("append", items), Do: func(l list) any { return l.append(items...) }}
}

func loads(thread int) listCall {
	return listCall{Name: "load", Do: func(l list) any { return l.load(thread) }}
}

func snapshots(thread int) listCall {
	return listCall{Name: "snapshot", Do: func(l list) any { return l.snapshot(thread) }}
}

func swaps(thread, item int) listCall {
	return listCall{Name: fmt.Sprintf("compareAndSwap(%d)", item), Do: func(l list) any { return l.compareAndSwap(thread, item) }}
}

func updates(item int) listCall {
	return listCall{Name: fmt.Sprintf("update(%d)", item), Do: func(l list) any { l.update(item); return nil }}
}

func sets(i, item int) listCall {
	return listCall{Name: fmt.Sprintf("set(%d, %d)", i, item), Do: func(l list) any { l.set(i, item); return nil }}
}

func deletes(i int) listCall {
	return listCall{Name: fmt.Sprintf("delete(%d)", i), Do: func(l list) any { l.delete(i); return nil }}
}

var ()

var listAudit = listCall{Name: "audit", Do: func(l list) any { return l.audit() }}

// slice is the real one, and what was loaded from it.
type slice struct {
	cowchangeset.Slice[int]
	snapshots [4]cowchangeset.Snapshot[int]
	loaded    [4][]loaded
	remains   func() []int // behind the first array
}

// newSlice returns a slice of n items.
func newSlice(n int) *slice {
	s := new(slice)
	s.Append(make([]int, n)...)
	s.remains = s.Remains()
	return s
}

type loaded struct{ items, then []int }

func (s *slice) append(items ...int) int { return s.Append(items...) }

func (s *slice) load(thread int) []int {
	items := s.Load()
	if len(items) != cap(items) {
		panic("room behind what was loaded")
	}
	s.loaded[thread] = append(s.loaded[thread], loaded{items, slices.Clone(items)})
	return slices.Clone(items)
}

func (s *slice) snapshot(thread int) string {
	s.snapshots[thread] = s.Snapshot()
	items := append([]int{}, s.snapshots[thread].Items()...)
	return fmt.Sprint(s.snapshots[thread].Version(), items)
}

func (s *slice) compareAndSwap(thread, item int) bool {
	return s.CompareAndSwap(s.snapshots[thread], []int{item})
}

func (s *slice) update(item int) {
	s.Update(func(old []int) []int { return append(old, item) })
}

func (s *slice) set(i, item int) { s.Set(i, item) }

func (s *slice) delete(i int) { s.Delete(i) }

// audit compares what was loaded with what it was then, and looks for items left
// where nobody reads them.
func (s *slice) audit() string {
	if items := s.remains(); slices.ContainsFunc(items, func(v int) bool { return v != 0 }) {
		return fmt.Sprintf("an appender left %v", items)
	}
	for _, ls := range s.loaded {
		for _, l := range ls {
			if !slices.Equal(l.items, l.then) {
				return fmt.Sprintf("%v became %v", l.then, l.items)
			}
		}
	}
	return ""
}

// listModel is its model, and which version each thread has seen.
type listModel struct {
	model.Slice
	snapshots [4]uint64
}

// newListModel returns the model of what newSlice returns.
func newListModel(n int) list {
	s := new(listModel)
	s.Append(make([]int, n)...)
	return s
}

func (s *listModel) append(items ...int) int { return s.Append(items...) }

func (s *listModel) load(int) []int { return s.Load() }

func (s *listModel) snapshot(thread int) string {
	s.snapshots[thread] = s.Version
	return fmt.Sprint(s.Version, s.Load())
}

func (s *listModel) compareAndSwap(thread, item int) bool {
	return s.CompareAndSwap(s.snapshots[thread], []int{item})
}

func (s *listModel) update(item int) {
	s.Update(func(old []int) []int { return append(old, item) })
}

func (s *listModel) set(i, item int) { s.Set(i, item) }

func (s *listModel) delete(i int) { s.Delete(i) }

func (s *listModel) audit() string { return "" }

// What threads may do to a slice that is empty, has room, or is full.
func TestSliceProtocols(t *testing.T) {
	type threads = [][]listCall
	for _, tt := range []struct {
		name    string
		has     int
		threads threads
	}{
		{"first appends", 0, threads{{appends(1), loads(0)}, {appends(2, 3)}, {loads(2)}}},
		{"first writes", 0, threads{{appends(1)}, {updates(2)}, {swaps(2, 3)}}},
		{"appends", 1, threads{{appends(1), appends(2)}, {appends(3, 4)}}},
		{"appends and loads", 1, threads{{appends(1)}, {appends(2)}, {loads(2), loads(2)}}},
		{"append, update and loads", 1, threads{{appends(1)}, {updates(2)}, {loads(2), loads(2)}}},
		{"append and swap", 1, threads{{appends(1)}, {snapshots(1), swaps(1, 2), loads(1)}}},
		{"appends and swap", 1, threads{{appends(1)}, {appends(2)}, {snapshots(2), swaps(2, 3)}}},
		{"swaps", 1, threads{{snapshots(0), swaps(0, 1)}, {snapshots(1), swaps(1, 2)}}},
		{"updates", 1, threads{{updates(1)}, {updates(2)}, {loads(2), loads(2)}}},
		{"appends to a full one", 4, threads{{appends(1)}, {appends(2)}, {loads(2), loads(2)}}},
		{"append and update of a full one", 4, threads{{appends(1), appends(2)}, {updates(3)}, {loads(2)}}},
		{"append and swap of a full one", 4, threads{{appends(1)}, {snapshots(1), swaps(1, 2)}, {appends(3)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Linearizable(t, mc.Config{}, mc.Program[list]{
				New:     func() list { return newSlice(tt.has) },
				Model:   func() list { return newListModel(tt.has) },
				Threads: tt.threads,
				After:   []listCall{loads(3), snapshots(3), appends(9), swaps(3, 8), loads(3), listAudit},
			})
		})
	}
}

// What they may do to single items, while others append,
// replace, or have claimed room and stalled.
func TestSliceEditProtocols(t *testing.T) {
	type threads = [][]listCall
	for _, tt := range []struct {
		name    string
		has     int
		stalled bool
		threads threads
	}{
		{"set, append and loads", 1, false, threads{{sets(0, 1)}, {appends(2)}, {loads(2), loads(2)}}},
		{"set of an item that is being appended", 1, false, threads{{sets(1, 1)}, {appends(2)}, {loads(2)}}},
		{"set of the first item", 0, false, threads{{sets(0, 1)}, {appends(2)}, {loads(2)}}},
		{"sets", 2, false, threads{{sets(0, 1)}, {sets(1, 2)}, {loads(2), loads(2)}}},
		{"set and update", 1, false, threads{{sets(0, 1)}, {updates(2)}, {loads(2)}}},
		{"set past a stalled append", 1, true, threads{{sets(0, 1)}, {appends(2)}, {loads(2)}}},
		{"delete and swap", 2, false, threads{{deletes(0)}, {snapshots(1), swaps(1, 2), loads(1)}}},
		{"delete, append and load", 2, false, threads{{deletes(1)}, {appends(1)}, {loads(2)}}},
		{"delete and set of one item", 2, false, threads{{deletes(0)}, {sets(1, 1)}, {loads(2)}}},
		{"deletes of the last item", 1, false, threads{{deletes(0)}, {deletes(0)}, {loads(2)}}},
		{"delete past a stalled append", 2, true, threads{{deletes(0)}, {snapshots(1), swaps(1, 2)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Linearizable(t, mc.Config{}, mc.Program[list]{
				New: func() list {
					s := newSlice(tt.has)
					if tt.stalled {
						s.AppendClaim(-1)
					}
					return s
				},
				Model:   func() list { return newListModel(tt.has) },
				Threads: tt.threads,
				After: []listCall{loads(3), snapshots(3), appends(9), loads(3), appends(7),
					snapshots(3), swaps(3, 8), loads(3), listAudit},
			})
		})
	}
}

// Costs of replacing single items.
func TestCostsOfEdits(t *testing.T) {
	mc.CheckCost(t, "Slice.Set", with(func(s *ints) { s.Set(0, 2) }), mc.Cost{Loads: 2, Stores: 1, RMWs: 2}, 3.50, 17.56, 150.55)
	var s ints
	s.Append(1, 2, 3)
	for _, tt := range []struct {
		name string
		op   func()
		want mc.Cost
	}{
		{"Delete", func() { s.Delete(1) }, mc.Cost{Loads: 2, Stores: 1, RMWs: 2}},
		{"Set that panics", func() { defer func() { _ = recover() }(); s.Set(2, 1) }, mc.Cost{Loads: 2}},
		// It looks as often as a patient one does, and then replaces the array.
		{"a claim, and Set", func() { s.Append(4); s.AppendClaim(5); s.Set(0, 9) }, mc.Cost{Loads: 2 + 2 + 2*(1+64+4), Stores: 1 + 1, RMWs: 2 + 1 + 2}},
	} {
		if got := mc.Measure(tt.op); got != tt.want {
			t.Errorf("%s costs %v, want %v", tt.name, got, tt.want)
		}
	}
}
