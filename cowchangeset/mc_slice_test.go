//go:build modelcheck

package cowchangeset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/mc"
)

// list is what threads do to a slice. Threads have numbers, by which they keep
// what they have seen.
type list interface {
	append(items ...int) int
	load(thread int) []int
	snapshot(thread int) string           // version and items
	compareAndSwap(thread, item int) bool // with the thread's latest snapshot
	update(item int)                      // appends, by Update
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
	items := []int{}
	for _, v := range s.snapshots[thread].All() {
		items = append(items, v)
	}
	return fmt.Sprint(s.snapshots[thread].Version(), items)
}

func (s *slice) compareAndSwap(thread, item int) bool {
	return s.CompareAndSwap(s.snapshots[thread], []int{item})
}

func (s *slice) update(item int) {
	s.Update(func(old []int) []int { return append(old, item) })
}

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

// simpleList is its model, for one goroutine.
type simpleList struct {
	items     []int
	version   uint64
	snapshots [4]uint64
}

func (s *simpleList) append(items ...int) int {
	n := len(s.items)
	s.items, s.version = slices.Concat(s.items, items), s.version+uint64(len(items))
	return n
}

func (s *simpleList) load(int) []int { return s.items }

func (s *simpleList) snapshot(thread int) string {
	s.snapshots[thread] = s.version
	return fmt.Sprint(s.version, s.items)
}

func (s *simpleList) compareAndSwap(thread, item int) bool {
	if s.snapshots[thread] != s.version {
		return false
	}
	s.items, s.version = []int{item}, s.version+1
	return true
}

func (s *simpleList) update(item int) { s.append(item) }

func (s *simpleList) audit() string { return "" }

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
				Model:   func() list { s := new(simpleList); s.append(make([]int, tt.has)...); return s },
				Threads: tt.threads,
				After:   []listCall{loads(3), snapshots(3), appends(9), swaps(3, 8), loads(3), listAudit},
			})
		})
	}
}
