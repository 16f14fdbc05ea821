//go:build modelcheck

package table

import "reflect"

// seed is empty: a model hashes alike in every execution and every process,
// so that what was found can be found again.
type seed struct{}

func makeSeed() seed { return seed{} }

func hash[K comparable](_ seed, k K) uint64 {
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
