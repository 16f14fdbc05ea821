package shardedregistry

import "fmt"

// String returns how many keys there are. It spares those who print a registry
// from reading its words without atomic instructions, as package fmt would.
//
// String is wait-free. It takes effect as Len does.
func (r *Registry[K, V]) String() string { return fmt.Sprintf("a registry of %d keys", r.Len()) }
