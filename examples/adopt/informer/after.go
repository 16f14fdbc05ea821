package informer

import (
	"context"
	"iter"

	"github.com/latchfree/latchfree/shardedregistry"
)

// After is the way with a registry.
type After struct {
	objects *shardedregistry.Registry[string, Object]
}

// NewAfter returns an empty store.
func NewAfter(indexers map[string]IndexFunc) After {
	indexes := map[string]func(string, Object) []string{}
	for name, values := range indexers {
		indexes[name] = func(_ string, o Object) []string { return values(o) }
	}
	return After{shardedregistry.MustNew(shardedregistry.Config[string, Object]{Indexes: indexes})}
}

func (a After) Get(key string) (Object, bool) { return a.objects.Get(key) }

func (a After) ByIndex(index, value string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for e := range a.objects.ByIndex(index, value) {
			if !yield(e.Value) {
				return
			}
		}
	}
}

func (a After) Watch(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range a.objects.Watch(ctx) {
			if !yield(Event{e.Value, e.Deleted}) {
				return
			}
		}
	}
}

func (a After) Replace(list []Object) {
	a.objects.Replace(func(yield func(string, Object) bool) {
		for _, o := range list {
			if !yield(o.Key, o) {
				return
			}
		}
	}, func(old, listed Object) bool { return old.Version >= listed.Version })
}

func (a After) Apply(e Event) {
	a.objects.Compute(e.Key, func(old Object, exists bool) (Object, shardedregistry.ComputeOp, error) {
		switch {
		case e.Deleted && exists && old.Version <= e.Version:
			return old, shardedregistry.DeleteOp, nil
		case !e.Deleted && (!exists || old.Version < e.Version):
			return e.Object, shardedregistry.UpdateOp, nil
		}
		return old, shardedregistry.CancelOp, nil
	})
}
