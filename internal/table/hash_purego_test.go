//go:build purego && !modelcheck

package table_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// Pointers differ by their addresses, and the hashes of two Keys differ.
func TestPureKeys(t *testing.T) {
	different(new(int), new(int), nil)(t)
	different[any](make(chan int), make(chan int), new(int), new(string))(t)
	type point struct{ x, y int }
	one, other := table.NewKeys[point](), table.NewKeys[point]()
	if one.Hash(point{1, 2}) == other.Hash(point{1, 2}) {
		t.Error("two Keys hash alike")
	}
}
