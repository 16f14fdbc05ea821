//go:build !modelcheck

package atomics_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A Pointer is one word that does what atomic.Pointer does.
func TestPointer(t *testing.T) {
	var p atomics.Pointer[int]
	one, two := 1, 2
	for name, ok := range map[string]bool{
		"size":              unsafe.Sizeof(p) == unsafe.Sizeof(&one),
		"Load of nothing":   p.Load() == nil,
		"CompareAndSwap, 1": !p.CompareAndSwap(&one, &two) && p.CompareAndSwap(nil, &one) && p.Load() == &one,
		"Swap":              p.Swap(&two) == &one && p.Load() == &two,
		"CompareAndSwap, 2": !p.CompareAndSwap(&one, nil) && p.CompareAndSwap(&two, nil) && p.Load() == nil,
	} {
		if !ok {
			t.Error(name)
		}
	}
	if p.Store(&one); p.Load() != &one {
		t.Error("Store")
	}
	if atomics.InitPointer(&p, &two); p.Load() != &two {
		t.Error("InitPointer")
	}
	if reflect.TypeFor[atomics.Pointer[int]]().Comparable() {
		t.Error("a Pointer can be compared, so that each program has functions for that")
	}
}
