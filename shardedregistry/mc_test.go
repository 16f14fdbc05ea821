//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/shardedregistry"
)

type threads = [][]call

// oneShard returns an empty registry of one shard.
func oneShard() *shardedregistry.Registry[string, int] {
	return shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
}

// What comes before a protocol.
var (
	empty   = []call{}
	with7   = []call{put(7)}
	without = []call{put(7), remove}
)

// protocol explores what threads do to one key after the calls of first. In
// every execution some sequential order explains the results with their
// versions, no cell is left behind, and the next version is the next number.
func protocol(t *testing.T, fresh func() *shardedregistry.Registry[string, int], first []call, threads threads) {
	t.Helper()
	prepared := func(r registry) registry {
		for _, c := range first {
			c.Do(r)
		}
		return r
	}
	mc.Linearizable(t, mc.Config{}, mc.Program[registry]{
		New:     func() registry { return prepared(fresh()) },
		Model:   func() registry { return prepared(newModel()) },
		Threads: threads,
		After:   []call{lookup, entries, size, linked, remove, create(9), lookup, linked},
	})
}

// Checks I1, I2, I3, I4, I5, I6.

func TestProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"two create", empty, threads{{create(1), get}, {create(2), lookup}}},
		{"three create", empty, threads{{create(1)}, {create(2)}, {create(3)}}},
		{"create and delete", empty, threads{{create(1)}, {create(2), remove}}},
		{"creators and a deleter", empty, threads{{create(1)}, {create(2)}, {remove}}},
		{"create above the floor", without, threads{{create(1), remove}, {create(2), remove}}},
		{"create and loop", empty, threads{{create(1), remove}, {entries, entries}}},
		{"Put and delete", empty, threads{{put(1)}, {put(2)}, {remove}}},
		{"Compute and delete", empty, threads{{appends(1)}, {appends(2), remove}}},
		{"Compute, create, delete", without, threads{{appends(1)}, {create(2)}, {remove}}},

		{"two update", with7, threads{{update(1), update(2)}, {update(3), update(4)}}},
		{"three update", with7, threads{{update(1)}, {update(2)}, {update(3)}}},
		{"update, delete and create", with7, threads{{update(1)}, {remove, create(5)}}},
		{"update while others delete and create", with7, threads{{update(1)}, {remove}, {create(5)}}},
		{"Put while others delete and create", with7, threads{{put(1)}, {remove}, {create(5)}}},
		{"Compute while others delete", with7, threads{{appends(1)}, {appends(2)}, {remove}}},
		{"Compute, delete, Compute", with7, threads{{appends(1), remove}, {appends(2), remove}}},

		{"UpdateIf of one version", with7, threads{{updateIf(1, 5)}, {updateIf(1, 6)}, {lookup}}},
		{"UpdateIf of two versions", with7, threads{{updateIf(1, 5), updateIf(2, 6)}, {updateIf(1, 7), updateIf(2, 8)}}},
		{"UpdateIf, delete and create", with7, threads{{updateIf(1, 5)}, {remove}, {create(6)}}},
		{"UpdateIf of an equal value", with7, threads{{updateIf(1, 5)}, {remove, create(7)}}},
		{"DeleteIf of one version", with7, threads{{removeIf(1)}, {removeIf(1)}, {put(5)}}},
		{"DeleteIf and create", with7, threads{{removeIf(1), create(5)}, {update(1), removeIf(2)}}},
		{"DeleteIf of a later life", with7, threads{{remove, create(5)}, {removeIf(1), removeIf(3)}}},

		{"two delete", with7, threads{{remove, get}, {remove}, {create(5)}}},
		{"a deleter behind a creator", with7, threads{{remove}, {create(5), remove}}},
		{"readers of a deletion", with7, threads{{remove, create(5)}, {get, lookup}}},
		{"peeks at a deletion", with7, threads{{remove, create(5)}, {peek, get}}},
		{"loops over a deletion", with7, threads{{remove, create(5)}, {entries}, {get}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// Keys of a shard share its floor. Each key's versions increase all the same,
// and all that anybody sees of a key is what somebody made.
func TestFloorIsShared(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Delete(a), Create(a) ∥ Delete(b), Create(b)"}, func(m *mc.M) {
		r := oneShard()
		for range 3 {
			r.Put("b", 0)
		}
		r.Put("a", 0)
		made := [2][]shardedregistry.Version{{1}, {3}}
		for i, k := range []string{"a", "b"} {
			m.Go(func() {
				e, _ := r.Delete(k)
				v, err := r.Create(k, 1)
				if err != nil {
					m.Failf("Create(%s) = %v", k, err)
				}
				made[i] = append(made[i], e.Version+1, v)
			})
		}
		m.Final(func() {
			for i, k := range []string{"a", "b"} {
				e, _ := r.Lookup(k)
				v, err := r.Put(k, 2)
				if v != e.Version+1 || err != nil {
					m.Failf("Put(%s) makes version %d of %d, %v", k, v, e.Version, err)
				}
				if made := made[i]; made[1] <= made[0] || made[2] <= made[1] || e.Version != made[2] {
					m.Failf("the versions of %s are %v, and then %d", k, made, e.Version)
				}
			}
			if r.Len() != 2 || shardedregistry.Linked(r) != 2 {
				m.Failf("Len() = %d, %d linked, want 2", r.Len(), shardedregistry.Linked(r))
			}
		})
	})
}

