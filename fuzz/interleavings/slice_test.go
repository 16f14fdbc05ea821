//go:build modelcheck

package interleavings

import (
	"cmp"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"

	cc "github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// FuzzSliceInterleavings runs threads on a Slice in every order.
func FuzzSliceInterleavings(f *testing.F) {
	fuzzInterleavings(f, sliceProgram(newSlice))
}

func newSlice() slicer { return new(cc.Slice[int]) }

// slicer is what a Slice does.
type slicer interface {
	Append(...int) int
	Load() []int
	Len() int
	All() iter.Seq2[int, int]
	Snapshot() cc.Snapshot[int]
	CompareAndSwap(cc.Snapshot[int], []int) bool
	Update(func([]int) []int)
	Set(i, item int)
	Delete(i int)
}

// sharedSlice is a Slice and what each thread has had from it.
type sharedSlice struct {
	slicer
	snapshots [4]*cc.Snapshot[int] // the latest
	loaded    [4][]loadedSlice
}

type loadedSlice struct{ items, then []int }

type (
	sliceCaller = interleave.Caller[*sharedSlice, *model.Slice]
	sliceOp     = interleave.Op[*sharedSlice, *model.Slice]
)

func sliceProgram(fresh func() slicer) decoder[*sharedSlice, *model.Slice] {
	return func(program []byte) (interleave.Program[*sharedSlice, *model.Slice], bool) {
		p, ok := interleave.Decode(program, decodeSlice)
		p.New = func() *sharedSlice { return &sharedSlice{slicer: fresh()} }
		p.Model = func() *model.Slice { return new(model.Slice) }
		p.After = []sliceOp{sliceLoad, sliceSnapshot, sliceAppend([]int{98, 99}), sliceLoad, sliceLoop, sliceAudit}
		return p, ok
	}
}

func decodeSlice(code interleave.Code, id int, inside func() (sliceOp, bool)) sliceOp {
	items := make([]int, code.Arg%4)
	for i := range items {
		items[i] = 10*id + i
	}
	switch code.Op % 11 {
	case 0, 1:
		return sliceAppend(items)
	case 2:
		return sliceLoad
	case 3:
		return sliceSnapshot
	case 4, 5:
		return sliceSwap(items)
	case 6:
		return sliceUpdate(code.Arg/4, items, inside)
	case 7:
		return [...]sliceOp{sliceLen, sliceLoop}[code.Arg%2]
	case 8:
		return sliceSet(int(code.Arg%4), 10*id)
	default:
		return sliceDelete(int(code.Arg % 4))
	}
}

func sliceAppend(items []int) sliceOp {
	return sliceOp{Name: fmt.Sprintf("Append(%v)", items), Do: func(c *sliceCaller) {
		c.Once("Append", func() any { return c.Real.Append(items...) },
			func(s *model.Slice, _ int) any { return s.Append(items...) })
	}}
}

var (
	sliceLoad = sliceOp{Name: "Load", Do: func(c *sliceCaller) {
		c.Once("Load", func() any { return c.Real.keep(c.Thread, c.Real.Load()) },
			func(s *model.Slice, _ int) any { return s.Load() })
	}}
	sliceLen = sliceOp{Name: "Len", Do: func(c *sliceCaller) {
		c.Once("Len", func() any { return c.Real.Len() },
			func(s *model.Slice, _ int) any { return len(s.Load()) })
	}}
	sliceLoop = sliceOp{Name: "All", Do: func(c *sliceCaller) {
		c.Once("All", func() any {
			items := []int{}
			for i, v := range c.Real.All() {
				if i != len(items) {
					return "indices out of order"
				}
				items = append(items, v)
			}
			return items
		}, func(s *model.Slice, _ int) any { return s.Load() })
	}}
	sliceSnapshot = sliceOp{Name: "Snapshot", Do: func(c *sliceCaller) {
		c.Once("Snapshot", func() any {
			s := c.Real.Snapshot()
			c.Real.snapshots[c.Thread] = &s
			return fmt.Sprint(s.Version(), s.Items())
		}, func(s *model.Slice, _ int) any { return fmt.Sprint(s.Version, s.Load()) })
	}}

	// sliceAudit compares all that was loaded with what it was then.
	sliceAudit = sliceOp{Name: "audit", Do: func(c *sliceCaller) {
		c.Once("audit", func() any {
			for _, l := range slices.Concat(c.Real.loaded[:]...) {
				if !slices.Equal(l.items, l.then) || len(l.items) != cap(l.items) {
					return fmt.Sprintf("%v became %v, with room for %d", l.then, l.items, cap(l.items))
				}
			}
			return "unchanged"
		}, func(*model.Slice, int) any { return "unchanged" })
	}}
)

func sliceSet(i, item int) sliceOp {
	return sliceOp{Name: fmt.Sprintf("Set(%d, %d)", i, item), Do: func(c *sliceCaller) {
		c.Once("Set", func() any { c.Real.Set(i, item); return "done" },
			func(s *model.Slice, _ int) any { return sliceEdited(func() { s.Set(i, item) }) })
	}}
}

func sliceDelete(i int) sliceOp {
	return sliceOp{Name: fmt.Sprintf("Delete(%d)", i), Do: func(c *sliceCaller) {
		c.Once("Delete", func() any { c.Real.Delete(i); return "done" },
			func(s *model.Slice, _ int) any { return sliceEdited(func() { s.Delete(i) }) })
	}}
}

// sliceEdited is the result of an edit of the model, which may panic.
func sliceEdited(edit func()) (result string) {
	defer func() {
		if p := recover(); p != nil {
			result = interleave.Panics(p)
		}
	}()
	edit()
	return "done"
}

func (s *sharedSlice) keep(thread int, items []int) []int {
	s.loaded[thread] = append(s.loaded[thread], loadedSlice{items, slices.Clone(items)})
	return items
}

// sliceSwap swaps if nothing has changed since the thread's latest snapshot, or
// the prelude's, or the beginning.
func sliceSwap(items []int) sliceOp {
	return sliceOp{Name: fmt.Sprintf("CompareAndSwap(%v)", items), Do: func(c *sliceCaller) {
		old := *cmp.Or(c.Real.snapshots[c.Thread], c.Real.snapshots[0], new(cc.Snapshot[int]))
		c.Once("CompareAndSwap", func() any { return c.Real.CompareAndSwap(old, slices.Clone(items)) },
			func(s *model.Slice, _ int) any { return s.CompareAndSwap(old.Version(), items) })
	}}
}

// sliceUpdate updates with a function that may do another operation in its
// first run.
func sliceUpdate(how byte, items []int, inside func() (sliceOp, bool)) sliceOp {
	names := [...]string{"appends", "replaces", "returns its argument", "drops the first", "panics", "exits"}
	name := names[int(how)%len(names)]
	fn := func(old []int) []int {
		switch name {
		case "appends":
			return append(old, items...)
		case "replaces":
			return slices.Clone(items)
		case "drops the first":
			return old[min(1, len(old)):]
		case "panics":
			panic(errInjected)
		case "exits":
			runtime.Goexit()
		}
		return old
	}
	first := func(*sliceCaller) {}
	o := sliceOp{Name: fmt.Sprintf("Update that %s(%v)", name, items)}
	if how >= 32 {
		if inner, ok := inside(); ok {
			first = inner.Do
			o.Name += " after " + inner.Name
		}
	}
	o.Do = func(c *sliceCaller) {
		runs, left := 0, false // left: the operation in the first run has ended the goroutine
		c.Once("Update that "+name, func() any {
			c.Real.Update(func(old []int) []int {
				if runs++; runs == 1 {
					left = true
					first(c)
					left = false
				}
				return fn(old)
			})
			return "done"
		}, func(s *model.Slice, _ int) any {
			switch {
			case left || name == "exits":
				return interleave.Exits
			case name == "panics":
				return interleave.Panics(errInjected)
			}
			s.Update(fn)
			return "done"
		})
	}
	return o
}
