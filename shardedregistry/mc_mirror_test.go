//go:build modelcheck

package shardedregistry_test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// shown is what a mirror shows of a key.
type shown = shardedregistry.Entry[string, int]

// mirrored is what both a registry of versioned values, read through a Mirror, and the model
// of it can do.
type mirrored interface {
	Get(key string) (int, bool)
	Lookup(key string) (shown, bool)
	peek(key string) (int, bool)
	show(e shown)
	remove(key string)
	snapshot() []shown
	end() // of a snapshot that has joined
}

// mirror is a registry of versioned values, with a Mirror of it.
type mirror struct {
	shardedregistry.Mirror[string, int]
	r     *shardedregistry.Registry[string, shardedregistry.Versioned[int]]
	taker shardedregistry.Taker[string, shardedregistry.Versioned[int]] // joined, in protocols of snapshots
}

func newMirror(config shardedregistry.Config[string, shardedregistry.Versioned[int]]) *mirror {
	config.Shards = 1
	r := shardedregistry.MustNew(config)
	return &mirror{Mirror: shardedregistry.MirrorOf(r), r: r}
}

// peek is Peek of the registry, which takes the fast path here.
func (m *mirror) peek(key string) (int, bool) {
	if p := m.r.Peek(key); p != nil {
		return p.Value, true
	}
	return 0, false
}

func (m *mirror) show(e shown) {
	m.r.Put(e.Key, shardedregistry.Versioned[int]{Value: e.Value, Version: e.Version})
}

func (m *mirror) remove(key string) { m.r.Delete(key) }

func (m *mirror) snapshot() []shown {
	for !m.taker.Collect() {
	}
	return inOrder(func(yield func(shown) bool) {
		for e := range m.taker.Found().Entries() {
			if !yield(shown{Key: e.Key, Value: e.Value.Value, Version: e.Value.Version}) {
				return
			}
		}
	})
}

func (m *mirror) end() { m.taker.Leave() }

func inOrder(entries iter.Seq[shown]) []shown {
	return slices.SortedFunc(entries, func(x, y shown) int { return cmp.Compare(x.Key, y.Key) })
}

// mirrorModel is the model of a mirror.
type mirrorModel map[string]shown

func (m mirrorModel) Get(key string) (int, bool)      { e, ok := m[key]; return e.Value, ok }
func (m mirrorModel) Lookup(key string) (shown, bool) { e, ok := m[key]; return e, ok }
func (m mirrorModel) peek(key string) (int, bool)     { return m.Get(key) }
func (m mirrorModel) show(e shown)                    { m[e.Key] = e }
func (m mirrorModel) remove(key string)               { delete(m, key) }
func (m mirrorModel) snapshot() []shown               { return inOrder(maps.Values(m)) }
func (m mirrorModel) end()                            {}

type mirrorCall = mc.Call[mirrored]

var (
	mirrorGet      = mirrorCall{Name: "Mirror.Get", Do: func(m mirrored) any { return results(m.Get("a")) }}
	mirrorLookup   = mirrorCall{Name: "Mirror.Lookup", Do: func(m mirrored) any { return results(m.Lookup("a")) }}
	mirrorPeek     = mirrorCall{Name: "Peek", Do: func(m mirrored) any { return results(m.peek("a")) }}
	mirrorRemove   = mirrorCall{Name: "Delete", Do: func(m mirrored) any { m.remove("a"); return nil }}
	mirrorSnapshot = mirrorCall{Name: "Snapshot", Do: func(m mirrored) any { return m.snapshot() }}
	mirrorEnd      = mirrorCall{Name: "Leave", Do: func(m mirrored) any { m.end(); return nil }}
)

// shows puts a value that is its version.
func shows(key string, n int) mirrorCall {
	return mirrorCall{Name: fmt.Sprintf("Put(%s, %d)", key, n), Do: func(m mirrored) any {
		m.show(shown{Key: key, Value: n, Version: shardedregistry.Version(n)})
		return nil
	}}
}

