package shardedregistry

import "fmt"

// Scoped is a key that belongs to a namespace: the key of a registry that is
// divided into [View] values. Space and Key are two fields, so no two
// namespaces overlap, whatever characters they consist of.
type Scoped[K comparable] struct {
	Space string
	Key   K
}

// String returns the namespace and the key with a slash between.
func (s Scoped[K]) String() string { return s.Space + "/" + fmt.Sprint(s.Key) }

// parts returns s in parts, for code that does not know the type of Key, and whole.
func (s Scoped[K]) parts() (space string, key any, whole Scoped[K]) { return s.Space, s.Key, s }

// scoped is an interface that K implements if it is a Scoped. A type that only embeds
// one does not: its method parts has another result.
type scoped[K any] interface {
	parts() (space string, key any, whole K)
}

// unscoped returns k, or, if k belongs to a namespace, k without its Space.
func unscoped[K any](k K) any {
	if s, ok := any(k).(scoped[K]); ok {
		_, key, _ := s.parts()
		return key
	}
	return k
}

// sameSpace reports whether two keys belong to one namespace, or to none.
func sameSpace[K any](a, b K) bool { return spaceOf(a) == spaceOf(b) }

// spaceOf returns the namespace of k, or "".
func spaceOf[K any](k K) (space string) {
	if s, ok := any(k).(scoped[K]); ok {
		space, _, _ = s.parts()
	}
	return space
}
