package table

import (
	"reflect"
	"unsafe"
)

// Hashed is a key with its hash, so that it is hashed once for all that one
// operation does with it.
type Hashed[K comparable] struct {
	Hash uint64
	Key  K
}

// keyOf returns the key that e begins with. It is set before e is put into a set
// and never changes after.
func keyOf[K comparable, E any](e *E) *K {
	// Safety: Init has asked mustBeCell.
	return (*K)(unsafe.Pointer(e))
}

// mustBeCell panics unless E is a struct that begins with a K.
func mustBeCell[K comparable, E any]() {
	e, k := reflect.TypeFor[E](), reflect.TypeFor[K]()
	if e.Kind() != reflect.Struct || e.NumField() == 0 || e.Field(0).Type != k {
		panic("table: " + e.String() + " does not begin with a " + k.String())
	}
}
