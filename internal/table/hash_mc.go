//go:build modelcheck

package table

import (
	"hash/maphash"
	"reflect"
)

// seed is empty: a model hashes alike in every execution and every process,
// so that what was found can be found again. A test may say how.
type seed struct{ hash func(k any) uint64 }

func makeSeed() seed { return seed{} }

const hashesAtRuntime = false

func (s *Keys[K]) runtimeSeed() (none maphash.Seed) { return none } // never called

func hash[K comparable](s seed, k K) uint64 {
	if s.hash != nil {
		return s.hash(k)
	}
	w := walker{mixer: 1}
	w.value(reflect.ValueOf(&k).Elem())
	return uint64(w.mixer)
}

func (w *walker) text(s string) {
	for _, b := range []byte(s) {
		w.mix(uint64(b))
	}
	w.mix(uint64(len(s)))
}

func (w *walker) address(reflect.Value) { w.mix(2) } // an address would not be the same again
