//go:build modelcheck

package table

// KeysHashedBy returns Keys that hash by f.
func KeysHashedBy[K comparable](f func(k K, _ uint64) uint64) *Keys[K] {
	return &Keys[K]{seed: seed{hash: func(k any) uint64 { return f(k.(K), 0) }}}
}

// MoveOnly makes calls move n chains at most, or as many as limits say if n is 0; below zero, none
// but those that they write to.
func (t *Lines[K, E]) MoveOnly(n int) { t.few = n }
