package peers

import "github.com/latchfree/latchfree/shardedregistry"

type (
	version      = shardedregistry.Version
	entry[V any] = shardedregistry.Entry[string, V]
)

// versioned is what a registry on a bare map holds for a key: the value, and
// the version that each change adds one to.
type versioned[V any] struct {
	version version
	value   V
}

// next returns what follows old by fn.
func (old versioned[V]) next(fn func(V) (V, error)) (versioned[V], error) {
	value, err := fn(old.value)
	return versioned[V]{old.version + 1, value}, err
}
