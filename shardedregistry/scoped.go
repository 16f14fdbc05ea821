package shardedregistry

import "fmt"

// Scoped is a key that belongs to a namespace: the key of a registry that
// several [View] divide among themselves. As Space and Key are two fields, no
// two namespaces overlap, whatever characters they consist of.
type Scoped[K comparable] struct {
	Space string
	Key   K
}

// String returns the namespace and the key with a slash between.
func (s Scoped[K]) String() string { return fmt.Sprintf("%s/%v", s.Space, s.Key) }

// space and key return the parts of s to who does not know the type of Key.
func (s Scoped[K]) space() string { return s.Space }
func (s Scoped[K]) key() any      { return s.Key }

// scoped is a Scoped of any type.
type scoped interface {
	space() string
	key() any
}

// unscoped returns k, or, if that belongs to a namespace, what it is called there.
func unscoped[K any](k K) any {
	if s, ok := any(k).(scoped); ok {
		return s.key()
	}
	return k
}

// sameSpace reports whether two keys belong to one namespace, or to none.
func sameSpace[K any](a, b K) bool {
	s, ok := any(a).(scoped)
	return !ok || s.space() == any(b).(scoped).space()
}
