package fuzz

import (
	"context"
	"iter"

	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

type registryOps = model.RegistryOps

// wholeRegistry is what FuzzRegistryOps does to a registry, by whichever way.
type wholeRegistry interface {
	registryOps
	Peek(string) *int
	CreateMany(iter.Seq2[string, int]) (int, error)
	snapshot() wholeSnapshot
}

type registryLoops interface {
	All() iter.Seq2[string, int]
	Entries() iter.Seq[shardedregistry.Entry[string, int]]
	Len() int
}

type wholeSnapshot interface {
	registryLoops
	Get(string) (int, bool)
	Lookup(string) (shardedregistry.Entry[string, int], bool)
}

func (r registryByRefs) snapshot() wholeSnapshot { return r.Snapshot() }

type scopedKey = shardedregistry.Scoped[string]

// viewed is a View as a registry of its own.
type viewed struct {
	shardedregistry.View[string, int]
}

// normalizeScoped normalises the names within a namespace.
func normalizeScoped(k scopedKey) (scopedKey, error) {
	name, err := normalizeName(k.Key)
	return scopedKey{Space: k.Space, Key: name}, err
}

func (v viewed) snapshot() wholeSnapshot { return v.Snapshot() }

// watchedRegistry is what FuzzRegistryWatchOps does to a registry or to a View.
type watchedRegistry interface {
	Create(string, int) (shardedregistry.Version, error)
	Put(string, int) (shardedregistry.Version, error)
	Update(string, func(int) (int, error)) (shardedregistry.Entry[string, int], error)
	Delete(string) (shardedregistry.Entry[string, int], bool)
	DeleteIf(string, shardedregistry.Version) error
	DeleteMatching(func(shardedregistry.Entry[string, int]) bool) int
	Lookup(string) (shardedregistry.Entry[string, int], bool)
	All() iter.Seq2[string, int]
	Watch(context.Context, ...shardedregistry.Filter[string]) iter.Seq[shardedregistry.Event[string, int]]
	WatchSnapshot(context.Context, ...shardedregistry.Filter[string]) iter.Seq2[*shardedregistry.Snapshot[string, int], shardedregistry.Event[string, int]]
	Stream(context.Context, int, ...shardedregistry.Filter[string]) iter.Seq2[shardedregistry.Event[string, int], error]
	Wait(context.Context, string, shardedregistry.Version) (shardedregistry.Entry[string, int], error)
}

// besideAnother is a View that changes a key in another namespace, too, before
// each change: to something that would be noticed.
type besideAnother struct {
	shardedregistry.View[string, int]
	other shardedregistry.View[string, int]
}

func (r besideAnother) disturb(name string) {
	if _, err := r.other.Create(name, -1); err != nil {
		r.other.Put(name, -2)
		r.other.Delete(name)
	}
}

func (r besideAnother) Create(name string, v int) (shardedregistry.Version, error) {
	r.disturb(name)
	return r.View.Create(name, v)
}

func (r besideAnother) Put(name string, v int) (shardedregistry.Version, error) {
	r.disturb(name)
	return r.View.Put(name, v)
}

func (r besideAnother) Delete(name string) (shardedregistry.Entry[string, int], bool) {
	r.disturb(name)
	return r.View.Delete(name)
}
