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

// replaced is what can be emptied and get other contents.
type replaced interface {
	clear()
	replace(entries iter.Seq2[string, action])
}

// mutexReplaced is a map with versions behind a mutex. A key that comes again begins above
// all versions that there were.
type mutexReplaced struct {
	mu      sync.RWMutex
	entries map[string]shardedregistry.Entry[string, action]
	floor   shardedregistry.Version
}

func (m *mutexReplaced) clear() { m.replace(maps.All(map[string]action(nil))) }

func (m *mutexReplaced) replace(entries iter.Seq2[string, action]) {
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

// replacedRegistry uses Clear and Replace.
type replacedRegistry struct {
	shardedregistry.Registry[string, action]
	equal func(a, b action) bool
}

func (r *replacedRegistry) clear() { r.Clear() }

func (r *replacedRegistry) replace(entries iter.Seq2[string, action]) { r.Replace(entries, r.equal) }

var replacedMaps = []struct {
	impl string
	make func() replaced
}{
	{"mutex", func() replaced { return &mutexReplaced{} }},
	{"latchfree", func() replaced { return new(replacedRegistry) }},
	{"latchfreeequal", func() replaced { return &replacedRegistry{equal: func(a, b action) bool { return a == b }} }},
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

// BenchmarkRegistryClear empties a registry.
func BenchmarkRegistryClear(b *testing.B) {
	for _, keys := range []int{1000, 10_000} {
		names := load.Names(keys)
		for _, l := range replacedMaps {
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
// which it has, with the values that they have. "latchfreeequal" leaves these as they are.
func BenchmarkRegistryReplace(b *testing.B) {
	for _, keys := range []int{1000, 10_000} {
		names := load.Names(keys + keys/10)
		for _, l := range replacedMaps {
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
