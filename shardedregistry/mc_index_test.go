//go:build modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// digits is the function of the index that the protocols use: 12 is found by 1
// and by 2.
func digits(_ string, v int) []string { return strings.Split(fmt.Sprint(v), "") }

// has reports whether v is found by digit.
func has(v int, digit string) bool { return strings.Contains(fmt.Sprint(v), digit) }

type indexes = map[string]func(string, int) []string

// indexed returns an empty registry as twoShards does, with an index by digits.
func indexed(config shardedregistry.Config[string, int]) *shardedregistry.Registry[string, int] {
	config.Shards = 2
	r := shardedregistry.MustNew(config)
	shardedregistry.SetHash(r, func(k string) uint64 { return uint64(k[0]-'a') << 63 })
	return r
}

var (
	plainDigits  = shardedregistry.Config[string, int]{Indexes: indexes{"digit": digits}}
	uniqueDigits = shardedregistry.Config[string, int]{UniqueIndexes: indexes{"digit": digits}}
)

func byDigits() registry       { return indexed(plainDigits) }
func byUniqueDigits() registry { return indexed(uniqueDigits) }

// finder is a registry that can be asked by index.
type finder interface {
	ByIndex(index, value string) iter.Seq[shardedregistry.Entry[string, int]]
	LookupBy(index, value string) (shardedregistry.Entry[string, int], bool)
	IndexValues(index string) iter.Seq[string]
}

// by is whether, and with what, ByIndex yields the key a. Of several keys a loop
// sees several moments.
func by(digit string) call {
	return call{Name: fmt.Sprintf("ByIndex(%s)", digit), Do: func(r registry) any {
		found := results(shardedregistry.Entry[string, int]{}, false)
		times := 0
		for e := range r.(finder).ByIndex("digit", digit) {
			if e.Key == "a" {
				found = results(e, true)
				times++
			}
		}
		if times > 1 {
			return fmt.Sprintf("yielded %d times", times)
		}
		return found
	}}
}

// unique is LookupBy.
func unique(digit string) call {
	return call{Name: fmt.Sprintf("LookupBy(%s)", digit), Do: func(r registry) any {
		return results(r.(finder).LookupBy("digit", digit))
	}}
}

// digit is whether IndexValues yields a value. What it says of one that moves
// between keys is of several moments.
func digit(want string) call {
	return call{Name: fmt.Sprintf("IndexValues: %s", want), Do: func(r registry) any {
		for v := range r.(finder).IndexValues("digit") {
			if v == want {
				return true
			}
		}
		return false
	}}
}

// pins is what the index and the tables keep when nobody is at work.
var pins = call{Name: "pins", Do: func(r registry) any {
	if j, ok := r.(*joined); ok {
		r = j.Registry
	}
	if r, ok := r.(*shardedregistry.Registry[string, int]); ok {
		lists, keys, pins := shardedregistry.Pins(r)
		return results(lists, keys, pins, shardedregistry.Linked(r), shardedregistry.Kept(r))
	}
	seen, pins, n := map[string]bool{}, 0, 0
	for e := range r.Entries() {
		n++
		own := map[string]bool{}
		for _, d := range digits("", e.Value) {
			seen[d], own[d] = true, true
		}
		pins += len(own)
	}
	return results(len(seen), pins, pins, n, 0)
}}

// indexProtocol explores what threads do after the calls of first. In every
// execution some sequential order explains the results, each index agrees with
// what the keys hold, and keeps nothing else.
func indexProtocol(t *testing.T, cfg mc.Config, fresh, model func() registry, first []call, threads threads) {
	t.Helper()
	prepared := func(fresh func() registry) func() registry {
		return func() registry {
			r := fresh()
			for _, c := range first {
				c.Do(r)
			}
			return r
		}
	}
	mc.Linearizable(t, cfg, mc.Program[registry]{
		New: prepared(fresh), Model: prepared(model), Threads: threads,
		After: []call{by("1"), by("2"), digit("1"), digit("2"), lookup, other(lookup), pins},
	})
}

func plainModel() registry  { return model.NewRegistry(plainDigits) }
func uniqueModel() registry { return model.NewRegistry(uniqueDigits) }

// Checks I14, I15, I16.

