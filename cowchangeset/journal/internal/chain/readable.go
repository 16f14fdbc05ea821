package chain

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// readable decides what a type alone tells about its values. If none of them can be
// written and read back, it says why. If all that can be written can be read back, it
// is sure. Otherwise each value has to be tried.
func readable(t reflect.Type) (sure bool, refused string) {
	for t.Kind() == reflect.Pointer && !custom(t) {
		t = t.Elem()
	}
	if custom(t) {
		return trusted(t), ""
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return false, "encoding/json cannot decode into an interface with methods"
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return false, "encoding/json cannot encode it"
	case reflect.Struct:
		if t.NumField() > 0 && !anyExported(t) {
			return false, "it has no exported fields, so that its JSON is empty"
		}
	}
	return plain(t, map[reflect.Type]bool{}), ""
}

func anyExported(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return true
		}
	}
	return false
}

// custom reports whether values make or read their JSON themselves.
func custom(t reflect.Type) bool {
	for _, i := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(i) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// trusted reports whether a type that has JSON of its own reads all that it writes.
func trusted(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[json.RawMessage]()
}

// plain reports whether encoding/json can read back all that it writes for a t. Types
// in seen were looked at already.
func plain(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if custom(t) {
		return trusted(t)
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return plain(t.Elem(), seen)
	case reflect.Map:
		return plain(t.Key(), seen) && plain(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous && !f.IsExported() && f.Type.Kind() == reflect.Pointer {
				return false // which is written, and cannot be set
			}
			if (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" && !plain(f.Type, seen) {
				return false
			}
		}
		return true
	case reflect.Interface:
		return t.NumMethod() == 0
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return false
	}
	return true
}
