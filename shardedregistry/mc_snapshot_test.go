//go:build modelcheck

package shardedregistry_test

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// twoShards returns an empty registry that keeps the keys a and b in shards of
// their own, so that the versions of one do not depend on the other.
func twoShards() *shardedregistry.Registry[string, int] {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	shardedregistry.SetHash(r, func(k string) uint64 { return uint64(k[0]-'a') << 63 })
	return r
}

// twoShardsModel returns the model of a registry of two shards.
func twoShardsModel() registry { return model.NewRegistry(model.RegistryConfig{Shards: 2}) }

// collector is what can take snapshots.
type collector interface {
	Snapshot() *shardedregistry.Snapshot[string, int]
}

// joined is a registry of which a snapshot is being taken.
type joined struct {
	*shardedregistry.Registry[string, int]
	taking shardedregistry.Taking[string, int]
	ref    shardedregistry.Ref[string, int] // of the key a, or none
}

// Snapshot goes on up to where the snapshot is known.
func (j *joined) Snapshot() *shardedregistry.Snapshot[string, int] {
	for !j.taking.Collect() {
	}
	return j.taking.Found()
}

// snapshot is what a snapshot contains, by key, or that its parts disagree.
var snapshot = call{Name: "Snapshot", Do: func(r registry) any {
	if r, ok := r.(collector); ok {
		s := r.Snapshot()
		for e := range s.Entries() {
			if found, ok := s.Lookup(e.Key); !ok || found != e {
				return fmt.Sprintf("Lookup finds %v, %v, where Entries yields %v", found, ok, e)
			}
		}
		return sorted(s.Entries(), s.Len())
	}
	return sorted(r.Entries(), r.Len())
}}

func sorted(entries iter.Seq[shardedregistry.Entry[string, int]], n int) any {
	all := slices.Collect(entries)
	slices.SortFunc(all, func(x, y shardedregistry.Entry[string, int]) int { return cmp.Compare(x.Key, y.Key) })
	return results(all, n)
}

// other is a call on the key b instead of a.
func other(c call) call {
	return call{Name: c.Name + " of b", Do: func(r registry) any { return c.Do(onB{r}) }}
}

// onB is a registry whose key a is b.
type onB struct{ registry }

func (r onB) Create(_ string, v int) (shardedregistry.Version, error) {
	return r.registry.Create("b", v)
}
func (r onB) Get(string) (int, bool)                               { return r.registry.Get("b") }
func (r onB) Put(_ string, v int) (shardedregistry.Version, error) { return r.registry.Put("b", v) }

func (r onB) Lookup(string) (shardedregistry.Entry[string, int], bool) { return r.registry.Lookup("b") }
func (r onB) Delete(string) (shardedregistry.Entry[string, int], bool) { return r.registry.Delete("b") }

func (r onB) Update(_ string, fn func(int) (int, error)) (shardedregistry.Entry[string, int], error) {
	return r.registry.Update("b", fn)
}

var both7 = []call{put(7), other(put(7))}

// begin makes a snapshot join.
var begin = call{Name: "Join", Do: func(r registry) any {
	if j, ok := r.(*joined); ok {
		j.taking = shardedregistry.Join(j.Registry)
	}
	return nil
}}

// finish ends a snapshot that has joined.
var finish = call{Name: "Leave", Do: func(r registry) any {
	if r, ok := r.(*joined); ok {
		r.taking.Leave()
	}
	return nil
}}

// traces is what is in the tables when nobody is at work: the cells, and records
// that were kept for a snapshot.
var traces = call{Name: "traces", Do: func(r registry) any {
	if j, ok := r.(*joined); ok {
		r = j.Registry
	}
	if r, ok := r.(*shardedregistry.Registry[string, int]); ok {
		return results(linked.Do(r), shardedregistry.Kept(r))
	}
	return results(r.Len(), 0)
}}

// snapshotProtocol explores what threads do after the calls of first. In every
// execution some sequential order explains the results, and nothing is left of
// the snapshots.
func snapshotProtocol(t *testing.T, cfg mc.Config, fresh func() registry, first []call, threads threads, after ...call) {
	t.Helper()
	mc.Linearizable(t, cfg, mc.Program[registry]{
		New: fresh,
		Model: func() registry {
			r := twoShardsModel()
			for _, c := range first {
				c.Do(r)
			}
			return r
		},
		Threads: threads,
		After:   after,
	})
}

