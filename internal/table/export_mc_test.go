//go:build modelcheck

package table

// MoveOnly makes calls move n chains at most, or as many as limits say if n is 0.
func (t *Lines[K, E]) MoveOnly(n int) { t.few = n }
