package values

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// plain reports whether encoding/json can read all values of a type that it can write, as
// far as that is easy to know. Then a value need not be tried.
func plain(t reflect.Type) bool { return plainWithin(t, make(map[reflect.Type]bool)) }

// encodesItself reports whether a type has an encoding of its own.
func encodesItself(t reflect.Type) bool {
	for _, m := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return true
		}
	}
	return false
}

func plainWithin(t reflect.Type, within map[reflect.Type]bool) bool {
	if within[t] || encodesItself(t) { // the former may be nested deeper than encoding/json reads
		return false
	}
	within[t] = true
	defer delete(within, t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return t != reflect.TypeFor[json.Number]()
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return plainWithin(t.Elem(), within)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && plainWithin(t.Key(), within) && plainWithin(t.Elem(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || options != "" && options != "omitempty" && options != "omitzero" {
				return false
			}
			if f.IsExported() && !plainWithin(f.Type, within) {
				return false
			}
		}
		return true
	}
	return false
}
