//go:build !modelcheck

package table

import (
	"hash/maphash"
	"reflect"
	"unsafe"
)

type seed = maphash.Seed

func makeSeed() seed { return maphash.MakeSeed() }

// hasher returns a function that hashes with s. Strings take a shorter way than
// other types: a look-up is hardly more than its hash.
func hasher[K comparable](s seed) Hash[K] {
	if reflect.TypeFor[K]().Kind() == reflect.String {
		return func(k K, _ uint64) uint64 {
			// Safety: K is a string type.
			return maphash.String(s, *(*string)(unsafe.Pointer(&k)))
		}
	}
	return func(k K, _ uint64) uint64 { return hash(s, k) }
}
