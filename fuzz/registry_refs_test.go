package fuzz

import (
	"iter"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// registryOps is what both a registry and its model can do.
type registryOps = model.RegistryOps

// registryLoops is what registries, snapshots and models can do.
type registryLoops interface {
	All() iter.Seq2[string, int]
	Entries() iter.Seq[shardedregistry.Entry[string, int]]
	Len() int
}

// createOrUpdate stores what fn makes of the value of a key, or of none.
func createOrUpdate(r interface {
	Compute(string, func(int, bool) (int, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[string, int], bool, error)
}, k string, fn func(old int, exists bool) (int, error)) (shardedregistry.Entry[string, int], error) {
	e, _, err := r.Compute(k, func(old int, exists bool) (int, shardedregistry.ComputeOp, error) {
		v, err := fn(old, exists)
		return v, shardedregistry.UpdateOp, err
	})
	return e, err
}

// registryByRefs is a registry in which some spellings stand for Refs, which all
// readers share. The other spellings of the same keys do not.
type registryByRefs struct {
	*shardedregistry.Registry[string, int]
	refs map[string]shardedregistry.Ref[string, int]
}

// ByRefs returns r with refs in place of the spellings that they are filed
// under.
func ByRefs(r *shardedregistry.Registry[string, int], refs map[string]shardedregistry.Ref[string, int]) registryByRefs {
	return registryByRefs{r, refs}
}

func (r registryByRefs) Get(k string) (int, bool) {
	if ref, ok := r.refs[k]; ok {
		return ref.Get()
	}
	return r.Registry.Get(k)
}

func (r registryByRefs) Peek(k string) *int {
	if ref, ok := r.refs[k]; ok {
		return ref.Peek()
	}
	return r.Registry.Peek(k)
}

func (r registryByRefs) Lookup(k string) (shardedregistry.Entry[string, int], bool) {
	if ref, ok := r.refs[k]; ok {
		return ref.Lookup()
	}
	return r.Registry.Lookup(k)
}
