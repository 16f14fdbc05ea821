package fuzz

import (
	"iter"

	"github.com/latchfree/latchfree/shardedregistry"
)

// wholeRegistry is what FuzzRegistryOps does to a registry, by whichever way.
type wholeRegistry interface {
	Create(string, int) (shardedregistry.Version, error)
	Get(string) (int, bool)
	Lookup(string) (shardedregistry.Entry[string, int], bool)
	Put(string, int) (shardedregistry.Version, error)
	Update(string, func(int) (int, error)) (shardedregistry.Entry[string, int], error)
	UpdateIf(string, shardedregistry.Version, int) (shardedregistry.Version, error)
	Upsert(string, func(int, bool) (int, error)) (shardedregistry.Entry[string, int], error)
	GetOrCreate(string, func() (int, error)) (int, bool, error)
	Delete(string) (shardedregistry.Entry[string, int], bool)
	DeleteIf(string, shardedregistry.Version) error
	CreateMany(iter.Seq2[string, int]) (int, error)
	DeleteMatching(func(shardedregistry.Entry[string, int]) bool) int
	All() iter.Seq2[string, int]
	Entries() iter.Seq[shardedregistry.Entry[string, int]]
	Len() int
	snapshot() wholeSnapshot
}

type wholeSnapshot interface {
	Get(string) (int, bool)
	Lookup(string) (shardedregistry.Entry[string, int], bool)
	All() iter.Seq2[string, int]
	Entries() iter.Seq[shardedregistry.Entry[string, int]]
	Len() int
}

func (r registryByRefs) snapshot() wholeSnapshot { return r.Snapshot() }

type (
	scopedKey      = shardedregistry.Scoped[string]
	scopedRegistry = shardedregistry.Registry[scopedKey, int]
)

// viewed is a View as a registry of its own.
type viewed struct {
	shardedregistry.View[string, int]
	registry *scopedRegistry
	space    string
}

func newViewed(r *scopedRegistry, space string) viewed {
	return viewed{shardedregistry.Namespace(r, space), r, space}
}

// normalizeScoped normalises the names within a namespace.
func normalizeScoped(k scopedKey) (scopedKey, error) {
	name, err := normalizeName(k.Key)
	return scopedKey{Space: k.Space, Key: name}, err
}

func (v viewed) snapshot() wholeSnapshot { return viewedSnapshot{v.registry.Snapshot(), v.space} }

// viewedSnapshot is what a snapshot contains of a namespace.
type viewedSnapshot struct {
	all   *shardedregistry.Snapshot[scopedKey, int]
	space string
}

func (s viewedSnapshot) Get(name string) (int, bool) {
	return s.all.Get(scopedKey{Space: s.space, Key: name})
}

func (s viewedSnapshot) Lookup(name string) (shardedregistry.Entry[string, int], bool) {
	e, ok := s.all.Lookup(scopedKey{Space: s.space, Key: name})
	return shardedregistry.Entry[string, int]{Key: e.Key.Key, Value: e.Value, Version: e.Version}, ok
}

func (s viewedSnapshot) Entries() iter.Seq[shardedregistry.Entry[string, int]] {
	return func(yield func(shardedregistry.Entry[string, int]) bool) {
		for e := range s.all.Entries() {
			if e.Key.Space == s.space && !yield(shardedregistry.Entry[string, int]{Key: e.Key.Key, Value: e.Value, Version: e.Version}) {
				return
			}
		}
	}
}

func (s viewedSnapshot) All() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for e := range s.Entries() {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

func (s viewedSnapshot) Len() (n int) {
	for range s.Entries() {
		n++
	}
	return n
}