// With one key, a loop over ByIndex sees one moment.
func TestIndexProtocols(t *testing.T) {
	with1 := []call{put(1)}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"moved and found", mc.Config{}, with1, threads{{put(2)}, {by("1"), by("2")}}},
		{"moved there and back, and found", mc.Config{}, with1, threads{{put(2), put(1)}, {by("1"), by("2")}}},
		{"two move there and back", mc.Config{}, with1, threads{{put(2)}, {put(1)}, {by("1")}}},
		{"two move twice", mc.Config{Mode: mc.Bounded, Preemptions: 2}, with1, threads{{put(2), put(1)}, {put(2), put(1)}, {by("1")}}},
		{"two move to one value", mc.Config{}, with1, threads{{put(2)}, {put(2)}, {by("2")}}},
		{"two move to two values", mc.Config{}, with1, threads{{put(2)}, {put(3)}, {by("1")}}},
		{"a value more", mc.Config{}, with1, threads{{put(12)}, {put(21)}, {by("1")}}},
		{"a value less", mc.Config{}, []call{put(12)}, threads{{put(1)}, {put(2)}, {by("1")}}},
		{"two update", mc.Config{}, with1, threads{{update(2)}, {update(3)}, {by("1")}}},
		{"UpdateIf of one version", mc.Config{}, with1, threads{{updateIf(1, 2)}, {updateIf(1, 3)}, {by("2")}}},
		{"two create", mc.Config{}, empty, threads{{create(1)}, {create(2)}, {by("1")}}},
		{"two create with one value", mc.Config{}, empty, threads{{create(1)}, {create(1)}, {by("1")}}},
		{"deleted and found", mc.Config{}, with1, threads{{remove}, {by("1"), by("1")}}},
		{"deleted and re-created", mc.Config{}, with1, threads{{remove, create(1)}, {by("1")}}},
		{"deleted while another re-creates", mc.Config{}, with1, threads{{remove}, {create(1)}, {by("1")}}},
		{"deleted while another re-creates elsewhere", mc.Config{}, with1, threads{{remove}, {create(2)}, {by("2")}}},
		{"deleted while another moves", mc.Config{}, with1, threads{{remove}, {put(2)}, {by("1")}}},
		{"DeleteIf while another moves", mc.Config{}, with1, threads{{removeIf(1)}, {updateIf(1, 2)}, {by("1")}}},
		{"the last under a value leaves as one comes", mc.Config{}, with1, threads{{put(2)}, {other(put(1))}, {by("1")}}},
		{"the last two leave", mc.Config{}, []call{put(1), other(put(1))}, threads{{put(2)}, {other(remove)}, {by("1")}}},
		{"values while one comes and goes", mc.Config{}, with1, threads{{put(2)}, {digit("2"), digit("1")}}},
	} {
		t.Run(tt.name, func(t *testing.T) { indexProtocol(t, tt.cfg, byDigits, plainModel, tt.first, tt.threads) })
	}
}

// Checks I17.

// A unique value has one key at most, and an error names a key that has the value
// at one moment with all else that the operation says.
func TestUniqueProtocols(t *testing.T) {
	with1 := []call{put(1)}
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"two keys are created", mc.Config{}, empty, threads{{create(1)}, {other(create(1))}, {unique("1")}}},
		{"three are created", mc.Config{}, empty, threads{{create(1)}, {create(2)}, {other(create(1))}}},
		{"two values each", mc.Config{}, empty, threads{{create(12)}, {other(create(21))}}},
		{"freed by Delete", mc.Config{}, with1, threads{{remove}, {other(create(1))}, {unique("1")}}},
		{"freed by Put", mc.Config{}, with1, threads{{put(2)}, {other(put(1))}, {unique("1")}}},
		{"freed and wanted back", mc.Config{}, with1, threads{{put(2), put(1)}, {other(put(1))}}},
		{"handed on and looked up", mc.Config{}, with1, threads{{put(2), other(put(1))}, {unique("1"), unique("1")}}},
		{"swapped", mc.Config{}, []call{put(1), other(put(2))}, threads{{put(2)}, {other(put(1))}, {unique("1")}}},
		{"swapped by way of a third", mc.Config{}, []call{put(1), other(put(2))}, threads{{put(3), put(2)}, {other(put(1))}}},
		{"created where it is freed", mc.Config{}, with1, threads{{put(2), put(1)}, {other(create(1))}}},
		{"created while another creates the key", mc.Config{}, with1, threads{{other(create(1))}, {other(create(2))}, {put(3)}}},
		{"kept", mc.Config{}, with1, threads{{update(1)}, {other(put(1))}, {remove}}},
		{"an update that depends on what it found", mc.Config{}, []call{put(3), other(put(1))}, threads{{update(1)}, {put(4)}, {other(remove)}}},
		{"an UpdateIf that is overtaken", mc.Config{}, []call{put(3), other(put(1))}, threads{{updateIf(1, 1)}, {put(4)}, {other(put(2))}}},
		{"an UpdateIf that has lost before its value is taken", mc.Config{}, []call{put(3)}, threads{{updateIf(1, 1)}, {put(4), other(put(1))}}},
		{"a Create that has lost before its value is taken", mc.Config{}, empty, threads{{create(1)}, {put(4), other(put(1))}}},
		{"a value that is taken only while the key is there", mc.Config{}, empty, threads{{create(1)}, {put(4), other(put(1)), other(put(2)), remove}}},
		{"a Compute of an absent key", mc.Config{}, []call{other(put(1))}, threads{{appends(1)}, {put(4)}, {other(remove)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { indexProtocol(t, tt.cfg, byUniqueDigits, uniqueModel, tt.first, tt.threads) })
	}
}

