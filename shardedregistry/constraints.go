package shardedregistry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/latchfree/latchfree/internal/table"
)

// constrainer has the methods of constraints that every store of a value needs. As it
// is an interface, and New alone puts a constrained into it, a program without New links
// none of them, nor other methods of these names, which the linker takes for the same.
type constrainer[K comparable] interface {
	indexKeys(key K, rec *record, old []indexKey) ([]indexKey, error)
	swap(p target[K], k hkey[K], c *cell[K], old, next *record) (stored bool, err error)
	enlist(p target[K], fresh *cell[K], rec *record) (c *cell[K], present *record, err error)
	unpin(k hkey[K], keys, others []indexKey)
}

// constraints is what a registry asks of each value before it stores it. It is
// immutable but for what is inside.
type constraints[K comparable] struct {
	check   func(K, *record) error // Config.Check of a value, or nil
	indexes []index[K]             // in the order of their names, those that are unique last
	values  table.Keys[string]
	locks   *valueLocks // nil if no index is unique
}

// constraints returns the constraints, or nil if there are none.
func (c *Config[K, V]) constraints() (*constraints[K], error) {
	if c.Check == nil && len(c.Indexes) == 0 && len(c.UniqueIndexes) == 0 {
		return nil, nil
	}
	cs := &constraints[K]{values: table.NewKeys[string]()}
	if check := c.Check; check != nil {
		cs.check = func(key K, rec *record) error { return check(key, *valueOf[V](rec)) }
	}
	for _, name := range slices.Sorted(maps.Keys(c.Indexes)) {
		if c.Indexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.Indexes[%q]: must not be nil", name)
		}
		cs.add(name, false, c.values(c.Indexes[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.UniqueIndexes)) {
		if c.UniqueIndexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q]: must not be nil", name)
		}
		if _, both := c.Indexes[name]; both {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q]: must not be in Config.Indexes too", name)
		}
		cs.add(name, true, c.values(c.UniqueIndexes[name]))
		cs.locks = new(valueLocks)
	}
	return cs, nil
}

// values returns an index's function of what a record holds.
func (c *Config[K, V]) values(of func(K, V) []string) func(K, *record) []string {
	return func(key K, rec *record) []string { return of(key, *valueOf[V](rec)) }
}

func (cs *constraints[K]) add(name string, unique bool, values func(K, *record) []string) {
	cs.indexes = append(cs.indexes, index[K]{name, unique, values, table.New[hkey[string], postingList[K]](
		func(v hkey[string], _ uint64) uint64 { return v.Hash }, 0)})
}

// constrained is the constraints as a constrainer.
type constrained[K comparable] struct{ *constraints[K] }

// constraintsOf returns the constraints of a registry, or nil if there are none.
func constraintsOf[K comparable](rt *root[K]) *constraints[K] {
	cs, _ := rt.constraints.(constrained[K])
	return cs.constraints
}

// number returns the number of an index, or -1.
func (cs *constraints[K]) number(name string) int {
	if cs == nil {
		return -1
	}
	return slices.IndexFunc(cs.indexes, func(x index[K]) bool { return x.name == name })
}

// indexKey returns the index key for a value of an index.
func (cs *constraints[K]) indexKey(index int, value string) indexKey {
	return indexKey{index, hkey[string]{Hash: cs.values.Hash(value), Key: value}}
}

// indexKeys runs the user's functions on what is to be stored. It returns old if the
// result is the same.
func (cs constrained[K]) indexKeys(key K, rec *record, old []indexKey) ([]indexKey, error) {
	if cs.check != nil {
		if err := cs.check(key, rec); err != nil {
			return nil, err
		}
	}
	var all []indexKey
	for i := range cs.indexes {
		for _, v := range cs.indexes[i].values(key, rec) {
			all = append(all, cs.indexKey(i, v))
		}
	}
	slices.SortFunc(all, indexKey.compare)
	all = slices.Compact(all)
	if slices.Equal(all, old) {
		return old, nil // so that all becomes garbage, and the record shares old
	}
	return all, nil
}

// pin pins k on those of index keys that are not in others, and unpin takes that back.
func (cs constrained[K]) pin(k hkey[K], keys, others []indexKey) {
	missing(keys, others, func(t indexKey) { cs.indexes[t.index].pin(t.value, k) })
}

func (cs constrained[K]) unpin(k hkey[K], keys, others []indexKey) {
	missing(keys, others, func(t indexKey) { cs.indexes[t.index].drop(t.value, k) })
}
