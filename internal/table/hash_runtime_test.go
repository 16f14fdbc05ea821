//go:build !modelcheck && !purego

package table_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// Who looks up what a buffer holds allocates nothing: no string escapes that is
// hashed or compared.
func TestLinesLoadAllocatesNothing(t *testing.T) {
	keys := table.NewKeys[string]()
	var set table.Lines[string, part]
	set.Init(keys.Hasher("test"), 0)
	set.Swap(table.Hashed[string]{Hash: keys.Hash("some key"), Key: "some key"}, &part{key: "some key"})
	buffer := []byte("some key")
	if n := testing.AllocsPerRun(100, func() {
		k := string(buffer)
		if e, hash := set.Find(&keys, k); e == nil || hash != keys.Hash(k) || set.Load(table.Hashed[string]{Hash: keys.Hash(k), Key: k}) == nil {
			t.Error("the key is absent")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
