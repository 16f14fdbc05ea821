package model

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/latchfree/latchfree/shardedregistry"
)

// ReplaceOps is what both a registry and its model do to all keys.
type ReplaceOps interface {
	Clear() int
	Replace(entries iter.Seq2[string, int], equal func(a, b int) bool) error
}

// Clear deletes all keys.
func (r *Registry) Clear() int { return r.DeleteFunc(func(string, int) bool { return true }) }

// Replace deletes what entries does not yield, and puts what it yields and is not equal. An
// error is that of the first key that is invalid, and then nothing has changed, or joins those
// of the keys that are rejected.
func (r *Registry) Replace(entries iter.Seq2[string, int], equal func(a, b int) bool) error {
	var (
		order []string // keys, as they are stored
		next  = map[string]int{}
		given = map[string]string{}
	)
	for spelled, v := range entries {
		key, err := r.normalize(spelled)
		if err != nil {
			return &shardedregistry.KeyError{Key: spelled, Err: err}
		}
		if _, twice := next[key]; !twice {
			order, given[key] = append(order, key), spelled
		}
		next[key] = v
	}
	for _, key := range slices.Collect(maps.Keys(r.live)) {
		if _, stays := next[key]; !stays {
			r.Delete(key)
		}
	}
	var failed []error
	for _, key := range order {
		if old, ok := r.Get(key); ok && equal != nil && equal(old, next[key]) {
			continue
		}
		if _, err := r.Put(given[key], next[key]); err != nil {
			failed = append(failed, &shardedregistry.KeyError{Key: given[key], Err: err})
		}
	}
	return errors.Join(failed...)
}
