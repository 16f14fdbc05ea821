//go:build !modelcheck

package shardedregistry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Snapshot() {
	var seats shardedregistry.Registry[string, string]
	seats.Put("12a", "ann")
	seats.Put("12b", "bob")

	before := seats.Snapshot()
	seats.Delete("12a")
	seats.Put("12b", "ann")

	who, _ := before.Get("12b")
	fmt.Println(who, before.Len(), seats.Len())
	// Output: bob 2 1
}

func ExampleSnapshot_Lookup() {
	var stock shardedregistry.Registry[string, int]
	stock.Put("apple", 3)
	stock.Put("pear", 2)

	counted := stock.Snapshot()
	stock.Put("pear", 7) // after the count
	for _, fruit := range []string{"apple", "pear"} {
		entry, _ := counted.Lookup(fruit)
		_, err := stock.UpdateIf(fruit, entry.Version, 0) // sell what was counted
		fmt.Println(fruit, entry.Value, err)
	}
	// Output:
	// apple 3 <nil>
	// pear 2 shardedregistry: version conflict: have 2, want 1
}

func ExampleRegistry_MarshalJSON() {
	var ports shardedregistry.Registry[string, int]
	ports.Create("web", 80)
	ports.Create("dns", 52)
	ports.Put("dns", 53)

	state := ports.Snapshot()
	byName, _ := json.Marshal(maps.Collect(state.All()))
	fmt.Println(string(byName))
	entries := slices.SortedFunc(state.Entries(), func(a, b shardedregistry.Entry[string, int]) int {
		return strings.Compare(a.Key, b.Key)
	})
	list, _ := json.Marshal(entries)
	fmt.Println(string(list))
	// Output:
	// {"dns":53,"web":80}
	// [{"Key":"dns","Value":53,"Version":2},{"Key":"web","Value":80,"Version":1}]
}
