//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
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

// dictionary is the report's: see naive in defect_report_test.go. Each access is safe.
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

// registry is what both the implementation and the model can do.
type registry = model.RegistryOps

// newModel returns the model of a registry of one shard.
func newModel() registry { return model.NewRegistry(model.RegistryConfig{Shards: 1}) }

// call is one operation of a thread, on the key a.
type call = mc.Call[registry]

// results makes one value of what a method returns.
func results(all ...any) any { return all }

var (
	get    = call{Name: "Get", Do: func(r registry) any { return results(r.Get("a")) }}
	lookup = call{Name: "Lookup", Do: func(r registry) any { return results(r.Lookup("a")) }}
	// peek is a Get too.
	peek = call{Name: "Peek", Do: func(r registry) any {
		if r, ok := r.(interface{ Peek(string) *int }); ok {
			if p := r.Peek("a"); p != nil {
				return results(*p, true)
			}
			return results(0, false)
		}
		return results(r.Get("a"))
	}}
	remove = call{Name: "Delete", Do: func(r registry) any { return results(r.Delete("a")) }}
	size   = call{Name: "Len", Do: func(r registry) any { return r.Len() }} // exact only when quiet

	// entries is a Lookup too: there is one key.
	entries = call{Name: "Entries", Do: func(r registry) any {
		for e := range r.Entries() {
			return results(e, true)
		}
		return results(shardedregistry.Entry[string, int]{}, false)
	}}

	// linked counts the cells in the table, none of which may be left behind, and nor may an
	// intent in one of them.
	linked = call{Name: "linked", Do: func(r registry) any {
		if r, ok := r.(*shardedregistry.Registry[string, int]); ok {
			if n := shardedregistry.Intents(r); n > 0 {
				return fmt.Sprint(n, " intents")
			}
			return shardedregistry.Linked(r)
		}
		return r.Len()
	}}
)

func create(v int) call {
	return call{Name: fmt.Sprintf("Create(%d)", v), Do: func(r registry) any { return results(r.Create("a", v)) }}
}

func put(v int) call {
	return call{Name: fmt.Sprintf("Put(%d)", v), Do: func(r registry) any { return results(r.Put("a", v)) }}
}

// update appends a digit to the value, so that the value tells what was done.
func update(digit int) call {
	return call{Name: fmt.Sprintf("Update(%d)", digit), Do: func(r registry) any {
		return results(r.Update("a", func(v int) (int, error) { return 10*v + digit, nil }))
	}}
}

// appends is update of a key present or not.
func appends(digit int) call {
	return call{Name: fmt.Sprintf("Compute(+%d)", digit), Do: func(r registry) any {
		return results(createOrUpdate(r, "a", func(v int, _ bool) (int, error) { return 10*v + digit, nil }))
	}}
}

func updateIf(version shardedregistry.Version, v int) call {
	return call{Name: fmt.Sprintf("UpdateIf(%d, %d)", version, v), Do: func(r registry) any {
		return results(r.UpdateIf("a", version, v))
	}}
}

func removeIf(version shardedregistry.Version) call {
	return call{Name: fmt.Sprintf("DeleteIf(%d)", version), Do: func(r registry) any {
		return fmt.Sprint(r.DeleteIf("a", version))
	}}
}

// The zero value makes its tables once, whoever comes first.
func TestFirstUseProtocols(t *testing.T) {
	for name, threads := range map[string]threads{
		"creators":                {{create(1)}, {create(2)}},
		"readers":                 {{create(1), remove}, {get, entries}},
		"peeks":                   {{create(1), remove}, {peek, peek}},
		"deleter":                 {{put(1)}, {remove, remove}},
		"deleter of what matches": {{create(1)}, {matching(10)}},
	} {
		t.Run(name, func(t *testing.T) {
			protocol(t, func() *shardedregistry.Registry[string, int] {
				return new(shardedregistry.Registry[string, int])
			}, empty, threads)
		})
	}
}

