package table_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

type cell struct{ n int }

func newTable() *table.Table[string, cell] {
	keys := table.NewKeys[string]()
	return table.New[string, cell](keys.Hasher("test"), 0)
}

func TestAbsentKey(t *testing.T) {
	m := newTable()
	if e := m.Load("a"); e != nil {
		t.Errorf("Load of an absent key = %v, want nil", e)
	}
	if e := m.LoadAndDelete("a"); e != nil {
		t.Errorf("LoadAndDelete of an absent key = %v, want nil", e)
	}
	if m.CompareAndDelete("a", nil) {
		t.Error("CompareAndDelete deleted an absent key")
	}
	if m.CompareAndSwap("a", &cell{}, &cell{}) {
		t.Error("CompareAndSwap swapped an absent key")
	}
	if n := m.Len(); n != 0 {
		t.Errorf("Len = %d, want 0", n)
	}
}

func TestStoreSwapDelete(t *testing.T) {
	m := newTable()
	a, b, c := &cell{1}, &cell{2}, &cell{3}
	if got, loaded := m.LoadOrStore("k", a); got != a || loaded {
		t.Fatalf("LoadOrStore = %v, %v; want its argument, false", got, loaded)
	}
	if got, loaded := m.LoadOrStore("k", b); got != a || !loaded {
		t.Fatalf("second LoadOrStore = %v, %v; want the first cell, true", got, loaded)
	}
	if m.CompareAndSwap("k", b, c) {
		t.Fatal("CompareAndSwap swapped from a cell that was not stored")
	}
	if !m.CompareAndSwap("k", a, b) || m.Load("k") != b {
		t.Fatal("CompareAndSwap did not swap")
	}
	if old := m.Swap("k", c); old != b {
		t.Fatalf("Swap = %v, want the cell it replaced", old)
	}
	if m.CompareAndDelete("k", b) || m.Len() != 1 {
		t.Fatal("CompareAndDelete deleted a cell that was not stored")
	}
	if !m.CompareAndDelete("k", c) || m.Load("k") != nil || m.Len() != 0 {
		t.Fatal("CompareAndDelete did not delete")
	}
	if old := m.Swap("k", a); old != nil {
		t.Fatalf("Swap into an absent key = %v, want nil", old)
	}
	if old := m.LoadAndDelete("k"); old != a {
		t.Fatalf("LoadAndDelete = %v, want the stored cell", old)
	}
}

func TestCompute(t *testing.T) {
	m := newTable()
	a, b := &cell{1}, &cell{2}
	if got := m.Compute("k", func(now *cell) *cell { return now }); got != nil || m.Len() != 0 {
		t.Fatalf("Compute that keeps nothing = %v, stored %d", got, m.Len())
	}
	m.Compute("k", func(*cell) *cell { return a })
	if got := m.Compute("k", func(now *cell) *cell {
		if now != a {
			t.Errorf("Compute saw %v, want the stored cell", now)
		}
		return b
	}); got != b || m.Load("k") != b {
		t.Fatal("Compute did not replace")
	}
	if got := m.Compute("k", func(*cell) *cell { return nil }); got != nil || m.Load("k") != nil {
		t.Fatal("Compute did not delete")
	}
}

// No entry is lost while the table grows and shrinks under its writers, and
// All yields no key twice (xsync issues 63, 87, 109, 112).
func TestGrowAndShrinkLosesNothing(t *testing.T) {
	m := newTable()
	workers, each := 2*runtime.GOMAXPROCS(0), 3000
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				k, e := fmt.Sprint(w, "/", i), &cell{i}
				m.LoadOrStore(k, e)
				if m.Load(k) != e {
					t.Errorf("%s is missing after it was stored", k)
					return
				}
				if i%2 == 1 && !m.CompareAndDelete(k, e) {
					t.Errorf("%s could not be deleted", k)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for k := range m.All() {
		if seen[k] {
			t.Errorf("All yielded %s twice", k)
		}
		seen[k] = true
	}
	if want := workers * each / 2; len(seen) != want || m.Len() != want {
		t.Errorf("All yielded %d entries and Len is %d, want %d", len(seen), m.Len(), want)
	}
	for k := range seen {
		m.LoadAndDelete(k)
	}
	if m.Len() != 0 {
		t.Errorf("Len = %d after everything was deleted", m.Len())
	}
}

func TestKeys(t *testing.T) {
	type point struct{ x, y any }
	floats, anys, points := table.NewKeys[float64](), table.NewKeys[any](), table.NewKeys[point]()
	pointers, arrays := table.NewKeys[*any](), table.NewKeys[[1]any]()
	for name, c := range map[string]struct{ comparable, findable, wantComparable, wantFindable bool }{
		"number":            {floats.Comparable(1), floats.Findable(1), true, true},
		"NaN":               {floats.Comparable(math.NaN()), floats.Findable(math.NaN()), true, false},
		"any string":        {anys.Comparable("a"), anys.Findable("a"), true, true},
		"any NaN":           {anys.Comparable(math.NaN()), anys.Findable(math.NaN()), true, false},
		"any slice":         {anys.Comparable([]int{}), anys.Findable([]int{}), false, false},
		"any empty array":   {anys.Comparable([0]struct{ f []int }{}), anys.Findable([0]struct{ f []int }{}), false, false},
		"nil any":           {anys.Comparable(nil), anys.Findable(nil), true, true},
		"struct of a slice": {points.Comparable(point{1, []int{}}), points.Findable(point{1, []int{}}), false, false},
		"array of a slice":  {arrays.Comparable([1]any{[]int{}}), arrays.Findable([1]any{[]int{}}), false, false},
		"array":             {arrays.Comparable([1]any{1}), arrays.Findable([1]any{1}), true, true},
		"struct":            {points.Comparable(point{1, "b"}), points.Findable(point{1, "b"}), true, true},
		"pointer":           {pointers.Comparable(new(any)), pointers.Findable(new(any)), true, true},
	} {
		if c.comparable != c.wantComparable || c.findable != c.wantFindable {
			t.Errorf("%s: comparable %v, findable %v; want %v, %v", name, c.comparable, c.findable, c.wantComparable, c.wantFindable)
		}
	}
}

// A key that cannot be hashed panics with the package's name before the table
// is touched, and the table works on.
func TestUncomparableKey(t *testing.T) {
	keys := table.NewKeys[any]()
	m := table.New[any, cell](keys.Hasher("test"), 0)
	for name, op := range map[string]func(){
		"Load":        func() { m.Load([]int{}) },
		"LoadOrStore": func() { m.LoadOrStore([]int{}, &cell{}) },
		"Swap":        func() { m.Swap([]int{}, &cell{}) },
		"Compute":     func() { m.Compute([]int{}, func(*cell) *cell { return &cell{} }) },
	} {
		func() {
			defer func() {
				if msg, ok := recover().(string); !ok || !strings.HasPrefix(msg, "test: key [] of type []int") {
					t.Errorf("%s: panic %q does not name the key", name, msg)
				}
			}()
			op()
		}()
	}
	m.LoadOrStore("a", &cell{1})
	if m.Len() != 1 || m.Load("a").n != 1 {
		t.Error("the table does not work after a key that panicked")
	}
}