// twoKeys returns a registry with two keys in shards of their own after the
// calls of first.
func twoKeys(first []call) func() *shardedregistry.Registry[string, int] {
	return func() *shardedregistry.Registry[string, int] {
		r := twoShards()
		for _, c := range first {
			c.Do(r)
		}
		return r
	}
}

// Checks I8, I9, I10.

// A snapshot from its first step to its last, beside one goroutine.
func TestSnapshotProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"two keys change", both7, threads{{update(1), other(update(1))}, {snapshot}}},
		{"one key changes", with7, threads{{update(1), update(2)}, {snapshot}}},
		{"created", empty, threads{{create(1), update(2)}, {snapshot}}},
		{"deleted", with7, threads{{remove}, {snapshot}}},
		{"one after another", with7, threads{{put(1)}, {snapshot, snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			snapshotProtocol(t, mc.Config{}, func() registry { return fresh() }, tt.first, tt.threads, snapshot, traces)
		})
	}
}

// Whole snapshots beside two goroutines, with at most two preemptions.
func TestSnapshotBoundedProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"changed by who knew of none", both7, threads{{put(1)}, {other(put(2)), get}, {snapshot}}},
		{"deleted by who knew of none", both7, threads{{remove}, {other(put(2)), get}, {snapshot}}},
		{"created by who knew of none", empty, threads{{create(1)}, {other(put(2)), get}, {snapshot}}},
		{"deleted alone by who knew of none", with7, threads{{remove}, {other(create(2)), get}, {snapshot}}},
		{"re-created by who knew of none", both7, threads{{remove, create(5)}, {other(put(2)), get}, {snapshot}}},
		{"seen", with7, threads{{put(1)}, {get, other(put(2))}, {snapshot}}},
		{"peeked at", with7, threads{{put(1)}, {peek, other(put(2))}, {snapshot}}},
		{"two snapshots", with7, threads{{put(1)}, {snapshot}, {snapshot}}},
		{"two snapshots of what is re-created", with7, threads{{remove, create(5)}, {snapshot}, {snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
			snapshotProtocol(t, cfg, func() registry { return fresh() }, tt.first, tt.threads, snapshot, traces)
		})
	}
}

// Who deletes without knowing of a snapshot deletes nothing that was created
// since that has joined: it would be missed.
func TestSnapshotAndOldDeletion(t *testing.T) {
	first := []call{other(put(7))}
	fresh := twoKeys(first)
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
	snapshotProtocol(t, cfg, func() registry { return &joined{Registry: fresh()} }, first,
		threads{{remove}, {begin, create(1), snapshot}, {other(put(2)), get}}, finish, traces)
}

// A snapshot that has joined and looked once, beside one or two goroutines.
func TestSnapshotCutProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"seen", with7, threads{{put(1)}, {get, other(put(2))}, {snapshot}}},
		{"seen deleted", with7, threads{{remove}, {get, other(put(2))}, {snapshot}}},
		{"seen created", empty, threads{{create(1)}, {get, other(put(2))}, {snapshot}}},
		{"two update", with7, threads{{put(1)}, {put(2)}, {snapshot}}},
		{"update and delete", with7, threads{{put(1)}, {remove}, {snapshot}}},
		{"two create", empty, threads{{create(1)}, {create(2)}, {snapshot}}},
		{"re-created", with7, threads{{remove, create(5)}, {snapshot}}},
		{"deleted and created", with7, threads{{remove, other(create(5))}, {snapshot}}},
		{"created and deleted", with7, threads{{other(create(5)), remove}, {snapshot}}},
		{"there at the cut alone", empty, threads{{create(1), other(put(1)), other(put(2)), remove}, {snapshot}}},
		{"there at the cut and again", empty, threads{{create(1), other(put(1)), other(put(2)), remove, create(3)}, {snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			snapshotProtocol(t, mc.Config{}, func() registry {
				r := fresh()
				return &joined{Registry: r, taking: shardedregistry.Join(r)}
			}, tt.first, tt.threads, finish, traces)
		})
	}
}

