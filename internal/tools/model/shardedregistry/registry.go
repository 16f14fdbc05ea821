// Package model has the sequential model of a Registry. See internal/tools/model.
package model

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

type (
	// RegistryConfig is what NewRegistry takes. If Shards is 1, all keys share a
	// shard, and otherwise each key has its own.
	RegistryConfig = shardedregistry.Config[string, int]
	// Entry is what a key holds.
	Entry = shardedregistry.Entry[string, int]
	// Version is that of an entry.
	Version = shardedregistry.Version
	// Event is the last change of a key.
	Event = shardedregistry.Event[string, int]
	// ComputeOp is what a function given to Compute asks for.
	ComputeOp = shardedregistry.ComputeOp
)

// RegistryOps is what both a registry and its model do.
type RegistryOps interface {
	Create(string, int) (Version, error)
	Get(string) (int, bool)
	Lookup(string) (Entry, bool)
	Put(string, int) (Version, error)
	Update(string, func(int) (int, error)) (Entry, error)
	UpdateIf(string, Version, int) (Version, error)
	Compute(string, func(int, bool) (int, ComputeOp, error)) (Entry, bool, error)
	GetOrCreate(string, func() (int, error)) (int, bool, error)
	Delete(string) (Entry, bool)
	DeleteIf(string, Version) error
	DeleteFunc(func(string, int) bool) int
	All() iter.Seq2[string, int]
	Entries() iter.Seq[Entry]
	Len() int
}

// Registry is shardedregistry.Registry for one goroutine.
type Registry struct {
	config RegistryConfig
	live   map[string]created
	floors map[string]Version // by shard: at least every version of every deleted key
	gone   map[string]Event   // the last deletion of each key that was deleted

	now       time.Duration
	deadlines map[string]time.Duration // of the keys that expire
}

// created is an entry, and how the key was spelled by the call that created it.
type created struct {
	Entry
	spelled string
}

// NewRegistry returns an empty registry.
func NewRegistry(config RegistryConfig) *Registry {
	return &Registry{
		config: config, live: map[string]created{}, floors: map[string]Version{}, gone: map[string]Event{},
		deadlines: map[string]time.Duration{},
	}
}

// Copy returns a registry that stays as r is.
func (r *Registry) Copy() *Registry {
	return &Registry{r.config, maps.Clone(r.live), maps.Clone(r.floors), maps.Clone(r.gone), r.now, maps.Clone(r.deadlines)}
}

func (r *Registry) normalize(given string) (string, error) {
	if r.config.Normalize == nil {
		return given, nil
	}
	key, err := r.config.Normalize(given)
	if err != nil {
		return "", fmt.Errorf("%w: %w", shardedregistry.ErrInvalidKey, err)
	}
	return key, nil
}

func (r *Registry) shard(key string) string {
	if r.config.Shards == 1 {
		return "the only one"
	}
	return key
}

// Adopt makes a version the next one of an absent key if a registry whose keys
// share a shard may give it: at most the next one of any key that was deleted.
func (r *Registry) Adopt(given string, next Version) {
	key, err := r.normalize(given)
	highest := Version(0)
	for _, floor := range r.floors {
		highest = max(highest, floor)
	}
	if err == nil && 0 < next && next <= highest+1 {
		r.floors[r.shard(key)] = max(r.floors[r.shard(key)], next-1)
	}
}

func (r *Registry) Get(given string) (int, bool) {
	e, ok := r.Lookup(given)
	return e.Value, ok
}

func (r *Registry) Lookup(given string) (Entry, bool) {
	key, err := r.normalize(given)
	e, ok := r.live[key]
	return e.Entry, ok && err == nil
}

// upsert stores what fn makes of the value of a key, or of none.
func (r *Registry) upsert(given string, fn func(int, bool) (int, error)) (Entry, error) {
	key, err := r.normalize(given)
	if err != nil {
		return Entry{}, err
	}
	e, ok := r.live[key]
	v, err := fn(e.Value, ok)
	if err == nil {
		err = r.validate(key, v)
	}
	if err != nil {
		return Entry{}, err
	}
	ttl := r.ttl(key, v)
	if err := r.unique(key, v); err != nil {
		return Entry{}, err
	}
	r.lives(key, ttl)
	if !ok {
		e = created{Entry{Key: key, Version: r.floors[r.shard(key)]}, given}
	}
	e.Value = v
	e.Version++
	r.live[key] = e
	return e.Entry, nil
}

func (r *Registry) Update(given string, fn func(int) (int, error)) (Entry, error) {
	return r.upsert(given, func(old int, exists bool) (int, error) {
		if !exists {
			return 0, shardedregistry.ErrNotFound
		}
		return fn(old)
	})
}

func (r *Registry) Put(given string, v int) (Version, error) {
	e, err := r.upsert(given, func(int, bool) (int, error) { return v, nil })
	return e.Version, err
}

func (r *Registry) Create(given string, v int) (Version, error) {
	e, err := r.upsert(given, func(_ int, exists bool) (int, error) {
		if !exists {
			return v, nil
		}
		key, _ := r.normalize(given)
		return 0, &shardedregistry.ExistsError{Given: given, Stored: r.live[key].spelled, Version: r.live[key].Version}
	})
	return e.Version, err
}

