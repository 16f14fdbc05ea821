package bench

import (
	"fmt"
	"iter"
	"maps"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// rewritten is what can be emptied and get other contents.
type rewritten interface {
	clear()
	replace(entries iter.Seq2[string, action])
}

// mutexRewritten is a map with versions behind a mutex. A key that comes again begins above
// all versions that there were.
type mutexRewritten struct {
	mu      sync.RWMutex
	entries map[string]shardedregistry.Entry[string, action]
	floor   shardedregistry.Version
}

func (m *mutexRewritten) clear() { m.replace(maps.All(map[string]action(nil))) }

func (m *mutexRewritten) replace(entries iter.Seq2[string, action]) {
	next := make(map[string]shardedregistry.Entry[string, action])
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, v := range entries {
		old, ok := m.entries[k]
		if !ok {
			old.Version = m.floor
		}
		next[k] = shardedregistry.Entry[string, action]{Key: k, Value: v, Version: old.Version + 1}
	}
	for k, e := range m.entries {
		if _, ok := next[k]; !ok {
			m.floor = max(m.floor, e.Version+1)
		}
	}
	m.entries = next
}

// keyByKey changes one key after the other.
type keyByKey struct {
	shardedregistry.Registry[string, action]
}

func (r *keyByKey) clear() {
	r.DeleteFunc(func(string, action) bool { return true })
}

func (r *keyByKey) replace(entries iter.Seq2[string, action]) {
	stays := make(map[string]bool)
	for k, v := range entries {
		stays[k] = true
		r.Put(k, v)
	}
	r.DeleteFunc(func(k string, _ action) bool { return !stays[k] })
}

// atOnce uses Clear and Replace.
type atOnce struct {
	shardedregistry.Registry[string, action]
}

func (r *atOnce) clear() { r.Clear() }

func (r *atOnce) replace(entries iter.Seq2[string, action]) { r.Replace(entries) }

var rewrittens = []struct {
	impl string
	make func() rewritten
}{
	{"mutex", func() rewritten { return &mutexRewritten{} }},
	{"latchfreekeybykey", func() rewritten { return new(keyByKey) }},
	{"latchfree", func() rewritten { return new(atOnce) }},
}

// yields yields some names with a value each.
func yields(names []string) iter.Seq2[string, action] {
	return func(yield func(string, action) bool) {
		for _, name := range names {
			if !yield(name, action{Name: name}) {
				return
			}
		}
	}
}

// BenchmarkRegistryClear empties a registry. "latchfreekeybykey" does not do so at one instant.
func BenchmarkRegistryClear(b *testing.B) {
	for _, keys := range []int{1000, 100_000} {
		names := load.Names(keys)
		for _, l := range rewrittens {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, l.impl), func(b *testing.B) {
				r := l.make()
				b.ReportAllocs()
				for range b.N {
					b.StopTimer()
					r.replace(yields(names))
					b.StartTimer()
					r.clear()
				}
			})
		}
	}
}

// BenchmarkRegistryReplace gives a registry other contents, of as many keys, nine of ten of
// which it has.
func BenchmarkRegistryReplace(b *testing.B) {
	for _, keys := range []int{1000, 100_000} {
		names := load.Names(keys + keys/10)
		for _, l := range rewrittens {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, l.impl), func(b *testing.B) {
				r := l.make()
				r.replace(yields(names[:keys]))
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					from := (i + 1) % 2 * (keys / 10)
					r.replace(yields(names[from : from+keys]))
				}
			})
		}
	}
}