// A snapshot that is known and leaves, beside one or two goroutines: nobody
// forgets to forget, or forgets what is left.
func TestSnapshotLeaveProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		known   []call // what happens between the snapshot and the threads
		threads threads
	}{
		{"update and leave", mc.Config{}, with7, nil, threads{{put(1)}, {put(2)}, {finish}}},
		{"delete what is dated, and leave", mc.Config{Mode: mc.Bounded, Preemptions: 2}, with7, []call{put(8)}, threads{{remove}, {create(5)}, {finish}}},
		{"delete and leave", mc.Config{}, with7, nil, threads{{remove}, {create(5)}, {finish}}},
		{"create and leave", mc.Config{}, empty, nil, threads{{put(1)}, {remove}, {finish}}},
		{"re-create and leave", mc.Config{}, with7, nil, threads{{remove, create(5)}, {finish}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			snapshotProtocol(t, tt.cfg, func() registry {
				r := fresh()
				j := &joined{Registry: r, taking: shardedregistry.Join(r)}
				j.Snapshot()
				for _, c := range tt.known {
					c.Do(j)
				}
				return j
			}, slices.Concat(tt.first, tt.known), tt.threads, lookup, traces)
		})
	}
}

// Everything has its date before it is replaced.
func TestDatesProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"update", with7, threads{{put(1)}, {put(2)}}},
		{"delete and create", with7, threads{{remove}, {create(5)}}},
		{"create, delete and create", empty, threads{{create(1), remove}, {create(5)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mc.Config{Operations: mc.Listed(tt.threads, func(c call) string { return c.Name }) + " ∥ look"}
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				taking := shardedregistry.Join(r)
				for _, calls := range tt.threads {
					m.Go(func() {
						for _, c := range calls {
							c.Do(r)
						}
					})
				}
				m.Go(func() {
					if wrong := shardedregistry.Undated(r); wrong != "" {
						m.Failf("%s", wrong)
					}
				})
				m.Final(func() {
					if taking.Leave(); shardedregistry.Kept(r) != 0 {
						m.Failf("%d old records are kept", shardedregistry.Kept(r))
					}
				})
			})
		})
	}
}

// A loop is no snapshot.
func TestLoopIsNotASnapshot(t *testing.T) {
	loop := call{Name: "Entries", Do: func(r registry) any { return sorted(r.Entries(), 0) }}
	mc.NotLinearizable(t, mc.Config{}, mc.Program[registry]{
		New: func() registry { return twoKeys(both7)() },
		Model: func() registry {
			r := twoShardsModel()
			for _, c := range both7 {
				c.Do(r)
			}
			return r
		},
		Threads: threads{{put(1), other(put(1))}, {loop}},
	})
}

// A snapshot finds what a key held, whatever else records have beside their date.
func TestSnapshotOfAllShapes(t *testing.T) {
	digit := indexes{"digit": digits}
	for _, shape := range []struct {
		name   string
		config shardedregistry.Config[string, int]
	}{
		{"tags", shardedregistry.Config[string, int]{Indexes: digit}},
		{"links", shardedregistry.Config[string, int]{History: 1024}},
		{"tags and links", shardedregistry.Config[string, int]{Indexes: digit, History: 1024}},
	} {
		for _, tt := range []struct {
			name    string
			first   []call
			threads threads
		}{
			{"changed", with7, threads{{put(1), other(put(2))}, {snapshot}}},
			{"re-created", with7, threads{{remove, create(5)}, {snapshot}}},
		} {
			t.Run(shape.name+", "+tt.name, func(t *testing.T) {
				snapshotProtocol(t, mc.Config{}, func() registry {
					r := indexed(shape.config)
					for _, c := range tt.first {
						c.Do(r)
					}
					return &joined{Registry: r, taking: shardedregistry.Join(r)}
				}, tt.first, tt.threads, finish, traces)
			})
		}
	}
}

// Two who look for keys in a snapshot for the first time find them.
func TestSnapshotLookups(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Lookup(a) ∥ Lookup(b), of a snapshot"}, func(m *mc.M) {
		s := twoKeys(both7)().Snapshot()
		for _, k := range []string{"a", "b"} {
			m.Go(func() {
				if e, ok := s.Lookup(k); !ok || e.Key != k || e.Value != 7 {
					m.Failf("%s is %v, %t", k, e, ok)
				}
			})
		}
	})
}

// A snapshot whose first look finds nothing that is new looks again: a slow deleter may have deleted what it has not met.
func TestSnapshotLooksTwice(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Snapshot ∥ Put of b, the rest of a Delete"}, func(m *mc.M) {
		r := twoKeys(with7)()
		kill := shardedregistry.DraftKill(r, "a")
		m.Go(func() {
			if n := r.Snapshot().Len(); n == 0 {
				m.Failf("the snapshot is empty, which the registry never was")
			}
		})
		m.Go(func() {
			r.Put("b", 1)
			kill()()
		})
	})
}
