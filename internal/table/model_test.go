//go:build modelcheck

package table_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// explore returns everything that the threads of a body may see, as they tell
// it.
func explore(t *testing.T, operations string, threads int, body func(m *mc.M, tab *table.Table[string, cell], see func(...any))) []string {
	t.Helper()
	seen := map[string]bool{}
	mc.Check(t, mc.Config{Operations: operations}, func(m *mc.M) {
		told := make([][]string, threads)
		tab := newTable()
		body(m, tab, func(what ...any) {
			i := what[0].(int)
			told[i] = append(told[i], fmt.Sprint(what[1:]...))
		})
		m.Final(func() { seen[fmt.Sprint(told)] = true })
	})
	return slices.Sorted(maps.Keys(seen))
}

// While a Compute is in its function, readers see what was, other writers of
// the key wait, and writers of other keys do not.
func TestModelHoldsTheKeyDuringCompute(t *testing.T) {
	got := explore(t, "Compute that reads a word twice ∥ Load, store the word, Swap of another key, Swap", 2, func(m *mc.M, tab *table.Table[string, cell], see func(...any)) {
		var word atomics.Uint64
		tab.Swap("k", &cell{1})
		m.Go(func() {
			e := tab.Compute("k", func(now *cell) *cell {
				before := word.Load()
				after := word.Load()
				return &cell{now.n*100 + int(before)*10 + int(after)}
			})
			see(0, e.n)
		})
		m.Go(func() {
			old := tab.Load("k").n
			word.Store(1)
			tab.Swap("other", &cell{})
			see(1, old, tab.Swap("k", &cell{2}).n)
		})
	})
	want := []string{
		"[[100] [1 100]]",   // the other thread reads first, or inside, and stores later
		"[[100] [100 100]]", // it reads later
		"[[101] [1 101]]",   // its store falls between the two loads, and it waits to swap
		"[[111] [1 111]]",   // its store comes first, and it waits to swap
		"[[211] [1 1]]",     // it swaps first
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("outcomes\n\t%q\nwant\n\t%q", got, want)
	}
}

// All waits for a Compute that is in its function when it starts, and yields what that
// inserts.
func TestAllWaitsForCompute(t *testing.T) {
	got := explore(t, "Compute that stores and reads words ∥ read the word, All, store the other", 2, func(m *mc.M, tab *table.Table[string, cell], see func(...any)) {
		var begun, listed atomics.Uint64
		m.Go(func() {
			tab.Compute("k", func(*cell) *cell {
				begun.Store(1)
				return &cell{int(listed.Load())}
			})
		})
		m.Go(func() {
			before, n := begun.Load(), 0
			for range tab.All() {
				n++
			}
			listed.Store(1)
			see(1, before, n)
		})
	})
	want := []string{
		"[[] [0 0]]", // All comes first, or misses it
		"[[] [0 1]]", // the function begins before All does, or it sees it
		"[[] [1 1]]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("outcomes\n\t%q\nwant\n\t%q", got, want)
	}
}

// All may yield or miss what comes and goes meanwhile, and yields what stays.
func TestModelOfAllIsAsWeakAsPromised(t *testing.T) {
	got := explore(t, "All ∥ LoadAndDelete(goes), Swap(comes)", 1, func(m *mc.M, tab *table.Table[string, cell], see func(...any)) {
		tab.Swap("stays", &cell{1})
		tab.Swap("goes", &cell{2})
		m.Go(func() {
			for _, e := range tab.All() {
				see(0, e.n)
			}
		})
		m.Go(func() {
			tab.LoadAndDelete("goes")
			tab.Swap("comes", &cell{3})
		})
	})
	want := []string{"[[1 2 3]]", "[[1 2]]", "[[1 3]]", "[[1]]"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("outcomes\n\t%q\nwant\n\t%q", got, want)
	}
}

// Operations on one key are atomic, and Len is exact in the model.
func TestModelIsLinearizable(t *testing.T) {
	type tab = *table.Table[string, cell]
	a, b := &cell{1}, &cell{2}
	show := func(e *cell) any {
		if e == nil {
			return nil
		}
		return e.n
	}
	call := func(name string, f func(m tab) any) mc.Call[tab] { return mc.Call[tab]{Name: name, Do: f} }
	var (
		load   = call("Load", func(m tab) any { return show(m.Load("k")) })
		insert = call("LoadOrStore", func(m tab) any { e, l := m.LoadOrStore("k", b); return fmt.Sprint(e.n, l) })
		swap   = call("Swap", func(m tab) any { return show(m.Swap("k", a)) })
		cas    = call("CompareAndSwap", func(m tab) any { return m.CompareAndSwap("k", a, b) })
		remove = call("CompareAndDelete", func(m tab) any { return m.CompareAndDelete("k", a) })
		take   = call("LoadAndDelete", func(m tab) any { return show(m.LoadAndDelete("k")) })
		keep   = call("Compute", func(m tab) any { return show(m.Compute("k", func(now *cell) *cell { return now })) })
		length = call("Len", func(m tab) any { return m.Len() })
	)
	for _, tt := range []struct {
		name    string
		threads [][]mc.Call[tab]
	}{
		{"swaps and deletes", [][]mc.Call[tab]{{swap, cas}, {remove, insert}}},
		{"one of each", [][]mc.Call[tab]{{swap, load}, {take}, {cas}}},
		{"Len", [][]mc.Call[tab]{{insert, length}, {swap, take}}},
		{"Compute", [][]mc.Call[tab]{{keep, load}, {swap}, {remove}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Linearizable(t, mc.Config{}, mc.Program[tab]{
				New: newTable, Model: newTable, Threads: tt.threads, After: []mc.Call[tab]{length, load},
			})
		})
	}
}

func TestModelHashesEqualKeysAlike(t *testing.T) {
	floats, anys := table.NewKeys[float64](), table.NewKeys[any]()
	zero := 0.0
	if floats.Hash(zero) != floats.Hash(-zero) || anys.Hash(zero) != anys.Hash(any(-zero)) {
		t.Error("the two zeros hash differently")
	}
	type key struct {
		a string
		b [2]int
		c any
		d bool
		e complex128
		f *int
		g uint8
	}
	keys := table.NewKeys[key]()
	k := key{"a", [2]int{1, 2}, "c", true, 1i, new(int), 7}
	other := k
	if keys.Hash(k) != keys.Hash(other) {
		t.Error("equal keys hash differently")
	}
	if other.b[1] = 3; keys.Hash(k) == keys.Hash(other) {
		t.Error("different keys hash alike")
	}
	defer func() {
		if recover() == nil {
			t.Error("a slice was hashed")
		}
	}()
	anys.Hash([]int{})
}
