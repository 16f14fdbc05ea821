//go:build modelcheck

package atomics

import (
	"sync/atomic"
	"unsafe"

	"github.com/latchfree/latchfree/internal/mc"
)

// Pointer is the twin of atomic.Pointer.
type Pointer[T any] struct{ word atomic.Pointer[T] }

// Safety: the address only names the word to the model.
func (p *Pointer[T]) step(verb string, class mc.Class, mode mc.Mode) *atomic.Pointer[T] {
	step(verb, class, unsafe.Pointer(p), mode)
	return &p.word
}

// Load is a step that reads.
func (p *Pointer[T]) Load() *T {
	v := p.step("Load", mc.Load, mc.Read).Load()
	if mc.Recording() {
		mc.Note("Load() = %s", label(v))
	}
	return v
}

// Store is a step that writes.
func (p *Pointer[T]) Store(v *T) {
	p.step("Store", mc.Store, mc.Write).Store(v)
	if mc.Recording() {
		mc.Note("Store(%s)", label(v))
	}
}

// Swap is a step that writes.
func (p *Pointer[T]) Swap(v *T) *T {
	old := p.step("Swap", mc.RMW, mc.Write).Swap(v)
	if mc.Recording() {
		mc.Note("Swap(%s) = %s", label(v), label(old))
	}
	return old
}

// CompareAndSwap is a step that writes if it succeeds, and otherwise reads.
func (p *Pointer[T]) CompareAndSwap(old, new *T) bool {
	ok := swapped(p.step("CompareAndSwap", mc.RMW, mc.Write).CompareAndSwap(old, new))
	if mc.Recording() {
		mc.Note("CompareAndSwap(%s, %s) = %v", label(old), label(new), ok)
	}
	return ok
}

// Install is a CompareAndSwap, and a Load if that fails.
func (p *Pointer[T]) Install(fresh *T) *T {
	if p.CompareAndSwap(nil, fresh) {
		return fresh
	}
	return p.Load()
}

// Safety: the pointer is named, never followed.
func label[T any](p *T) string { return mc.Label(unsafe.Pointer(p)) }

// Bool is the twin of atomic.Bool.
type Bool struct{ word atomic.Bool }

// Safety: the address only names the word to the model.
func (b *Bool) step(verb string, class mc.Class, mode mc.Mode) *atomic.Bool {
	step(verb, class, unsafe.Pointer(b), mode)
	return &b.word
}

// Load is a step that reads.
func (b *Bool) Load() bool {
	v := b.step("Load", mc.Load, mc.Read).Load()
	if mc.Recording() {
		mc.Note("Load() = %v", v)
	}
	return v
}

// Store is a step that writes.
func (b *Bool) Store(v bool) {
	b.step("Store", mc.Store, mc.Write).Store(v)
	if mc.Recording() {
		mc.Note("Store(%v)", v)
	}
}

// Swap is a step that writes.
func (b *Bool) Swap(v bool) bool {
	old := b.step("Swap", mc.RMW, mc.Write).Swap(v)
	if mc.Recording() {
		mc.Note("Swap(%v) = %v", v, old)
	}
	return old
}

// CompareAndSwap is a step that writes if it succeeds, and otherwise reads.
func (b *Bool) CompareAndSwap(old, new bool) bool {
	ok := swapped(b.step("CompareAndSwap", mc.RMW, mc.Write).CompareAndSwap(old, new))
	if mc.Recording() {
		mc.Note("CompareAndSwap(%v, %v) = %v", old, new, ok)
	}
	return ok
}
