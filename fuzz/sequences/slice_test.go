package sequences

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	cc "github.com/latchfree/latchfree/cowchangeset"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// Checks S1, S5.

// FuzzSliceOps applies operations to a Slice and to the model, and compares
// every result, the contents, and in the end everything ever handed out.
//
// Every two bytes are an operation and its argument.
func FuzzSliceOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 600 {
			return
		}
		m := &sliceMachine{t: t}
		m.keep()
		for ops := program; len(ops) >= 2; ops = ops[2:] {
			m.step(ops[0], int(ops[1]))
			m.keep()
		}
		for _, k := range m.kept {
			require.Equal(t, k.want, slices.Collect(slices.Values(k.snap.Items())))
		}
	})
}

// sliceMachine runs a program on what is fuzzed and on the model.
type sliceMachine struct {
	t     *testing.T
	slice cc.Slice[int]
	other cc.Slice[int]
	spec  model.Slice
	kept  []keptSnapshot
	next  int
}

type keptSnapshot struct {
	snap cc.Snapshot[int]
	want []int
}

// fresh returns n new items, with room for as many.
func (m *sliceMachine) fresh(n int) []int {
	items := make([]int, n, 2*n)
	for i := range items {
		m.next++
		items[i] = m.next
	}
	return items
}

func (m *sliceMachine) step(op byte, arg int) {
	switch op %= 11; op {
	case 0, 1:
		items := m.fresh(arg % (1 + 7*int(op)))
		require.Equal(m.t, m.spec.Append(items...), m.slice.Append(items...))
		clear(items) // it was copied
	case 2: // an Update that returns new items, with room behind them
		items := m.fresh(arg % 9)
		m.both(func(s sliceEditor) { s.Update(func([]int) []int { return items }) })
	case 3: // one that returns a part of what it got
		m.both(func(s sliceEditor) {
			s.Update(func(old []int) []int {
				i := arg % (len(old) + 1)
				return old[i : i+arg/16%(len(old)-i+1)]
			})
		})
	case 4: // one that appends to what it got
		items := m.fresh(arg % 4)
		m.both(func(s sliceEditor) { s.Update(func(old []int) []int { return append(old, items...) }) })
	case 5: // one that does not return
		m.badUpdate(arg)
	case 6, 7:
		k := m.kept[len(m.kept)-1-arg%len(m.kept)]
		items := m.fresh(arg % 5)
		if op == 7 && arg%7 == 0 {
			require.False(m.t, m.slice.CompareAndSwap(m.other.Snapshot(), items))
			return
		}
		if arg%3 == 0 {
			items = m.slice.Load() // its own
		}
		require.Equal(m.t, m.spec.CompareAndSwap(k.snap.Version(), items), m.slice.CompareAndSwap(k.snap, items))
	case 8:
		i, item := m.index(arg), m.fresh(1)[0]
		m.both(func(s sliceEditor) { s.Set(i, item) })
	case 9:
		i := m.index(arg)
		m.both(func(s sliceEditor) { s.Delete(i) })
	case 10: // an Update that gives back room
		m.both(func(s sliceEditor) { s.Update(slices.Clone) })
	}
}

// index returns that of an item, or one that is just out of range, or far.
func (m *sliceMachine) index(arg int) int {
	n := len(m.spec.Load())
	switch arg {
	case 254:
		return math.MinInt
	case 255:
		return math.MaxInt
	}
	return arg%(n+2) - 1
}

// sliceEditor is what both a Slice and its model do.
type sliceEditor interface {
	Update(func([]int) []int)
	Set(i, item int)
	Delete(i int)
}

// both compares whether, and with what, an edit panics.
func (m *sliceMachine) both(edit func(s sliceEditor)) {
	panics := func(s sliceEditor) (p any) {
		defer func() { p = recover() }()
		edit(s)
		return nil
	}
	want := panics(&m.spec)
	require.Equal(m.t, want, panics(&m.slice))
}

func (m *sliceMachine) badUpdate(arg int) {
	switch arg % 4 {
	case 0:
		require.PanicsWithValue(m.t, "cowchangeset: Slice.Update called with a nil function", func() { m.slice.Update(nil) })
	case 1:
		require.PanicsWithValue(m.t, errGaveUp, func() { m.slice.Update(func([]int) []int { panic(errGaveUp) }) })
	case 2:
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.slice.Update(func([]int) []int { runtime.Goexit(); return nil })
		}()
		<-done
	case 3: // one that is overtaken by itself
		runs := 0
		m.slice.Update(func(old []int) []int {
			if runs++; runs == 1 {
				m.slice.Append(-1)
				m.spec.Append(-1)
			}
			return append(old, -2)
		})
		require.Equal(m.t, 2, runs)
		m.spec.Update(func(old []int) []int { return append(old, -2) })
	}
}

// keep compares the contents and remembers them.
func (m *sliceMachine) keep() {
	want := m.spec.Load()
	got := m.slice.Load()
	require.Truef(m.t, slices.Equal(want, got), "got %v, want %v", got, want)
	require.Equal(m.t, len(got), cap(got))
	require.Equal(m.t, len(want), m.slice.Len())
	snap := m.slice.Snapshot()
	require.Equal(m.t, m.spec.Version, snap.Version())
	for i, v := range m.slice.All() {
		require.Equal(m.t, snap.Items()[i], v)
	}
	m.kept = append(m.kept, keptSnapshot{snap, slices.Collect(slices.Values(want))})
}
