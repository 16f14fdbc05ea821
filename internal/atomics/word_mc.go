//go:build modelcheck

package atomics

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// The shared words, each operation a step of the model followed by the real one.
type (
	// Bool is the twin of atomic.Bool.
	Bool struct {
		word[bool, atomic.Bool, *atomic.Bool]
	}
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
	// Pointer is the twin of the Pointer in pointer.go, which documents it.
	Pointer[T any] struct {
		word[*T, atomic.Pointer[T], *atomic.Pointer[T]]
	}
)

// InitPointer is no step: nobody else knows the word. It is a plain write here too, so that
// the race detector finds out if somebody does.
//
// Safety: an atomic.Pointer is a pointer and fields without size. For the model the address
// only names the word.
func InitPointer[T any](p *Pointer[T], v *T) {
	mc.Touch(unsafe.Pointer(p))
	*(**T)(unsafe.Pointer(&p.std)) = v
}

// InitInt64 is no step either.
//
// Safety: the same.
func InitInt64(w *Int64, v int64) {
	mc.Touch(unsafe.Pointer(w))
	*(*int64)(unsafe.Pointer(&w.std)) = v
}

// Install is a CompareAndSwap, and a Load if that fails.
func (p *Pointer[T]) Install(fresh *T) *T {
	if p.CompareAndSwap(nil, fresh) {
		return fresh
	}
	return p.Load()
}

// std is what the types of sync/atomic have in common.
type std[V any, S any] interface {
	*S
	Load() V
	Store(V)
	Swap(V) V
	CompareAndSwap(old, new V) bool
}

// stdInteger is what its integer types have besides.
type stdInteger[V any, S any] interface {
	std[V, S]
	Add(V) V
	And(V) V
	Or(V) V
}

type word[V any, S any, P std[V, S]] struct{ std S }

type integer[V any, S any, P stdInteger[V, S]] struct{ word[V, S, P] }

// Safety: the address only names the word to the model.
func (w *word[V, S, P]) step(verb string, class mc.Class, mode mc.Mode) P {
	step(verb, class, unsafe.Pointer(w), mode)
	return &w.std
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

// shown is how a value is printed: a pointer by its label.
//
// Safety: the pointer is named, never followed.
func shown(v any) any {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer {
		return mc.Label(p.UnsafePointer())
	}
	return v
}

func (w *word[V, S, P]) Load() V {
	v := w.step("Load", mc.Load, mc.Read).Load()
	mc.Note(func() string { return fmt.Sprintf("Load() = %v", shown(v)) })
	return v
}

func (w *word[V, S, P]) Store(v V) {
	w.step("Store", mc.Store, mc.Write).Store(v)
	mc.Note(func() string { return fmt.Sprintf("Store(%v)", shown(v)) })
}

func (w *word[V, S, P]) Swap(v V) V {
	old := w.step("Swap", mc.RMW, mc.Write).Swap(v)
	mc.Note(func() string { return fmt.Sprintf("Swap(%v) = %v", shown(v), shown(old)) })
	return old
}

// CompareAndSwap is a step that writes if it succeeds, and otherwise reads.
func (w *word[V, S, P]) CompareAndSwap(old, new V) bool {
	ok := swapped(w.step("CompareAndSwap", mc.RMW, mc.Write).CompareAndSwap(old, new))
	mc.Note(func() string { return fmt.Sprintf("CompareAndSwap(%v, %v) = %v", shown(old), shown(new), ok) })
	return ok
}

func (i *integer[V, S, P]) Add(v V) V {
	sum := i.step("Add", mc.RMW, mc.Write).Add(v)
	mc.Note(func() string { return fmt.Sprintf("Add(%v) = %v", v, sum) })
	return sum
}

func (i *integer[V, S, P]) And(v V) V {
	old := i.step("And", mc.RMW, mc.Write).And(v)
	mc.Note(func() string { return fmt.Sprintf("And(%v) = %v", v, old) })
	return old
}

func (i *integer[V, S, P]) Or(v V) V {
	old := i.step("Or", mc.RMW, mc.Write).Or(v)
	mc.Note(func() string { return fmt.Sprintf("Or(%v) = %v", v, old) })
	return old
}
