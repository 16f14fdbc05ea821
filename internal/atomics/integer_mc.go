//go:build modelcheck

package atomics

import (
	"sync/atomic"
	"unsafe"

	"github.com/latchfree/latchfree/internal/mc"
)

// The integer types, each a step of the model followed by the real operation.
type (
	// Int32 is the twin of atomic.Int32.
	Int32 struct {
		integer[int32, atomic.Int32, *atomic.Int32]
	}
	// Int64 is the twin of atomic.Int64.
	Int64 struct {
		integer[int64, atomic.Int64, *atomic.Int64]
	}
	// Uint32 is the twin of atomic.Uint32.
	Uint32 struct {
		integer[uint32, atomic.Uint32, *atomic.Uint32]
	}
	// Uint64 is the twin of atomic.Uint64.
	Uint64 struct {
		integer[uint64, atomic.Uint64, *atomic.Uint64]
	}
)

// std is what sync/atomic's integer types have in common.
type std[V any, S any] interface {
	*S
	Load() V
	Store(V)
	Swap(V) V
	Add(V) V
	And(V) V
	Or(V) V
	CompareAndSwap(old, new V) bool
}

type integer[V any, S any, P std[V, S]] struct{ word S }

// Safety: the address only names the word to the model.
func (i *integer[V, S, P]) step(verb string, class mc.Class, mode mc.Mode) P {
	step(verb, class, unsafe.Pointer(i), mode)
	return &i.word
}

// step takes a step on one word.
func step(verb string, class mc.Class, word unsafe.Pointer, mode mc.Mode) {
	mc.Step(&mc.Op{Verb: verb, Class: class, On: mc.Access{Addr: word, Mode: mode}})
}

// swapped settles a compare-and-swap: one that failed only read.
func swapped(ok bool) bool {
	if !ok {
		mc.Did(mc.Read, mc.None)
	}
	return ok
}

func (i *integer[V, S, P]) Load() V {
	v := i.step("Load", mc.Load, mc.Read).Load()
	if mc.Recording() {
		mc.Note("Load() = %v", v)
	}
	return v
}

func (i *integer[V, S, P]) Store(v V) {
	i.step("Store", mc.Store, mc.Write).Store(v)
	if mc.Recording() {
		mc.Note("Store(%v)", v)
	}
}

func (i *integer[V, S, P]) Swap(v V) V {
	old := i.step("Swap", mc.RMW, mc.Write).Swap(v)
	if mc.Recording() {
		mc.Note("Swap(%v) = %v", v, old)
	}
	return old
}

func (i *integer[V, S, P]) Add(v V) V {
	sum := i.step("Add", mc.RMW, mc.Write).Add(v)
	if mc.Recording() {
		mc.Note("Add(%v) = %v", v, sum)
	}
	return sum
}

func (i *integer[V, S, P]) And(v V) V {
	old := i.step("And", mc.RMW, mc.Write).And(v)
	if mc.Recording() {
		mc.Note("And(%v) = %v", v, old)
	}
	return old
}

func (i *integer[V, S, P]) Or(v V) V {
	old := i.step("Or", mc.RMW, mc.Write).Or(v)
	if mc.Recording() {
		mc.Note("Or(%v) = %v", v, old)
	}
	return old
}

func (i *integer[V, S, P]) CompareAndSwap(old, new V) bool {
	ok := swapped(i.step("CompareAndSwap", mc.RMW, mc.Write).CompareAndSwap(old, new))
	if mc.Recording() {
		mc.Note("CompareAndSwap(%v, %v) = %v", old, new, ok)
	}
	return ok
}
