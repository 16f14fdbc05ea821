//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

func getOrCreate(v int) call {
	return call{Name: fmt.Sprintf("GetOrCreate(%d)", v), Do: func(r registry) any {
		return results(r.GetOrCreate("a", answer(v, nil)))
	}}
}

// matching deletes the key if its value is below limit.
func matching(limit int) call {
	return call{Name: fmt.Sprintf("DeleteFunc(<%d)", limit), Do: func(r registry) any {
		return r.DeleteFunc(func(_ string, v int) bool { return v < limit })
	}}
}

func TestGetOrCreateProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"two", empty, threads{{getOrCreate(1), lookup}, {getOrCreate(2), lookup}}},
		{"three", empty, threads{{getOrCreate(1)}, {getOrCreate(2)}, {getOrCreate(3)}}},
		{"and create", empty, threads{{getOrCreate(1), lookup}, {create(2)}, {get}}},
		{"delete and create", with7, threads{{getOrCreate(1)}, {remove, create(5)}}},
		{"while others delete and create", with7, threads{{getOrCreate(1)}, {remove}, {create(5)}}},
		{"above the floor", without, threads{{getOrCreate(1), remove}, {getOrCreate(2), remove}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// A function that fails, panics or exits leaves nothing behind.
func TestGetOrCreateLeavesProtocol(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreate that fails, panics or exits ∥ Create, Delete"}, func(m *mc.M) {
		r := oneShard()
		m.Go(func() {
			defer func() { recover() }()
			r.GetOrCreate("a", func() (int, error) { return 99, m.Fault(mc.Error, mc.Panic, mc.Goexit) })
		})
		m.Go(func() {
			r.Create("a", 1)
			r.Delete("a")
		})
		m.Final(func() {
			e, ok := r.Lookup("a")
			if ok && e.Value != 99 || r.Len() != shardedregistry.Linked(r) || ok != (r.Len() == 1) {
				m.Failf("left %v, %v; Len = %d, %d linked", e, ok, r.Len(), shardedregistry.Linked(r))
			}
		})
	})
}

func TestDeleteFuncProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"update", with7, threads{{matching(10)}, {update(1)}, {lookup}}},
		{"update twice", with7, threads{{matching(80)}, {update(1), put(5)}}},
		{"delete and create", with7, threads{{matching(10)}, {remove, create(5)}}},
		{"create", empty, threads{{matching(10)}, {create(5), update(1)}}},
		{"two", with7, threads{{matching(10)}, {matching(80)}, {update(1)}}},
		{"two and a creator", with7, threads{{matching(10)}, {matching(10)}, {create(5)}}},
		{"nothing matches", with7, threads{{matching(1)}, {remove}, {put(0)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// Of two keys each is deleted for what it holds alone.
func TestDeleteFuncKeysProtocol(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "DeleteFunc(<10) ∥ Put(a, 50) ∥ Put(b, 50)", Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 7)
		r.Put("b", 7)
		deleted, puts := 0, [2]shardedregistry.Version{}
		m.Go(func() {
			deleted = r.DeleteFunc(func(_ string, v int) bool { return v < 10 })
		})
		for i, k := range []string{"a", "b"} {
			m.Go(func() { puts[i], _ = r.Put(k, 50) })
		}
		m.Final(func() {
			gone := 0
			for i, k := range []string{"a", "b"} {
				e, ok := r.Lookup(k)
				if !ok || e.Value != 50 || e.Version != puts[i] {
					m.Failf("%s holds %v, %v after Put made version %d", k, e, ok, puts[i])
				}
				if puts[i] > 2 {
					gone++
				}
			}
			if deleted != gone {
				m.Failf("DeleteFunc = %d, and %d keys were gone", deleted, gone)
			}
		})
	})
}

// through is a registry whose key a is used through a Ref that all threads
// share.
type through struct {
	*shardedregistry.Registry[string, int]
	ref shardedregistry.Ref[string, int]
}

// byRef is a call, one that reads, through the Ref. The others use the registry itself,
// which forgets no cell.
func byRef(c call) call {
	return call{Name: "Ref." + c.Name, Do: func(r registry) any {
		switch x := r.(type) {
		case *through:
			return c.Do(onRef{r, x.ref})
		case *joined:
			return c.Do(onRef{r, x.ref})
		}
		return c.Do(r)
	}}
}

// onRef is a registry of which all keys are that of a Ref.
type onRef struct {
	registry
	ref shardedregistry.Ref[string, int]
}

