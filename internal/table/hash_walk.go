//go:build modelcheck || purego

package table

import (
	"math"
	"reflect"
)

// walker hashes a key by walking through it, as the runtime does where the tags of
// this file are not set: what == finds equal has one hash, and what == panics at
// makes it panic.
type walker struct {
	mixer
	seed seed
}

// mixer is the finaliser of SplitMix64, over and over.
type mixer uint64

func (h *mixer) mix(v uint64) {
	z := (uint64(*h) ^ v) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	*h = mixer(z ^ z>>31)
}

func (h *mixer) float(f float64) {
	if f == 0 {
		f = 0 // the negative zero equals this one
	}
	h.mix(math.Float64bits(f))
}

func (w *walker) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		w.mix(n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.mix(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.mix(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.float(v.Float())
	case reflect.Complex64, reflect.Complex128:
		w.float(real(v.Complex()))
		w.float(imag(v.Complex()))
	case reflect.String:
		w.text(v.String())
	case reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" { // == ignores these
				w.value(v.Field(i))
			}
		}
	case reflect.Interface:
		w.dynamic(v.Elem())
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		w.address(v)
	default:
		panic("table: hash of unhashable type " + v.Type().String())
	}
}

// dynamic mixes what an interface holds, with its type. Of a nil interface v is
// the zero Value.
func (w *walker) dynamic(v reflect.Value) {
	if !v.IsValid() {
		w.mix(0)
		return
	}
	if !v.Type().Comparable() {
		panic("table: hash of unhashable type " + v.Type().String())
	}
	w.text(v.Type().String())
	w.value(v)
}
