//go:build !modelcheck

package atomics

import (
	"sync/atomic"
	"unsafe"
)

// Pointer is atomic.Pointer, but that its type neither mentions T nor can be
// compared. Each type that a program allocates has a description in it, with those
// of all types that it mentions, and with a function that compares two values: of a
// structure of many pointers that is most of what there is.
//
// Nobody converts one to a Pointer of another type, which the original forbids.
type Pointer[T any] struct {
	_ NoCopy
	p unsafe.Pointer
}

// Safety: p holds what Store, Swap, CompareAndSwap and Install were given, which are
// pointers to a T.

// Load returns what was stored last, or nil.
func (p *Pointer[T]) Load() *T { return (*T)(atomic.LoadPointer(&p.p)) }

// Store stores v.
func (p *Pointer[T]) Store(v *T) { atomic.StorePointer(&p.p, unsafe.Pointer(v)) }

// Swap stores v and returns what that replaced.
func (p *Pointer[T]) Swap(v *T) *T { return (*T)(atomic.SwapPointer(&p.p, unsafe.Pointer(v))) }

// CompareAndSwap stores v if old is what is stored, and reports whether it did.
func (p *Pointer[T]) CompareAndSwap(old, v *T) bool {
	return atomic.CompareAndSwapPointer(&p.p, unsafe.Pointer(old), unsafe.Pointer(v))
}

// Install stores fresh if p is nil, and returns what p holds then: fresh, or what
// another goroutine has installed. It is for pointers that stay once they are set.
//
//	if x := p.Load(); x != nil {
//		return x
//	}
//	return p.Install(new(X))
func (p *Pointer[T]) Install(fresh *T) *T { return (*T)(install(&p.p, unsafe.Pointer(fresh))) }

// InitPointer is Store for a word that no other goroutine knows yet: a plain write, which
// costs no locked instruction. It is no method, because the description of each type of
// pointers would name it.
func InitPointer[T any](p *Pointer[T], v *T) { p.p = unsafe.Pointer(v) }

// install is Install, once for all types.
func install(at *unsafe.Pointer, fresh unsafe.Pointer) unsafe.Pointer {
	if atomic.CompareAndSwapPointer(at, nil, fresh) {
		return fresh
	}
	return atomic.LoadPointer(at)
}
