package oncecache

import "reflect"

// has reports whether v is the very value of e, in a cache that closes values.
func (r *root[K, V]) has(e *entry[K, V], v V) bool {
	now, ok := e.get()
	return ok && r.same(now, v)
}

// sameness returns a function that reports whether two values are one: whether
// they are equal or, if they cannot be compared, the same slice, map or function.
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

func identical(x, y reflect.Value) bool {
	if x.Kind() == reflect.Interface {
		if x, y = x.Elem(), y.Elem(); !x.IsValid() || !y.IsValid() {
			return x.IsValid() == y.IsValid()
		}
		if x.Type() != y.Type() {
			return false
		}
	}
	switch x.Kind() {
	case reflect.Slice:
		return x.Len() == y.Len() && x.UnsafePointer() == y.UnsafePointer()
	case reflect.Map, reflect.Func:
		return x.UnsafePointer() == y.UnsafePointer()
	}
	return x.Comparable() && y.Comparable() && x.Equal(y)
}
