package table

import (
	"fmt"
	"reflect"
)

// Keys knows what can go wrong with keys of type K, and hashes them with a
// random seed of its own. Make it with NewKeys.
type Keys[K comparable] struct {
	seed    seed
	dynamic bool // K contains interfaces, whose dynamic type may be uncomparable
}

// NewKeys returns a Keys with a fresh seed.
func NewKeys[K comparable]() Keys[K] {
	return Keys[K]{seed: makeSeed(), dynamic: containsInterface(reflect.TypeFor[K]())}
}

// Hash returns the hash of k. It panics, as Go's own maps do, if
// !s.Comparable(k). It is inlined.
func (s *Keys[K]) Hash(k K) uint64 { return hash(s.seed, k) }

// Dynamic reports whether there may be keys that are not comparable.
func (s *Keys[K]) Dynamic() bool { return s.dynamic }

// Comparable reports whether k can be compared at all. Only a key that holds
// an interface can be otherwise, for instance any([]int{}).
func (s *Keys[K]) Comparable(k K) bool { return !s.dynamic || s.hashable(k) }

// hashable finds out by hashing k, which fails for exactly the keys that Go's
// own maps refuse. Package reflect would say yes to a few more, and allocate.
func (s *Keys[K]) hashable(k K) (ok bool) {
	defer func() { ok = recover() == nil }()
	hash(s.seed, k)
	return
}

// Findable reports whether k can be stored and found again: whether it is
// comparable and equal to itself. A key that holds a NaN is not.
func (s *Keys[K]) Findable(k K) bool {
	return s.Comparable(k) && k == k //nolint:staticcheck // false for NaN
}

// Hash is a function that hashes keys. The number is the map's own seed, which
// those made here ignore as they have a better one. It is a parameter all the
// same, because a function without it would cost every operation a second
// indirect call.
type Hash[K comparable] = func(k K, _ uint64) uint64

// Hasher returns Keys.Hash as a function that panics with a message that starts
// with prefix if the key cannot be compared.
func (s *Keys[K]) Hasher(prefix string) Hash[K] {
	seed := s.seed
	if !s.dynamic {
		return func(k K, _ uint64) uint64 { return hash(seed, k) }
	}
	return func(k K, _ uint64) uint64 {
		defer explain(prefix, k)
		return hash(seed, k)
	}
}

// explain is deferred around the hashing of k. Asking afterwards whether k can
// be compared spares the keys that can the allocation that asking takes.
func explain[K comparable](prefix string, k K) {
	if p := recover(); p != nil {
		panic(prefix + ": key " + fmt.Sprint(k) + " of type " + reflect.TypeOf(k).String() + " cannot be compared: " + fmt.Sprint(p))
	}
}

// containsInterface reports whether values of type t may hold an interface,
// not counting what pointers, channels and the like point to: those compare
// by identity.
func containsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return containsInterface(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if containsInterface(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
