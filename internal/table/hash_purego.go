//go:build purego && !modelcheck

package table

import (
	"hash/maphash"
	"reflect"
)

const hashesAtRuntime = false

func (s *Keys[K]) runtimeSeed() maphash.Seed { return s.seed } // never called

// hash does not use maphash.Comparable, which under this tag hashes fields without
// a name, that == ignores, and panics at a nil interface.
func hash[K comparable](s seed, k K) uint64 {
	w := walker{mixer: mixer(maphash.String(s, "")), seed: s}
	w.value(reflect.ValueOf(&k).Elem())
	return uint64(w.mixer)
}

func (w *walker) text(s string) { w.mix(maphash.String(w.seed, s)) }

// address mixes what v points to by its address. It has escaped to the heap, as
// all of a key that is hashed, and does not move.
func (w *walker) address(v reflect.Value) { w.mix(uint64(v.Pointer())) }