func (r onRef) Get(string) (int, bool)                                   { return r.ref.Get() }
func (r onRef) Peek(string) *int                                         { return r.ref.Peek() }
func (r onRef) Lookup(string) (shardedregistry.Entry[string, int], bool) { return r.ref.Lookup() }

// remembers counts what a Ref remembers, after it has been used: the cell of a
// key that is present, and nothing of one that is absent.
var remembers = call{Name: "remembers", Do: func(r registry) any {
	if x, ok := r.(*through); ok {
		x.ref.Get()
		if shardedregistry.Remembers(x.ref) {
			return 1
		}
		return 0
	}
	return r.Len()
}}

// refLinked is linked of what a Ref refers to.
var refLinked = call{Name: "linked", Do: func(r registry) any {
	if x, ok := r.(*through); ok {
		r = x.Registry
	}
	return linked.Do(r)
}}

// What is read through a Ref is what the registry reads, whether or not the Ref has seen
// the key before, and whatever others do beside it.
func TestRefProtocols(t *testing.T) {
	type row struct {
		name    string
		first   []call
		threads threads
		cfg     mc.Config
	}
	rGet, rLookup := byRef(get), byRef(lookup)
	seen := []call{put(7), rGet}
	deleted := []call{put(7), rGet, remove}
	for _, tt := range []row{
		{"readers of what they have not seen", with7, threads{{remove, create(5)}, {rGet, rLookup}}, mc.Config{}},
		{"readers of what they have seen", seen, threads{{remove, create(5)}, {rGet, rLookup}}, mc.Config{}},
		{"peeks", seen, threads{{remove, create(5)}, {byRef(peek), rGet}}, mc.Config{}},
		{"two readers", seen, threads{{remove, create(5)}, {rGet}, {rLookup}}, mc.Config{}},
		{"two readers of what is new", deleted, threads{{create(5), remove}, {rGet}, {rLookup}}, mc.Config{}},
		{"a reader of three lives", seen, threads{{remove, create(5), remove, create(6)}, {rGet, rGet}}, mc.Config{}},
		{"beside updates", seen, threads{{update(1), rGet}, {update(2), rLookup}}, mc.Config{}},
		{"beside update, delete and create", seen, threads{{update(1), rGet}, {remove}, {create(5)}}, mc.Config{}},
		{"beside Compute and delete", seen, threads{{appends(1), rLookup}, {remove, rGet}}, mc.Config{}},
		{"a later life", deleted, threads{{create(5), remove}, {rGet, rGet}}, mc.Config{}},
		{"two forget", seen, threads{{remove}, {rGet, rGet}, {rGet}}, mc.Config{}},
		{"beside two that delete", seen, threads{{remove, rGet}, {remove}, {create(5)}}, mc.Config{}},
		{"a deleter behind a creator", seen, threads{{remove, rGet}, {create(5), remove}}, mc.Config{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prepared := func(r registry) registry {
				for _, c := range tt.first {
					c.Do(r)
				}
				return r
			}
			mc.Linearizable(t, tt.cfg, mc.Program[registry]{
				New: func() registry {
					r := oneShard()
					return prepared(&through{r, r.Ref("a")})
				},
				Model:   func() registry { return prepared(newModel()) },
				Threads: tt.threads,
				After: []call{rLookup, lookup, size, refLinked, remembers, remove, rGet, remembers,
					create(9), rGet, remembers, refLinked},
			})
		})
	}
}

// A Ref that remembers a cell dates what it finds, like everybody.
func TestRefSnapshotProtocols(t *testing.T) {
	rGet, rLookup := byRef(get), byRef(lookup)
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"seen", with7, threads{{put(1)}, {rGet, other(put(2))}, {snapshot}}},
		{"looked up", with7, threads{{put(1)}, {rLookup, other(put(2))}, {snapshot}}},
		{"seen deleted", with7, threads{{remove}, {rGet, other(put(2))}, {snapshot}}},
		{"re-created", with7, threads{{remove, create(5)}, {rGet}, {snapshot}}},
		{"changed", with7, threads{{put(1), rGet}, {put(2)}, {snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			snapshotProtocol(t, mc.Config{}, func() registry {
				r := fresh()
				ref := r.Ref("a")
				ref.Get()
				return &joined{Registry: r, taker: shardedregistry.Join(r), ref: ref}
			}, tt.first, tt.threads, finish, traces)
		})
	}
}