// What needs no tables may come while they are made.
func TestFirstLookProtocols(t *testing.T) {
	// Misused returns 0 if do panics as it does of a registry that has begun.
	misused := func(says string, do func()) (found int) {
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, says) {
				found = -1
			}
		}()
		do()
		return -1
	}
	for _, tt := range []struct {
		name string
		look func(*names) int // 0 or 1
	}{
		{"Len", (*names).Len},
		{"Snapshot", func(r *names) int { return r.Snapshot().Len() }},
		{"Keys", func(r *names) int { return len(slices.Collect(r.Keys())) }},
		{"Clear", (*names).Clear},
		{"DeleteFunc", func(r *names) int { return r.DeleteFunc(func(string, int) bool { return true }) }},
		{"ByIndex", func(r *names) int {
			return misused("not in Config", func() { r.ByIndex("none", "value") })
		}},
		{"WatchFrom", func(r *names) int {
			return misused("without Config.History", func() { r.WatchFrom(context.Background(), 0) })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "Create ∥ " + tt.name}, func(m *mc.M) {
				var r names
				m.Go(func() { r.Create("a", 7) })
				m.Go(func() {
					if n := tt.look(&r); n != 0 && n != 1 {
						m.Failf("%s has found %d", tt.name, n)
					}
				})
			})
		})
	}
}

// compute appends a digit to a value below 10, deletes one of up to 80, leaves a
// larger one, and creates the key if it is absent.
func compute(digit int) call {
	return call{Name: fmt.Sprintf("Compute(%d)", digit), Do: func(r registry) any {
		return results(r.Compute("a", func(v int, exists bool) (int, shardedregistry.ComputeOp, error) {
			switch {
			case v < 10 || !exists:
				return 10*v + digit, shardedregistry.UpdateOp, nil
			case v <= 80:
				return 0, shardedregistry.DeleteOp, nil
			}
			return 0, shardedregistry.CancelOp, nil
		}))
	}}
}

// computeRemove deletes the key by Compute if its value is below limit.
func computeRemove(limit int) call {
	return call{Name: fmt.Sprintf("Compute(delete <%d)", limit), Do: func(r registry) any {
		return results(r.Compute("a", func(v int, exists bool) (int, shardedregistry.ComputeOp, error) {
			if exists && v < limit {
				return 0, shardedregistry.DeleteOp, nil
			}
			return 0, shardedregistry.CancelOp, nil
		}))
	}}
}

func TestComputeProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"delete and Put", with7, threads{{computeRemove(10)}, {put(50)}, {lookup}}},
		{"delete and Put of what is deleted", with7, threads{{computeRemove(10)}, {put(5), put(6)}}},
		{"delete, delete and create", with7, threads{{computeRemove(10)}, {remove, create(5)}}},
		{"delete while others delete and create", with7, threads{{computeRemove(10)}, {remove}, {create(5)}}},
		{"two delete", with7, threads{{computeRemove(10)}, {computeRemove(10)}, {create(5)}}},
		{"delete and create", empty, threads{{computeRemove(10)}, {create(5), update(1)}}},
		{"two create", empty, threads{{compute(1), compute(2)}, {compute(3)}}},
		{"update and delete", with7, threads{{compute(1), compute(2)}, {compute(3), lookup}}},
		{"update, UpdateIf and DeleteIf", with7, threads{{compute(1)}, {updateIf(1, 5)}, {removeIf(2)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// A function that fails, panics, exits, or asks for what there is not, leaves nothing
// behind, and its answer is not taken.
func TestComputeLeavesProtocol(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Compute that fails, panics or exits ∥ Put, Delete"}, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 1)
		m.Go(func() {
			defer func() { recover() }()
			r.Compute("a", func(int, bool) (int, shardedregistry.ComputeOp, error) {
				return 99, shardedregistry.DeleteOp, m.Fault(mc.Error, mc.Panic, mc.Goexit)
			})
		})
		m.Go(func() { r.Put("a", 2); r.Put("a", 3) })
		m.Final(func() {
			e, ok := r.Lookup("a")
			if ok && e.Value != 3 || r.Len() != shardedregistry.Linked(r) || ok != (r.Len() == 1) {
				m.Failf("left %v, %v; Len = %d, %d linked", e, ok, r.Len(), shardedregistry.Linked(r))
			}
		})
	})
}

// A deletion by Compute while a snapshot is being taken is before or after its cut.
func TestComputeSnapshotProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"delete", with7, threads{{computeRemove(10)}, {snapshot}}},
		{"create and delete", empty, threads{{compute(1), compute(2), computeRemove(80)}, {snapshot}}},
		{"deleted by who knew of none", both7, threads{{computeRemove(10)}, {other(put(2)), get}, {snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
			snapshotProtocol(t, cfg, func() registry { return fresh() }, tt.first, tt.threads, snapshot, traces)
		})
	}
	first := []call{other(put(7))}
	fresh := twoKeys(first)
	t.Run("deletes what was created since", func(t *testing.T) {
		snapshotProtocol(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}, func() registry { return &joined{Registry: fresh()} }, first,
			threads{{computeRemove(10)}, {begin, create(1), snapshot}, {other(put(2)), get}}, finish, traces)
	})
}

