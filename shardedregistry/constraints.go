package shardedregistry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/latchfree/latchfree/internal/table"
)

// ruler is what all who store need of rules. As that is an interface, and New alone
// puts a law into it, a program without New has none of that: nor of what has
// methods of these names, which the linker takes for the same.
type ruler[K comparable] interface {
	terms(key K, rec *record, old []term) ([]term, error)
	swap(p place[K], k hkey[K], c *cell[K], old, next *record) (stored bool, err error)
	enlist(p place[K], fresh *cell[K], rec *record) (c *cell[K], present *record, err error)
	unpin(k hkey[K], terms, others []term)
}

// rules is what a registry asks of each value before it stores it. It is
// immutable but for what is inside.
type rules[K comparable] struct {
	check   func(K, *record) error // Config.Check of a value, or nil
	indexes []catalogue[K]         // in the order of their names, those that are unique last
	values  table.Keys[string]
	gates   *gates // nil if no index is unique
}

// rules returns the rules, or nil if there are none.
func (c *Config[K, V]) rules() (*rules[K], error) {
	if c.Check == nil && len(c.Indexes) == 0 && len(c.UniqueIndexes) == 0 {
		return nil, nil
	}
	u := &rules[K]{values: table.NewKeys[string]()}
	if clone, check := c.Clone, c.Check; check != nil {
		u.check = func(key K, rec *record) error { return check(key, copied(clone, *valueOf[V](rec))) }
	}
	for _, name := range slices.Sorted(maps.Keys(c.Indexes)) {
		if c.Indexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.Indexes[%q] is nil, and must be a function", name)
		}
		u.add(name, false, c.values(c.Indexes[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.UniqueIndexes)) {
		if c.UniqueIndexes[name] == nil {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes[%q] is nil, and must be a function", name)
		}
		if _, both := c.Indexes[name]; both {
			return nil, fmt.Errorf("shardedregistry: Config.UniqueIndexes has %q, which must not be in Config.Indexes too", name)
		}
		u.add(name, true, c.values(c.UniqueIndexes[name]))
		u.gates = new(gates)
	}
	return u, nil
}

// values returns an index's function of what a record holds, or of a clone of it.
func (c *Config[K, V]) values(of func(K, V) []string) func(K, *record) []string {
	clone := c.Clone
	return func(key K, rec *record) []string { return of(key, copied(clone, *valueOf[V](rec))) }
}

func (u *rules[K]) add(name string, unique bool, values func(K, *record) []string) {
	u.indexes = append(u.indexes, catalogue[K]{name, unique, values, table.New[hkey[string], shelf[K]](
		func(v hkey[string], _ uint64) uint64 { return v.Hash }, 0)})
}

// law is the rules to who stores.
type law[K comparable] struct{ *rules[K] }

// rulesOf returns the rules of a registry, or nil if there are none.
func rulesOf[K comparable](o *root[K]) *rules[K] {
	u, _ := o.rules.(law[K])
	return u.rules
}

// number returns the number of an index, or -1.
func (u *rules[K]) number(name string) int {
	if u == nil {
		return -1
	}
	return slices.IndexFunc(u.indexes, func(x catalogue[K]) bool { return x.name == name })
}

// term returns the term for a value of an index.
func (u *rules[K]) term(index int, value string) term {
	return term{index, hkey[string]{Hash: u.values.Hash(value), Key: value}}
}

// terms runs the user's functions on what is to be stored. It returns old if the
// result is the same.
func (u law[K]) terms(key K, rec *record, old []term) ([]term, error) {
	if u.check != nil {
		if err := u.check(key, rec); err != nil {
			return nil, err
		}
	}
	var all []term
	for i := range u.indexes {
		for _, v := range u.indexes[i].values(key, rec) {
			all = append(all, u.term(i, v))
		}
	}
	slices.SortFunc(all, term.compare)
	all = slices.Compact(all)
	if slices.Equal(all, old) {
		return old, nil // so that all becomes garbage, and the record shares old
	}
	return all, nil
}

// pin pins k on those of terms that are not in others, and unpin takes that back.
func (u law[K]) pin(k hkey[K], terms, others []term) {
	missing(terms, others, func(t term) { u.indexes[t.index].pin(t.value, k) })
}

func (u law[K]) unpin(k hkey[K], terms, others []term) {
	missing(terms, others, func(t term) { u.indexes[t.index].drop(t.value, k) })
}
