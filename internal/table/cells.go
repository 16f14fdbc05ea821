//go:build !modelcheck

package table

// Cells is a set of cells by their keys.
type Cells[K comparable, E any] = Lines[K, E]