// What a Mirror shows of a key is one value with its version, from one moment, whatever
// others do to the key.
func TestMirrorProtocols(t *testing.T) {
	has7 := []mirrorCall{shows("a", 7)}
	for _, tt := range []struct {
		name    string
		first   []mirrorCall
		threads [][]mirrorCall
	}{
		{"created", nil, [][]mirrorCall{{shows("a", 8), shows("a", 9)}, {mirrorGet, mirrorLookup}}},
		{"changed", has7, [][]mirrorCall{{shows("a", 8), shows("a", 9)}, {mirrorLookup, mirrorGet}}},
		{"deleted", has7, [][]mirrorCall{{mirrorRemove, shows("a", 9)}, {mirrorGet, mirrorLookup}}},
		{"deleted after a change", has7, [][]mirrorCall{{shows("a", 8), mirrorRemove}, {mirrorLookup, mirrorGet}}},
		{"three lives", has7, [][]mirrorCall{{mirrorRemove, shows("a", 9), mirrorRemove, shows("a", 11)}, {mirrorGet, mirrorLookup}}},
		{"two readers", has7, [][]mirrorCall{{mirrorRemove, shows("a", 9)}, {mirrorGet}, {mirrorLookup}}},
		{"peeks", has7, [][]mirrorCall{{mirrorRemove, shows("a", 9)}, {mirrorPeek, mirrorGet}}},
	} {
		for layout, config := range map[string]shardedregistry.Config[string, shardedregistry.Versioned[int]]{
			"":             {},
			", normalised": {Normalize: func(k string) (string, error) { return k, nil }},
		} {
			t.Run(tt.name+layout, func(t *testing.T) {
				mc.Linearizable(t, mc.Config{}, mc.Program[mirrored]{
					New: func() mirrored {
						m := newMirror(config)
						for _, c := range tt.first {
							c.Do(m)
						}
						return m
					},
					Model: func() mirrored {
						m := mirrorModel{}
						for _, c := range tt.first {
							c.Do(m)
						}
						return m
					},
					Threads: tt.threads,
					After:   []mirrorCall{mirrorGet, mirrorLookup},
				})
			})
		}
	}
}

// A Mirror dates what it finds while a snapshot is being taken, as all readers do: what is
// seen before a change of another key is in each snapshot that has that.
func TestMirrorSnapshotProtocols(t *testing.T) {
	both := []mirrorCall{shows("a", 7), shows("b", 7)}
	for _, tt := range []struct {
		name    string
		threads [][]mirrorCall
	}{
		{"seen", [][]mirrorCall{{shows("a", 8)}, {mirrorGet, shows("b", 9)}, {mirrorSnapshot}}},
		{"looked up", [][]mirrorCall{{shows("a", 8)}, {mirrorLookup, shows("b", 9)}, {mirrorSnapshot}}},
		{"seen deleted", [][]mirrorCall{{mirrorRemove}, {mirrorGet, shows("b", 9)}, {mirrorSnapshot}}},
		{"looked up deleted", [][]mirrorCall{{mirrorRemove}, {mirrorLookup, shows("b", 9)}, {mirrorSnapshot}}},
		{"peeked at", [][]mirrorCall{{shows("a", 8)}, {mirrorPeek, shows("b", 9)}, {mirrorSnapshot}}},
		{"peeked at deleted", [][]mirrorCall{{mirrorRemove}, {mirrorPeek, shows("b", 9)}, {mirrorSnapshot}}},
		{"changed twice", [][]mirrorCall{{shows("a", 8), shows("a", 9)}, {mirrorGet, mirrorLookup}, {mirrorSnapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Linearizable(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}, mc.Program[mirrored]{
				New: func() mirrored {
					m := newMirror(shardedregistry.Config[string, shardedregistry.Versioned[int]]{})
					for _, c := range both {
						c.Do(m)
					}
					m.taker = shardedregistry.Join(m.r)
					return m
				},
				Model: func() mirrored {
					m := mirrorModel{}
					for _, c := range both {
						c.Do(m)
					}
					return m
				},
				Threads: tt.threads,
				After:   []mirrorCall{mirrorEnd, mirrorGet, mirrorLookup, mirrorPeek},
			})
		})
	}
}
