package fuzz

import (
	"iter"

	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
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

// registryByRefs is a registry in which some spellings stand for Refs, which all
// users share. The other spellings of the same keys do not.
type registryByRefs struct {
	*shardedregistry.Registry[string, int]
	refs map[string]shardedregistry.Ref[string, int]
}

// ByRefs returns r with refs in place of the spellings that they are filed
// under.
func ByRefs(r *shardedregistry.Registry[string, int], refs map[string]shardedregistry.Ref[string, int]) registryByRefs {
	return registryByRefs{r, refs}
}

func (r registryByRefs) Create(k string, v int) (shardedregistry.Version, error) {
	if ref, ok := r.refs[k]; ok {
		return ref.Create(v)
	}
	return r.Registry.Create(k, v)
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

func (r registryByRefs) Put(k string, v int) (shardedregistry.Version, error) {
	if ref, ok := r.refs[k]; ok {
		return ref.Put(v)
	}
	return r.Registry.Put(k, v)
}

func (r registryByRefs) Update(k string, fn func(int) (int, error)) (shardedregistry.Entry[string, int], error) {
	if ref, ok := r.refs[k]; ok {
		return ref.Update(fn)
	}
	return r.Registry.Update(k, fn)
}

func (r registryByRefs) UpdateIf(k string, version shardedregistry.Version, v int) (shardedregistry.Version, error) {
	if ref, ok := r.refs[k]; ok {
		return ref.UpdateIf(version, v)
	}
	return r.Registry.UpdateIf(k, version, v)
}

func (r registryByRefs) Upsert(k string, fn func(int, bool) (int, error)) (shardedregistry.Entry[string, int], error) {
	if ref, ok := r.refs[k]; ok {
		return ref.Upsert(fn)
	}
	return r.Registry.Upsert(k, fn)
}

func (r registryByRefs) Compute(k string, fn func(int, bool) (int, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[string, int], bool, error) {
	if ref, ok := r.refs[k]; ok {
		return ref.Compute(fn)
	}
	return r.Registry.Compute(k, fn)
}

func (r registryByRefs) GetOrCreate(k string, fn func() (int, error)) (int, bool, error) {
	if ref, ok := r.refs[k]; ok {
		return ref.GetOrCreate(fn)
	}
	return r.Registry.GetOrCreate(k, fn)
}

func (r registryByRefs) Delete(k string) (shardedregistry.Entry[string, int], bool) {
	if ref, ok := r.refs[k]; ok {
		return ref.Delete()
	}
	return r.Registry.Delete(k)
}

func (r registryByRefs) DeleteIf(k string, version shardedregistry.Version) error {
	if ref, ok := r.refs[k]; ok {
		return ref.DeleteIf(version)
	}
	return r.Registry.DeleteIf(k, version)
}