// overtaken explores an Update of the key a by fn, which is given the number of
// its run, while another thread changes a several times, which must not fail. It
// requires an error of Update and a number of runs.
func overtaken(t *testing.T, cfg mc.Config, want error, runs int, fn func(r *shardedregistry.Registry[string, int], run int), others int) {
	t.Helper()
	cfg.Operations = fmt.Sprintf("Update ∥ %d × Put", others)
	mc.Check(t, cfg, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 0)
		var err error
		ran := 0
		m.Go(func() {
			_, err = r.Update("a", func(v int) (int, error) {
				ran++
				fn(r, ran)
				return v, nil
			})
		})
		m.Go(func() {
			for range others {
				if _, err := r.Put("a", 1); err != nil && want == nil { // a selfish one overtakes it as often as the bound is here
					m.Failf("the other's Put = %v", err)
				}
			}
		})
		m.Final(func() {
			if !errors.Is(err, want) || ran < runs {
				m.Failf("Update = %v after %d runs, want %v after at least %d", err, ran, want, runs)
			}
		})
	})
}

// A function that changes its own key in every run is found out, whatever
// others do meanwhile.
func TestSelfishProtocols(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    mc.Config
		change func(r *shardedregistry.Registry[string, int], run int)
	}{
		{"Put", mc.Config{}, func(r *shardedregistry.Registry[string, int], run int) { r.Put("a", run) }},
		{"Update", mc.Config{}, func(r *shardedregistry.Registry[string, int], run int) {
			r.Update("a", func(v int) (int, error) { return v + run, nil })
		}},
		{"Delete and Put", mc.Config{Mode: mc.Bounded, Preemptions: 2}, func(r *shardedregistry.Registry[string, int], run int) {
			r.Delete("a")
			r.Put("a", run)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overtaken(t, tt.cfg, shardedregistry.ErrTooManyRetries, shardedregistry.MaxAttempts, tt.change, 1)
		})
	}
}

// A function that changes its own key in fewer runs in a row is not, and
// neither is one that only others overtake.
func TestInnocentProtocols(t *testing.T) {
	for _, tt := range []struct {
		name   string
		guilty int // the last run in which the function changes its key
		others int
	}{
		{"contention", 0, 3},
		{"guilty once", 1, 2},
		{"guilty in all runs but the last two", shardedregistry.MaxAttempts - 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overtaken(t, mc.Config{}, nil, 1+tt.guilty, func(r *shardedregistry.Registry[string, int], run int) {
				if run <= tt.guilty {
					r.Put("a", run)
				}
			}, tt.others)
		})
	}
}

// replacing is what has Clear and Replace: a registry, also one of which a snapshot is being
// taken, or the model.
func replacing(r registry) model.ReplaceOps {
	if j, ok := r.(*joined); ok {
		return j.Registry
	}
	return r.(model.ReplaceOps)
}

var clears = call{Name: "Clear", Do: func(r registry) any { return replacing(r).Clear() }}

// replaces makes the registry contain keys, of one letter each, all with one value.
func replaces(keys string, v int) call {
	return call{Name: fmt.Sprintf("Replace(%s, %d)", keys, v), Do: func(r registry) any {
		return results(replacing(r).Replace(pairs(keys, v), nil))
	}}
}

// replacesLess is replaces, and leaves a value that is less as it is.
func replacesLess(keys string, v int) call {
	return call{Name: fmt.Sprintf("Replace(%s, %d) unless less", keys, v), Do: func(r registry) any {
		return results(replacing(r).Replace(pairs(keys, v), func(a, b int) bool { return a < b }))
	}}
}

