package model

import (
	"maps"
	"slices"
)

// Rules is what a registry with indexes asks of a value. The functions are those
// of its Config, but for keys and values of this model.
type Rules struct {
	Check   func(key string, value int) error
	Indexes map[string]func(key string, value int) []string
	Unique  map[string]bool // which of Indexes are
}

// Rival is a key that has a value of a unique index.
type Rival struct{ Index, Value, Key string }

// Values returns what a value is found by under an index, in order, each once.
func (u *Rules) Values(index, key string, value int) []string {
	return slices.Compact(slices.Sorted(slices.Values(u.Indexes[index](key, value))))
}

// Reject returns the error of Check for what is to be stored, or the first rival
// in the order of indexes and values, or neither.
func (u *Rules) Reject(r *Registry, key string, value int) (rival *Rival, err error) {
	if err := u.Check(key, value); err != nil {
		return nil, err
	}
	for _, index := range slices.Sorted(maps.Keys(u.Indexes)) {
		for _, v := range u.Values(index, key, value) {
			for _, other := range u.ByIndex(r, index, v) {
				if u.Unique[index] && other != key {
					return &Rival{index, v, other}, nil
				}
			}
		}
	}
	return nil, nil
}

// ByIndex returns the keys that have a value, in order.
func (u *Rules) ByIndex(r *Registry, index, value string) (keys []string) {
	for key, e := range r.Live {
		if slices.Contains(u.Indexes[index](key, e.Value), value) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// IndexValues returns the values of an index, in order.
func (u *Rules) IndexValues(r *Registry, index string) (values []string) {
	for key, e := range r.Live {
		values = append(values, u.Indexes[index](key, e.Value)...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}
