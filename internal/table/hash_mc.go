//go:build modelcheck

package table

import (
	"math"
	"reflect"
)

// seed is empty: a model hashes alike in every execution and every process,
// so that what was found can be found again.
type seed struct{}

// hasher returns a function that hashes with s.
func hasher[K comparable](s seed) Hash[K] {
	return func(k K, _ uint64) uint64 { return hash(s, k) }
}

func makeSeed() seed { return seed{} }

func hash[K comparable](_ seed, k K) uint64 {
	h := mixer(1)
	h.value(reflect.ValueOf(&k).Elem())
	return uint64(h)
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

func (h *mixer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			h.mix(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.mix(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		h.mix(v.Uint())
	case reflect.Float32, reflect.Float64:
		h.float(v.Float())
	case reflect.Complex64, reflect.Complex128:
		h.float(real(v.Complex()))
		h.float(imag(v.Complex()))
	case reflect.String:
		for _, b := range []byte(v.String()) {
			h.mix(uint64(b))
		}
		h.mix(uint64(v.Len()))
	case reflect.Array:
		for i := range v.Len() {
			h.value(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			h.value(v.Field(i))
		}
	case reflect.Interface:
		if !v.IsNil() {
			if !v.Elem().Type().Comparable() {
				panic("table: hash of unhashable type " + v.Elem().Type().String())
			}
			h.value(v.Elem())
		}
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		h.mix(2) // an address would not be the same again
	default:
		panic("table: hash of unhashable type " + v.Type().String())
	}
}
