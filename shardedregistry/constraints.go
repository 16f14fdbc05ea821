package shardedregistry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/latchfree/latchfree/internal/table"
)

// constraints is what a registry asks of each value before it stores it. It is
// immutable but for what is inside.
type constraints[K comparable, V any] struct {
	check   func(K, V) error // Config.Check, or nil
	indexes []index[K, V]    // in the order of their names, those that are unique last
	values  table.Keys[string]
	locks   *valueLocks // nil if no index is unique
}

// constraints returns the constraints, or nil if there are none.
func (c *Config[K, V]) constraints() (*constraints[K, V], error) {
	if c.Check == nil && len(c.Indexes) == 0 && len(c.UniqueIndexes) == 0 {
		return nil, nil
	}
	cs := &constraints[K, V]{check: c.Check, values: table.NewKeys[string]()}
	for _, name := range slices.Sorted(maps.Keys(c.Indexes)) {
		if c.Indexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.Indexes[%q]: must not be nil", name)
		}
		cs.add(name, false, c.Indexes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.UniqueIndexes)) {
		if c.UniqueIndexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q]: must not be nil", name)
		}
		if _, both := c.Indexes[name]; both {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q]: must not be in Config.Indexes too", name)
		}
		cs.add(name, true, c.UniqueIndexes[name])
		cs.locks = new(valueLocks)
	}
	return cs, nil
}

func (cs *constraints[K, V]) add(name string, unique bool, values func(K, V) []string) {
	cs.indexes = append(cs.indexes, index[K, V]{name, unique, values, table.New[hkey[string], postingList[K]](
		func(v hkey[string], _ uint64) uint64 { return v.Hash }, 0)})
}

// number returns the number of an index, or -1.
func (cs *constraints[K, V]) number(name string) int {
	if cs == nil {
		return -1
	}
	return slices.IndexFunc(cs.indexes, func(x index[K, V]) bool { return x.name == name })
}

// indexKey returns the index key for a value of an index.
func (cs *constraints[K, V]) indexKey(index int, value string) indexKey {
	return indexKey{index, hkey[string]{Hash: cs.values.Hash(value), Key: value}}
}

// indexKeys runs the user's functions on what is to be stored. It returns old if the
// result is the same.
func (cs *constraints[K, V]) indexKeys(key K, value V, old []indexKey) ([]indexKey, error) {
	if cs.check != nil {
		if err := cs.check(key, value); err != nil {
			return nil, err
		}
	}
	var all []indexKey
	for i := range cs.indexes {
		for _, v := range cs.indexes[i].values(key, value) {
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
func (cs *constraints[K, V]) pin(k hkey[K], keys, others []indexKey) {
	missing(keys, others, func(t indexKey) { cs.indexes[t.index].pin(t.value, k) })
}

func (cs *constraints[K, V]) unpin(k hkey[K], keys, others []indexKey) {
	missing(keys, others, func(t indexKey) { cs.indexes[t.index].drop(t.value, k) })
}
