package oncecache

import (
	"bytes"
	"reflect"
	"unsafe"
)

// hasValueOf reports whether now, which may be nil, has the very value of e, in a
// cache that closes values.
func (r *root[K]) hasValueOf(now, e *entry[K]) bool { return now.has() && r.same(now, e) }

// sameness returns a function that reports whether two values are one: whether
// they are equal, or the one is a copy of the other.
func sameness[V any]() func(a, b V) bool {
	t := reflect.TypeFor[V]()
	switch t.Kind() {
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer, reflect.String, reflect.Bool, reflect.Uintptr,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(a, b V) bool { return any(a) == any(b) }
	}
	return func(a, b V) bool { return identical(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()) }
}

// identifies reports whether values of type t refer to something, so that two of
// them which are equal refer to the same.
func identifies(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return t.Elem().Size() > 0
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Slice, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return t.Len() > 0 && identifies(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if identifies(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// identical is for values of one type that have an address.
func identical(x, y reflect.Value) bool {
	if bytes.Equal(memory(x), memory(y)) {
		return true // also functions, which nothing else can tell apart
	}
	if x.Kind() == reflect.Interface {
		if x.IsNil() || y.IsNil() || x.Elem().Type() != y.Elem().Type() {
			return false
		}
		return identical(stored(x.Elem()), stored(y.Elem()))
	}
	return x.Comparable() && y.Comparable() && x.Equal(y)
}

// memory returns the bytes of v.
func memory(v reflect.Value) []byte {
	// Safety: v is a variable of the caller, which lives on as v does.
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
}

// stored returns v in a variable of its own.
func stored(v reflect.Value) reflect.Value {
	s := reflect.New(v.Type()).Elem()
	s.Set(v)
	return s
}
