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
	return call{Name: fmt.Sprintf("DeleteMatching(<%d)", limit), Do: func(r registry) any {
		return r.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool { return e.Value < limit })
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

func TestDeleteMatchingProtocols(t *testing.T) {
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
func TestDeleteMatchingKeysProtocol(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "DeleteMatching(<10) ∥ Put(a, 50) ∥ Put(b, 50)", Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 7)
		r.Put("b", 7)
		deleted, puts := 0, [2]shardedregistry.Version{}
		m.Go(func() {
			deleted = r.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool { return e.Value < 10 })
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
				m.Failf("DeleteMatching = %d, and %d keys were gone", deleted, gone)
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

// byRef is a call through the Ref. The others use the registry itself, which
// forgets no cell.
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

func (r onRef) Create(_ string, v int) (shardedregistry.Version, error) { return r.ref.Create(v) }
func (r onRef) Get(string) (int, bool)                                  { return r.ref.Get() }
func (r onRef) Peek(string) *int                                        { return r.ref.Peek() }
func (r onRef) Lookup(string) (shardedregistry.Entry[string, int], bool) {
	return r.ref.Lookup()
}
func (r onRef) Put(_ string, v int) (shardedregistry.Version, error)     { return r.ref.Put(v) }
func (r onRef) Delete(string) (shardedregistry.Entry[string, int], bool) { return r.ref.Delete() }
func (r onRef) DeleteIf(_ string, version shardedregistry.Version) error {
	return r.ref.DeleteIf(version)
}

func (r onRef) Update(_ string, fn func(int) (int, error)) (shardedregistry.Entry[string, int], error) {
	return r.ref.Update(fn)
}

func (r onRef) UpdateIf(_ string, version shardedregistry.Version, v int) (shardedregistry.Version, error) {
	return r.ref.UpdateIf(version, v)
}

func (r onRef) Upsert(_ string, fn func(int, bool) (int, error)) (shardedregistry.Entry[string, int], error) {
	return r.ref.Upsert(fn)
}

func (r onRef) Compute(_ string, fn func(int, bool) (int, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[string, int], bool, error) {
	return r.ref.Compute(fn)
}

func (r onRef) GetOrCreate(_ string, fn func() (int, error)) (int, bool, error) {
	return r.ref.GetOrCreate(fn)
}

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

// What is done through a Ref is what the registry does, whether or not the Ref
// has seen the key before, and whatever others do beside it.
func TestRefProtocols(t *testing.T) {
	type row struct {
		name    string
		first   []call
		threads threads
		cfg     mc.Config
	}
	rGet, rLookup, rRemove := byRef(get), byRef(lookup), byRef(remove)
	seen := []call{put(7), rGet}
	deleted := []call{put(7), rGet, remove}
	for _, tt := range []row{
		{"readers of what they have not seen", with7, threads{{remove, create(5)}, {rGet, rLookup}}, mc.Config{}},
		{"readers of what they have seen", seen, threads{{remove, create(5)}, {rGet, rLookup}}, mc.Config{}},
		{"peeks", seen, threads{{remove, create(5)}, {byRef(peek), rGet}}, mc.Config{}},
		{"two readers", seen, threads{{remove, create(5)}, {rGet}, {rLookup}}, mc.Config{}},
		{"two readers of what is new", deleted, threads{{create(5), remove}, {rGet}, {rLookup}}, mc.Config{}},
		{"a reader of three lives", seen, threads{{remove, create(5), remove, create(6)}, {rGet, rGet}}, mc.Config{}},
		{"update", seen, threads{{byRef(update(1)), rGet}, {update(2), rLookup}}, mc.Config{}},
		{"update, delete and create", seen, threads{{byRef(update(1))}, {remove}, {create(5)}}, mc.Config{}},
		{"put, delete and create", seen, threads{{byRef(put(1))}, {remove}, {create(5)}}, mc.Config{}},
		{"upsert and delete", seen, threads{{byRef(upsert(1))}, {rRemove}}, mc.Config{}},
		{"two upserts and delete", seen, threads{{byRef(upsert(1))}, {byRef(upsert(2))}, {rRemove}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"updateIf and DeleteIf", seen, threads{{byRef(updateIf(1, 5)), rGet}, {byRef(removeIf(1)), byRef(create(6))}}, mc.Config{}},
		{"updateIf of a later life", deleted, threads{{create(5), remove}, {byRef(updateIf(3, 6))}}, mc.Config{}},
		{"updateIf while a reader forgets", seen, threads{{byRef(updateIf(1, 5))}, {remove}, {rGet}}, mc.Config{}},
		{"two delete", seen, threads{{rRemove, rGet}, {rRemove}, {create(5)}}, mc.Config{}},
		{"create and get or create", deleted, threads{{byRef(create(1)), rGet}, {byRef(getOrCreate(2))}}, mc.Config{}},
		{"a deleter behind a creator", seen, threads{{rRemove}, {byRef(create(5)), rRemove}}, mc.Config{}},
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
		{"re-created", with7, threads{{byRef(remove), byRef(create(5))}, {snapshot}}},
		{"changed", with7, threads{{byRef(put(1)), rGet}, {byRef(put(2))}, {snapshot}}},
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
