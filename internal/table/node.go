package table

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Node is the key of a cell, with its hash. It is the first field of every cell
// that is put into a [Cells], is set before that and never changes after.
type Node[K comparable] struct {
	Hash uint64
	Key  K
}

// node returns the Node that e begins with.
func node[K comparable, E any](e *E) *Node[K] {
	// Safety: Init has asked isCell.
	return (*Node[K])(unsafe.Pointer(e))
}

// is reports whether n is k. Comparing the hash first spares most comparisons of
// keys that differ.
func (n *Node[K]) is(k Node[K]) bool { return n.Hash == k.Hash && n.Key == k.Key }

// mustBeCell panics unless E begins with a Node[K].
func mustBeCell[K comparable, E any]() {
	e, n := reflect.TypeFor[E](), reflect.TypeFor[Node[K]]()
	if e.Kind() != reflect.Struct || e.NumField() == 0 || e.Field(0).Type != n {
		panic(fmt.Sprintf("table: %v does not begin with a %v", e, n))
	}
}