// Len counts the key that stays, and beside it at most the one that comes and
// goes and the operations in progress.
func TestLenIsNeverTooSmall(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Delete ∥ Create ∥ Delete ∥ Len"}, func(m *mc.M) {
		r := oneShard()
		r.Put("stays", 0)
		r.Put("a", 0)
		m.Go(func() { r.Delete("a") })
		m.Go(func() { r.Create("a", 1) })
		m.Go(func() { r.Delete("a") })
		m.Go(func() {
			if n := r.Len(); n < 1 || n > 1+1+3 {
				m.Failf("Len() = %d", n)
			}
		})
	})
}

// dictionary is the report's: see naive in report_test.go. Each access is safe.
type dictionary struct{ dict *table.Table[string, int] }

func newDictionary() *dictionary {
	keys := table.NewKeys[string]()
	return &dictionary{table.New[string, int](keys.Hasher("dictionary"), 0)}
}

func (d *dictionary) Create(name string, v int) (shardedregistry.Version, error) {
	if d.dict.Load(name) != nil {
		return 0, shardedregistry.ErrExists
	}
	d.dict.Swap(name, &v)
	return 0, nil
}

func (d *dictionary) Update(name string, fn func(int) (int, error)) (none shardedregistry.Entry[string, int], err error) {
	v, err := fn(*d.dict.Load(name))
	d.dict.Swap(name, &v)
	return none, err
}

func (d *dictionary) Get(name string) (int, bool) {
	v := d.dict.Load(name)
	if v == nil {
		return 0, false
	}
	return *v, true
}

// service is what the report's service does with either.
type service interface {
	Create(string, int) (shardedregistry.Version, error)
	Update(string, func(int) (int, error)) (shardedregistry.Entry[string, int], error)
	Get(string) (int, bool)
}

// oneCreates is what the report wants: one of two creates wins, and is kept.
func oneCreates[S service](fresh func() S) func(*mc.M) {
	return func(m *mc.M) {
		s := fresh()
		var errs [2]error
		for i := range errs {
			m.Go(func() { _, errs[i] = s.Create("backup", i) })
		}
		m.Final(func() {
			if v, _ := s.Get("backup"); errs[v] != nil || errs[1-v] == nil {
				m.Failf("a create is lost")
			}
		})
	}
}

// bothUpdate is what the report wants of two updates.
func bothUpdate[S service](fresh func() S) func(*mc.M) {
	return func(m *mc.M) {
		s := fresh()
		s.Create("backup", 0)
		for range 2 {
			m.Go(func() { s.Update("backup", func(v int) (int, error) { return v + 1, nil }) })
		}
		m.Final(func() {
			if v, _ := s.Get("backup"); v != 2 {
				m.Failf("an update is lost")
			}
		})
	}
}

// The windows of the report.
var (
	creates = mc.Config{Operations: "Create ∥ Create"}
	updates = mc.Config{Operations: "Update ∥ Update"}
)

func TestReportDictionaryLosesCreatesAndUpdates(t *testing.T) {
	t.Run("creates", func(t *testing.T) { mc.Refute(t, creates, "a create is lost", oneCreates(newDictionary)) })
	t.Run("updates", func(t *testing.T) { mc.Refute(t, updates, "an update is lost", bothUpdate(newDictionary)) })
}

func TestReportRegistryLosesNone(t *testing.T) {
	t.Run("creates", func(t *testing.T) { mc.Check(t, creates, oneCreates(oneShard)) })
	t.Run("updates", func(t *testing.T) { mc.Check(t, updates, bothUpdate(oneShard)) })
}