func (r *Registry) GetOrCreate(given string, fn func() (int, error)) (v int, created bool, err error) {
	if v, ok := r.Get(given); ok {
		return v, false, nil
	}
	e, err := r.upsert(given, func(int, bool) (int, error) { return fn() })
	return e.Value, err == nil, err
}

// want returns the error of an operation that wants a version.
func (r *Registry) want(given string, want Version) error {
	switch e, ok := r.Lookup(given); {
	case !ok:
		return shardedregistry.ErrNotFound
	case e.Version != want:
		return &shardedregistry.ConflictError{Have: e.Version, Want: want}
	}
	return nil
}

func (r *Registry) UpdateIf(given string, want Version, v int) (Version, error) {
	e, err := r.upsert(given, func(int, bool) (int, error) { return v, r.want(given, want) })
	return e.Version, err
}

func (r *Registry) Delete(given string) (Entry, bool) {
	e, ok := r.Lookup(given)
	if ok {
		delete(r.live, e.Key)
		delete(r.deadlines, e.Key)
		r.gone[e.Key] = Event{Key: e.Key, Value: e.Value, Version: e.Version + 1, Deleted: true}
		r.floors[r.shard(e.Key)] = max(r.floors[r.shard(e.Key)], e.Version+1)
	}
	return e, ok
}

// Last returns the last change of key, as it is stored, and whether there was one.
func (r *Registry) Last(key string) (e Event, ok bool) {
	if have, ok := r.live[key]; ok {
		return Event{Key: key, Value: have.Value, Version: have.Version}, true
	}
	e, ok = r.gone[key]
	return e, ok
}

func (r *Registry) DeleteIf(given string, want Version) error {
	_, err := r.normalize(given)
	if err == nil {
		err = r.want(given, want)
	}
	if err == nil {
		r.Delete(given)
	}
	return err
}

func (r *Registry) Compute(given string, fn func(int, bool) (int, ComputeOp, error)) (Entry, bool, error) {
	if _, err := r.normalize(given); err != nil {
		return Entry{}, false, err
	}
	have, exists := r.Lookup(given)
	v, op, err := fn(have.Value, exists)
	if err != nil {
		return Entry{}, false, err
	}
	switch op {
	case shardedregistry.UpdateOp:
		e, err := r.upsert(given, func(int, bool) (int, error) { return v, nil })
		return e, err == nil, err
	case shardedregistry.DeleteOp:
		r.Delete(given)
		return Entry{}, false, nil
	case shardedregistry.CancelOp:
		return have, exists, nil
	}
	panic(fmt.Sprintf("shardedregistry: the function given to Compute returned ComputeOp %d", op))
}

func (r *Registry) DeleteFunc(del func(string, int) bool) (n int) {
	for e := range r.Entries() {
		if del(e.Key, e.Value) {
			r.Delete(e.Key)
			n++
		}
	}
	return n
}

func (r *Registry) Len() int { return len(r.live) }

// Entries yields entries in the order of their keys.
func (r *Registry) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(r.live)) {
			if !yield(r.live[key].Entry) {
				return
			}
		}
	}
}

// All yields what Entries yields.
func (r *Registry) All() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for e := range r.Entries() {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// validate runs the functions of the configuration.
func (r *Registry) validate(key string, v int) error {
	if r.config.Check != nil {
		if err := r.config.Check(key, v); err != nil {
			return err
		}
	}
	for _, fn := range r.config.Indexes {
		fn(key, v) // it may panic
	}
	return nil
}

// unique returns why a value must not be stored: the first other key that has one of its
// values, in the order of indexes and values.
func (r *Registry) unique(key string, v int) error {
	for _, index := range slices.Sorted(maps.Keys(r.config.UniqueIndexes)) {
		for _, value := range slices.Sorted(slices.Values(r.values(index, key, v))) {
			if e, ok := r.LookupBy(index, value); ok && e.Key != key {
				return &shardedregistry.UniqueError{Index: index, Value: value, Key: e.Key}
			}
		}
	}
	return nil
}

// values returns what a value is found by under an index.
func (r *Registry) values(index, key string, v int) []string {
	if fn := r.config.Indexes[index]; fn != nil {
		return fn(key, v)
	}
	return r.config.UniqueIndexes[index](key, v)
}

// ByIndex yields the entries that have a value, in the order of their keys.
func (r *Registry) ByIndex(index, value string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e := range r.Entries() {
			if slices.Contains(r.values(index, e.Key, e.Value), value) && !yield(e) {
				return
			}
		}
	}
}

func (r *Registry) LookupBy(index, value string) (Entry, bool) {
	for e := range r.ByIndex(index, value) {
		return e, true
	}
	return Entry{}, false
}

// IndexValues yields the values of an index in order.
func (r *Registry) IndexValues(index string) iter.Seq[string] {
	var all []string
	for e := range r.Entries() {
		all = append(all, r.values(index, e.Key, e.Value)...)
	}
	slices.Sort(all)
	return slices.Values(slices.Compact(all))
}