// A Create that finds its value taken looks at its own key first, and then at the rival again: here the
// rival has the value only while the key is present.
func TestTakenWhileTheKeyIsAbsent(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 1, Operations: "the end of Create(a, 1) ∥ Put(b, 2), Delete(a)"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := indexed(uniqueDigits)
		create := shardedregistry.CreateLate(r, "a", 1)
		r.Put("a", 4)
		r.Put("b", 1)
		m.Go(func() {
			if err := create(); errors.Is(err, shardedregistry.ErrNotUnique) {
				m.Failf("Create = %v", err)
			}
		})
		m.Go(func() {
			r.Put("b", 2)
			r.Delete("a")
		})
	})
}

// LookupBy finds a unique value that transactions hand on from key to key, where each key has lost it
// when LookupBy reads it. The first pass over the keys and the second one find the same keys pinned; only
// the third look at them tells that a key has gained the value meanwhile.
func TestLookupByWhileAValueIsHandedOn(t *testing.T) {
	cfg := mc.Config{Operations: "three transactions that move 1 from b to a, back, and to a ∥ LookupBy(1)"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := indexed(shardedregistry.Config[string, int]{UniqueIndexes: indexes{"one": ones}})
		shardedregistry.Pinned(r, "a", "one", "1") // as of an earlier one that is about to unpin a
		r.Put("a", 2)
		r.Put("b", 1)
		m.Go(func() {
			for _, values := range [][2]int{{1, 2}, {2, 1}, {1, 2}} {
				r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
					return errors.Join(tx.Put("a", values[0]), tx.Put("b", values[1]))
				})
			}
		})
		m.Go(func() {
			if _, ok := r.LookupBy("one", "1"); !ok {
				m.Failf("LookupBy finds nobody")
			}
		})
	})
}

// ones is the function of an index of those that hold 1.
func ones(_ string, v int) []string {
	if v != 1 {
		return nil
	}
	return []string{"1"}
}

