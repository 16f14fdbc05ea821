//go:build modelcheck

package shardedregistry_test

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// registry is what both the implementation and the model can do.
type registry = model.RegistryOps

// newModel returns the model of a registry of one shard.
func newModel() registry { return model.NewRegistry(model.RegistryConfig{Shards: 1}) }

// call is one operation of a thread, on the key a.
type call = mc.Call[registry]

// results makes one value of what a method returns.
func results(all ...any) any { return all }

var (
	get    = call{Name: "Get", Do: func(r registry) any { return results(r.Get("a")) }}
	lookup = call{Name: "Lookup", Do: func(r registry) any { return results(r.Lookup("a")) }}
	// peek is a Get too.
	peek = call{Name: "Peek", Do: func(r registry) any {
		if r, ok := r.(interface{ Peek(string) *int }); ok {
			if p := r.Peek("a"); p != nil {
				return results(*p, true)
			}
			return results(0, false)
		}
		return results(r.Get("a"))
	}}
	remove = call{Name: "Delete", Do: func(r registry) any { return results(r.Delete("a")) }}
	size   = call{Name: "Len", Do: func(r registry) any { return r.Len() }} // exact only when quiet

	// entries is a Lookup too: there is one key.
	entries = call{Name: "Entries", Do: func(r registry) any {
		for e := range r.Entries() {
			return results(e, true)
		}
		return results(shardedregistry.Entry[string, int]{}, false)
	}}

	// linked counts the cells in the table, none of which may be left behind, and nor may an
	// intent in one of them.
	linked = call{Name: "linked", Do: func(r registry) any {
		if r, ok := r.(*shardedregistry.Registry[string, int]); ok {
			if n := shardedregistry.Intents(r); n > 0 {
				return fmt.Sprint(n, " intents")
			}
			return shardedregistry.Linked(r)
		}
		return r.Len()
	}}
)

func create(v int) call {
	return call{Name: fmt.Sprintf("Create(%d)", v), Do: func(r registry) any { return results(r.Create("a", v)) }}
}

func put(v int) call {
	return call{Name: fmt.Sprintf("Put(%d)", v), Do: func(r registry) any { return results(r.Put("a", v)) }}
}

// update appends a digit to the value, so that the value tells what was done.
func update(digit int) call {
	return call{Name: fmt.Sprintf("Update(%d)", digit), Do: func(r registry) any {
		return results(r.Update("a", func(v int) (int, error) { return 10*v + digit, nil }))
	}}
}

// appends is update of a key present or not.
func appends(digit int) call {
	return call{Name: fmt.Sprintf("Compute(+%d)", digit), Do: func(r registry) any {
		return results(createOrUpdate(r, "a", func(v int, _ bool) (int, error) { return 10*v + digit, nil }))
	}}
}

func updateIf(version shardedregistry.Version, v int) call {
	return call{Name: fmt.Sprintf("UpdateIf(%d, %d)", version, v), Do: func(r registry) any {
		return results(r.UpdateIf("a", version, v))
	}}
}

func removeIf(version shardedregistry.Version) call {
	return call{Name: fmt.Sprintf("DeleteIf(%d)", version), Do: func(r registry) any {
		return fmt.Sprint(r.DeleteIf("a", version))
	}}
}
