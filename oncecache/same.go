package oncecache

import (
	"math"
	"reflect"
	"unsafe"
)

// sameness returns a function that reports whether two values are the same: whether all their
// parts are equal by ==, or the same map, slice, function or channel. Refers tells whether values
// refer to something, so that two that are the same cannot have been made apart.
func sameness[V any]() (same func(a, b V) bool, refers bool) {
	t := reflect.TypeFor[V]()
	switch t.Kind() {
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer, reflect.String, reflect.Bool, reflect.Uintptr,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		same = func(a, b V) bool { return any(a) == any(b) }
	default:
		same = func(a, b V) bool { return alike(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()) }
	}
	return same, refersTo(t)
}

// refersTo reports whether values of type t refer to something.
func refersTo(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return t.Elem().Size() > 0
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Slice, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return t.Len() > 0 && refersTo(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if refersTo(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// alike reports whether x and y, values of one type that have an address, have the same parts.
// It looks at each part by itself, because what is between them says nothing.
func alike(x, y reflect.Value) bool {
	switch x.Kind() {
	case reflect.Struct:
		for i := range x.NumField() {
			// A field that is blank is none, as for ==.
			if x.Type().Field(i).Name != "_" && !alike(x.Field(i), y.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range x.Len() {
			if !alike(x.Index(i), y.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Interface:
		if x.IsNil() || y.IsNil() {
			return x.IsNil() && y.IsNil()
		}
		return x.Elem().Type() == y.Elem().Type() && alike(stored(x), stored(y))
	case reflect.Slice:
		return x.UnsafePointer() == y.UnsafePointer() && x.Len() == y.Len()
	case reflect.Map:
		return x.UnsafePointer() == y.UnsafePointer()
	case reflect.Func:
		return closureOf(x) == closureOf(y)
	case reflect.Float32, reflect.Float64:
		return sameFloat(x.Float(), y.Float())
	case reflect.Complex64, reflect.Complex128:
		a, b := x.Complex(), y.Complex()
		return sameFloat(real(a), real(b)) && sameFloat(imag(a), imag(b))
	}
	return x.Equal(y)
}

// sameFloat reports whether a and b are equal, or copies of one NaN.
func sameFloat(a, b float64) bool { return a == b || math.Float64bits(a) == math.Float64bits(b) }

// closureOf returns what the function in v is: not only its code, but the variables that it has.
func closureOf(v reflect.Value) unsafe.Pointer {
	// Safety: v is a variable of the caller, and a function is one pointer, to its closure.
	return *(*unsafe.Pointer)(v.Addr().UnsafePointer())
}

// stored returns what the interface v holds, in a variable of its own.
func stored(v reflect.Value) reflect.Value {
	// Safety: v is a variable of the caller. It may be a field that is not exported, which Set would refuse.
	held := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem().Elem()
	s := reflect.New(held.Type()).Elem()
	s.Set(held)
	return s
}