// While a snapshot is being taken, changes take effect after they are stored. An
// index is told no sooner of what is lost, and what was found by it, or gained
// because another had lost it, is in the snapshots that follow.
func TestIndexSnapshotProtocols(t *testing.T) {
	with1 := []call{put(1)}
	for _, tt := range []struct {
		name         string
		cfg          mc.Config
		fresh, model func() registry
		first        []call
		threads      threads
	}{
		{"moved", mc.Config{}, byDigits, plainModel, with1, threads{{put(2)}, {by("1"), snapshot}}},
		{"moved to", mc.Config{}, byDigits, plainModel, with1, threads{{put(2)}, {by("2"), snapshot}}},
		{"deleted", mc.Config{}, byDigits, plainModel, with1, threads{{remove}, {by("1"), snapshot}}},
		{"created", mc.Config{}, byDigits, plainModel, empty, threads{{create(1)}, {by("1"), snapshot}}},
		{"deleted and re-created", mc.Config{}, byDigits, plainModel, with1, threads{{remove, create(1)}, {by("1"), snapshot}}},
		{"deleted and gained", mc.Config{}, byUniqueDigits, uniqueModel, with1, threads{{remove}, {other(create(1)), snapshot}}},
		{"deleted, gained and seen", mc.Config{Mode: mc.Bounded, Preemptions: 2}, byUniqueDigits, uniqueModel, with1, threads{{remove}, {other(create(1))}, {snapshot}}},
		{"moved, gained and seen", mc.Config{Mode: mc.Bounded, Preemptions: 2}, byUniqueDigits, uniqueModel, with1, threads{{put(2)}, {other(put(1))}, {unique("1"), snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := func() registry {
				r := tt.fresh()
				for _, c := range tt.first {
					c.Do(r)
				}
				registry := r.(*shardedregistry.Registry[string, int])
				return &joined{Registry: registry, taking: shardedregistry.Join(registry)}
			}
			model := func() registry {
				r := tt.model()
				for _, c := range tt.first {
					c.Do(r)
				}
				return r
			}
			mc.Linearizable(t, tt.cfg, mc.Program[registry]{
				New: fresh, Model: model, Threads: tt.threads,
				After: []call{finish, by("1"), by("2"), lookup, other(lookup), pins},
			})
		})
	}
}

// Wherever a function fails, panics or exits, nothing has changed and nothing is
// left in an index.
func TestIndexFunctionLeavesProtocol(t *testing.T) {
	for name, op := range map[string]func(r registry){
		"Create":   func(r registry) { r.Create("b", 1) },
		"Put":      func(r registry) { r.Put("a", 2) },
		"Update":   func(r registry) { r.Update("a", func(v int) (int, error) { return v + 1, nil }) },
		"UpdateIf": func(r registry) { r.UpdateIf("a", 1, 2) },
		"Compute":  func(r registry) { createOrUpdate(r, "b", func(v int, _ bool) (int, error) { return v + 2, nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: name + " whose function fails, panics or exits ∥ Put(3) ∥ ByIndex"}, func(m *mc.M) {
				var fault func(v int) error
				r := indexed(shardedregistry.Config[string, int]{
					Check: func(_ string, v int) error { return fault(v) },
					Indexes: indexes{
						"digit": digits,
						"zzz": func(_ string, v int) []string { // after digit
							if err := fault(v); err != nil {
								panic(err)
							}
							return nil
						},
					},
				})
				fault = func(int) error { return nil }
				r.Put("a", 1)
				fault = func(v int) error {
					if v == 3 {
						return nil
					}
					return m.Fault(mc.Error, mc.Panic, mc.Goexit)
				}
				m.Go(func() {
					defer func() { recover() }()
					op(r)
				})
				m.Go(func() { r.Put("a", 3) })
				m.Go(func() {
					for _, d := range []string{"1", "2"} {
						for e := range r.ByIndex("digit", d) {
							if !has(e.Value, d) {
								m.Failf("ByIndex(%s) yields %v", d, e)
							}
						}
					}
				})
				m.Final(func() {
					want := plainModel()
					for e := range r.Entries() {
						want.Put(e.Key, e.Value)
					}
					if got, want := fmt.Sprint(pins.Do(r)), fmt.Sprint(pins.Do(want)); got != want {
						m.Failf("the index keeps %s, want %s", got, want)
					}
				})
			})
		})
	}
}

// single is a key whose value is its index, where a value either has the key or
// has not. A writer adds the key to where it is missing before it stores, and
// takes it from where it was afterwards.
type single struct {
	now   atomics.Uint64
	under *table.Table[uint64, struct{ _ int }]
}

func newSingle(v uint64) *single {
	keys := table.NewKeys[uint64]()
	s := &single{under: table.New[uint64, struct{ _ int }](keys.Hasher("single"), 0)}
	s.put(v)
	return s
}

func (s *single) put(v uint64) {
	old := s.now.Load()
	s.under.LoadOrStore(v, new(struct{ _ int }))
	if s.now.CompareAndSwap(old, v) && old != v {
		s.under.LoadAndDelete(old)
	}
}

// A writer that moves the key back finds it still there, where the one that moved
// it away is about to take it from.
func TestPostingsWithoutCountsAreLost(t *testing.T) {
	mc.Refute(t, mc.Config{Operations: "move to 2 ∥ move back to 1"}, "the key is lost", func(m *mc.M) {
		s := newSingle(1)
		m.Go(func() { s.put(2) })
		m.Go(func() { s.put(1) })
		m.Final(func() {
			if v := s.now.Load(); s.under.Load(v) == nil {
				m.Failf("the key is lost: %s", fmt.Sprintf("it holds %d and is not found by that", v))
			}
		})
	})
}
