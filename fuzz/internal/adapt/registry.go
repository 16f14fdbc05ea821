package adapt

import "github.com/latchfree/latchfree/shardedregistry"

// CreateOrUpdate stores what fn makes of the value of a key, or of none.
func CreateOrUpdate(r interface {
	Compute(string, func(int, bool) (int, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[string, int], bool, error)
}, k string, fn func(old int, exists bool) (int, error)) (shardedregistry.Entry[string, int], error) {
	e, _, err := r.Compute(k, func(old int, exists bool) (int, shardedregistry.ComputeOp, error) {
		v, err := fn(old, exists)
		return v, shardedregistry.UpdateOp, err
	})
	return e, err
}

// Registry is a registry in which some spellings stand for Refs, which all
// readers share. The other spellings of the same keys do not.
type Registry struct {
	*shardedregistry.Registry[string, int]
	refs map[string]shardedregistry.Ref[string, int]
}

// ByRefs returns r with refs in place of the spellings that they are filed
// under.
func ByRefs(r *shardedregistry.Registry[string, int], refs map[string]shardedregistry.Ref[string, int]) Registry {
	return Registry{r, refs}
}

func (r Registry) Get(k string) (int, bool) {
	if ref, ok := r.refs[k]; ok {
		return ref.Get()
	}
	return r.Registry.Get(k)
}

func (r Registry) Peek(k string) *int {
	if ref, ok := r.refs[k]; ok {
		return ref.Peek()
	}
	return r.Registry.Peek(k)
}

func (r Registry) Lookup(k string) (shardedregistry.Entry[string, int], bool) {
	if ref, ok := r.refs[k]; ok {
		return ref.Lookup()
	}
	return r.Registry.Lookup(k)
}
