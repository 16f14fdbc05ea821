package informer

import (
	"context"
	"iter"
	"sync"
)

// Before is the usual way: maps for objects and indexes, one lock for all, and a channel for each
// loop that watches.
type Before struct {
	indexers map[string]IndexFunc

	mu       sync.RWMutex
	objects  map[string]Object
	indexes  map[place]map[string]bool // the keys
	watchers map[chan Event]bool
}

type place struct{ index, value string }

// buffered is how many events a watcher may be behind.
const buffered = 100

// NewBefore returns an empty store.
func NewBefore(indexers map[string]IndexFunc) *Before {
	return &Before{indexers: indexers, objects: map[string]Object{}, indexes: map[place]map[string]bool{}, watchers: map[chan Event]bool{}}
}

func (b *Before) Get(key string) (Object, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	o, ok := b.objects[key]
	return o, ok
}

// ByIndex copies what it yields, so that the caller's loop runs without the lock.
func (b *Before) ByIndex(index, value string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		b.mu.RLock()
		var found []Object
		for key := range b.indexes[place{index, value}] {
			found = append(found, b.objects[key])
		}
		b.mu.RUnlock()
		for _, o := range found {
			if !yield(o) {
				return
			}
		}
	}
}

func (b *Before) Watch(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		events := make(chan Event, buffered)
		b.mu.Lock()
		b.watchers[events] = true
		b.mu.Unlock()
		defer func() { b.mu.Lock(); delete(b.watchers, events); b.mu.Unlock() }()
		for {
			select {
			case e := <-events:
				if !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (b *Before) Replace(list []Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := map[string]bool{}
	for _, o := range list {
		there[o.Key] = true
		b.apply(Event{Object: o})
	}
	for key, o := range b.objects {
		if !there[key] {
			b.apply(Event{o, true})
		}
	}
}

func (b *Before) Apply(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.apply(e)
}

func (b *Before) apply(e Event) {
	old, ok := b.objects[e.Key]
	if !e.Deleted && ok && old.Version >= e.Version || e.Deleted && (!ok || old.Version > e.Version) {
		return
	}
	if ok {
		b.index(old, false)
	}
	delete(b.objects, e.Key)
	if !e.Deleted {
		b.objects[e.Key] = e.Object
		b.index(e.Object, true)
	}
	for events := range b.watchers {
		select {
		case events <- e:
		default: // the watcher is slow, and all others would wait for it
		}
	}
}

// index puts an object into all indexes, or takes it out.
func (b *Before) index(o Object, in bool) {
	for name, values := range b.indexers {
		for _, value := range values(o) {
			at := place{name, value}
			if b.indexes[at] == nil {
				b.indexes[at] = map[string]bool{}
			}
			if in {
				b.indexes[at][o.Key] = true
			} else if delete(b.indexes[at], o.Key); len(b.indexes[at]) == 0 {
				delete(b.indexes, at)
			}
		}
	}
}
