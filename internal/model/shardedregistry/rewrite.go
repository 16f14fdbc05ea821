package model

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// RewriteOps is what both a registry and its model do to all keys at once.
type RewriteOps interface {
	Clear() int
	Replace(iter.Seq2[string, int]) error
}

// Clear deletes all keys.
func (r *Registry) Clear() int {
	keys := slices.Collect(maps.Keys(r.live))
	for _, key := range keys {
		r.Delete(key)
	}
	return len(keys)
}

// Replace puts what entries yields and deletes the rest. An error is that of the
// first key that is invalid, or else rejected by Check, or else not unique; of those that
// have a value twice, the later one.
func (r *Registry) Replace(entries iter.Seq2[string, int]) error {
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
	twice := func(key string, v int) error { return r.uniqueAmong(key, v, order, next) }
	for _, validate := range []func(string, int) error{r.validate, twice, r.unique} {
		for _, key := range order {
			if err := validate(key, next[key]); err != nil {
				return &shardedregistry.KeyError{Key: given[key], Err: err}
			}
		}
	}
	ttls := map[string]time.Duration{}
	for _, key := range order {
		ttls[key] = r.ttl(key, next[key])
	}
	for _, key := range order {
		e, ok := r.live[key]
		if !ok {
			e = created{Entry{Key: key, Version: r.floors[r.shard(key)]}, given[key]}
		}
		e.Value = next[key]
		e.Version++
		r.live[key] = e
		r.lives(key, ttls[key])
	}
	for _, key := range slices.Collect(maps.Keys(r.live)) {
		if _, stays := next[key]; !stays {
			r.Delete(key)
		}
	}
	return nil
}

// uniqueAmong returns an error if a key before key, in order, has one of its unique values.
func (r *Registry) uniqueAmong(key string, v int, order []string, next map[string]int) error {
	for index := range r.config.UniqueIndexes {
		for _, value := range r.values(index, key, v) {
			for _, other := range order[:slices.Index(order, key)] {
				if slices.Contains(r.values(index, other, next[other]), value) {
					return &shardedregistry.UniqueError{Index: index, Value: value, Key: other}
				}
			}
		}
	}
	return nil
}