func pairs(keys string, v int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, k := range keys {
			if !yield(string(k), v) {
				return
			}
		}
	}
}

// What Clear and Replace do to one key is one change of it.
func TestReplaceProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"Clear and update", with7, threads{{clears}, {update(1)}, {lookup}}},
		{"Clear, delete and create", with7, threads{{clears}, {remove, create(5)}}},
		{"Clear and create", empty, threads{{clears}, {create(5), update(1)}}},
		{"two clear", with7, threads{{clears}, {clears}, {create(5)}}},
		{"Replace and update", with7, threads{{replaces("a", 3)}, {update(1)}, {lookup}}},
		{"Replace, delete and create", with7, threads{{replaces("a", 3)}, {remove, create(5)}}},
		{"Replace and create", without, threads{{replaces("a", 3), lookup}, {create(5), update(1)}}},
		{"Replace by nothing", with7, threads{{replaces("", 3)}, {put(5), remove}}},
		{"two replace", with7, threads{{replaces("a", 3)}, {replaces("a", 4)}, {remove}}},
		{"Replace and Clear", with7, threads{{replaces("a", 3)}, {clears}, {lookup}}},
		{"equal", with7, threads{{replacesLess("a", 8)}, {put(9)}, {lookup}}},
		{"equal and deleted", with7, threads{{replacesLess("a", 8)}, {remove, create(9)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// A Clear beside a transaction deletes each key before or after it, and nothing is left behind.
func TestClearBesideTransactions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first []call
		tx    call
	}{
		{"of two keys", a2b2, moves("a", "b")},
		{"that creates", a2, moves("a", "b")},
		{"that creates both", nil, inserts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = tt.tx.Name + " ∥ Clear"
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoShards()
				for _, c := range tt.first {
					c.Do(r)
				}
				before := r.Len()
				doing(m, r, []call{tt.tx})
				deleted := 0
				m.Go(func() { deleted = r.Clear() })
				m.Final(func() {
					if n := shardedregistry.Linked(r); n != r.Len() || shardedregistry.Intents(r) != 0 || deleted > before+2 {
						m.Failf("%d keys, %d linked, %d deleted of %d", r.Len(), n, deleted, before)
					}
					if r.Clear(); r.Len() != 0 || shardedregistry.Linked(r) != 0 {
						m.Failf("%d keys, %d linked after Clear", r.Len(), shardedregistry.Linked(r))
					}
				})
			})
		})
	}
}

// Last of a snapshot is at least every version whose call had returned, also while its cell
// leaves the table and another takes its place.
func TestSnapshotLastProtocol(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  []call
		others threads
	}{
		{"Put, Snapshot ∥ Delete", with7, threads{{remove}}},
		{"Put, Snapshot ∥ Delete, Create", with7, threads{{remove, create(5)}}},
		{"Put, Snapshot ∥ Delete ∥ Create", with7, threads{{remove}, {create(5)}}},
		{"Put, Snapshot ∥ Delete, Create, Delete", with7, threads{{remove, create(5), remove}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: tt.name, Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
				r := oneShard()
				for _, c := range tt.first {
					c.Do(r)
				}
				m.Go(func() {
					seen, _ := r.Put("a", 8)
					if last := r.Snapshot().Last(); last < seen {
						m.Failf("Last = %d after version %d", last, seen)
					}
				})
				for _, calls := range tt.others {
					m.Go(func() {
						for _, c := range calls {
							c.Do(r)
						}
					})
				}
				m.Final(func() {
					e, _ := r.Delete("a")
					last := r.Snapshot().Last()
					again, err := shardedregistry.Restore(shardedregistry.Config[string, int]{Shards: 1}, last, slices.Values([]shardedregistry.Entry[string, int]{}))
					if err != nil {
						m.Failf("%v", err)
					}
					if v, _ := again.Put("a", 1); v <= e.Version+1 && e.Version > 0 {
						m.Failf("version %d is given again, after %d", v, e.Version)
					}
				})
			})
		})
	}
}

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
				return &joined{Registry: r, taking: shardedregistry.Join(r), ref: ref}
			}, tt.first, tt.threads, finish, traces)
		})
	}
}
