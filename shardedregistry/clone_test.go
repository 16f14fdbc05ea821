//go:build !modelcheck

package shardedregistry_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// list is a value that can be changed behind the registry's back.
type list = *[]int

func of(v ...int) list { return &v }

func cloneList(l list) list {
	c := slices.Clone(*l)
	return &c
}

func describe(l list) string {
	text, _ := json.Marshal(l)
	return string(text)
}

// grow returns a new list with v.
func grow(v int) func(list) (list, error) {
	return func(l list) (list, error) { return of(append(slices.Clip(*l), v)...), nil }
}

// handedOut returns a value for each way in which a registry that holds
// something under "a" hands it out. Each leaves the key with that value.
func handedOut(r *shardedregistry.Registry[string, list]) map[string]func() list {
	ref, value := r.Ref("a"), func(e shardedregistry.Entry[string, list]) list { return e.Value }
	return map[string]func() list{
		"Get":        func() list { l, _ := r.Get("a"); return l },
		"Lookup":     func() list { e, _ := r.Lookup("a"); return e.Value },
		"Peek":       func() list { return *r.Peek("a") },
		"Ref.Peek":   func() list { return *ref.Peek() },
		"Ref.Get":    func() list { l, _ := ref.Get(); return l },
		"Ref.Lookup": func() list { e, _ := ref.Lookup(); return e.Value },
		"Update": func() list {
			e, _ := r.Update("a", func(l list) (list, error) { return of(*l...), nil })
			return value(e)
		},
		"Update's function": func() (got list) {
			r.Update("a", func(l list) (list, error) { got = l; return nil, errTest })
			return got
		},
		"Upsert": func() list {
			e, _ := r.Upsert("a", func(l list, _ bool) (list, error) { return of(*l...), nil })
			return value(e)
		},
		"Upsert's function": func() (got list) {
			r.Upsert("a", func(l list, _ bool) (list, error) { got = l; return nil, errTest })
			return got
		},
		"Compute": func() list {
			e, _, _ := r.Compute("a", func(l list, _ bool) (list, shardedregistry.ComputeOp, error) { return l, shardedregistry.UpdateOp, nil })
			return value(e)
		},
		"Compute that leaves the key": func() list {
			e, _, _ := r.Compute("a", func(list, bool) (list, shardedregistry.ComputeOp, error) { return nil, shardedregistry.CancelOp, nil })
			return value(e)
		},
		"Compute's function": func() (got list) {
			r.Compute("a", func(l list, _ bool) (list, shardedregistry.ComputeOp, error) {
				got = l
				return nil, shardedregistry.CancelOp, nil
			})
			return got
		},
		"DeleteFunc": func() (got list) {
			r.DeleteFunc(func(e shardedregistry.Entry[string, list]) (bool, error) { got = e.Value; return false, nil })
			return got
		},
		"GetOrCreate": func() list { l, _, _ := r.GetOrCreate("a", func() (list, error) { return nil, errTest }); return l },
		"DeleteMatching": func() (got list) {
			r.DeleteMatching(func(e shardedregistry.Entry[string, list]) bool { got = e.Value; return false })
			return got
		},
		"All": func() (got list) {
			for _, l := range r.All() {
				got = l
			}
			return got
		},
		"Entries": func() (got list) {
			for e := range r.Entries() {
				got = e.Value
			}
			return got
		},
		"Snapshot.Get":    func() list { l, _ := r.Snapshot().Get("a"); return l },
		"Snapshot.Lookup": func() list { e, _ := r.Snapshot().Lookup("a"); return e.Value },
		"Snapshot.All": func() (got list) {
			for _, l := range r.Snapshot().All() {
				got = l
			}
			return got
		},
		"Snapshot.Entries": func() (got list) {
			for e := range r.Snapshot().Entries() {
				got = e.Value
			}
			return got
		},
	}
}

// storedBy are the ways in which a value is stored under "a".
func storedBy(r *shardedregistry.Registry[string, list]) map[string]func(list) {
	e := func() shardedregistry.Version { e, _ := r.Lookup("a"); return e.Version }
	return map[string]func(list){
		"Create": func(l list) { r.Delete("a"); r.Create("a", l) },
		"Put":    func(l list) { r.Put("a", l) },
		"Put of an absent key": func(l list) {
			r.Delete("a")
			r.Put("a", l)
		},
		"Update":   func(l list) { r.Update("a", func(list) (list, error) { return l, nil }) },
		"UpdateIf": func(l list) { r.UpdateIf("a", e(), l) },
		"Upsert":   func(l list) { r.Upsert("a", func(list, bool) (list, error) { return l, nil }) },
		"Compute": func(l list) {
			r.Compute("a", func(list, bool) (list, shardedregistry.ComputeOp, error) { return l, shardedregistry.UpdateOp, nil })
		},
		"Upsert of an absent key": func(l list) {
			r.Delete("a")
			r.Upsert("a", func(list, bool) (list, error) { return l, nil })
		},
		"GetOrCreate": func(l list) { r.Delete("a"); r.GetOrCreate("a", func() (list, error) { return l, nil }) },
		"CreateMany":  func(l list) { r.Delete("a"); r.CreateMany(maps.All(map[string]list{"a": l})) },
	}
}

// With Clone, whoever changes what was handed out, or what was stored, changes
// nothing of the registry.
func TestClone(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Clone: cloneList})
	mustPut(t, r, "a", of(1, 2))
	intact := func(way string) {
		t.Helper()
		if l, ok := r.Get("a"); !ok || describe(l) != "[1,2]" {
			t.Errorf("%s: the registry holds %s, %v", way, describe(l), ok)
		}
	}
	snapshot := r.Snapshot()
	for way, get := range handedOut(r) {
		(*get())[0] = 99
		intact(way)
	}
	for way, store := range storedBy(r) {
		l := of(1, 2)
		store(l)
		(*l)[0] = 99
		intact(way)
	}
	e, ok := r.Delete("a")
	(*e.Value)[0] = 99
	if l, _ := snapshot.Get("a"); !ok || describe(l) != "[1,2]" {
		t.Errorf("the snapshot holds %s", describe(l))
	}
	if e, ok := r.Delete("a"); ok || e.Value != nil {
		t.Errorf("Delete of an absent key = %v, %v", e, ok)
	}
}

// A value is cloned once on its way in, and once on its way out. What nobody is
// given or stores is not cloned.
func TestCloneIsCalled(t *testing.T) {
	calls := 0
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{
		Clone: func(l list) list { calls++; return cloneList(l) },
	})
	version := mustPut(t, r, "a", of(1))
	for _, tt := range []struct {
		name string
		want int
		do   func()
	}{
		{"Get", 1, func() { r.Get("a") }},
		{"Get of an absent key", 0, func() { r.Get("b") }},
		{"Peek", 1, func() { r.Peek("a") }},
		{"Lookup", 1, func() { r.Lookup("a") }},
		{"Put of a present key", 1, func() { version, _ = r.Put("a", of(2)) }},
		{"Create of a present key", 0, func() { r.Create("a", of(2)) }},
		{"UpdateIf", 1, func() { version, _ = r.UpdateIf("a", version, of(2)) }},
		{"UpdateIf of another version", 0, func() { r.UpdateIf("a", version+1, of(2)) }},
		{"Update: to the function, into the registry, to the caller", 3, func() { r.Update("a", grow(1)) }},
		{"GetOrCreate of a present key", 1, func() { r.GetOrCreate("a", nil2(of(1))) }},
		{"GetOrCreate of an absent key", 2, func() { r.GetOrCreate("b", nil2(of(1))) }},
		{"Len", 0, func() { r.Len() }},
		{"All", 2, func() { all(r) }},
		{"Snapshot", 0, func() { r.Snapshot() }},
		{"Delete", 1, func() { r.Delete("b") }},
		{"DeleteMatching", 1, func() { r.DeleteMatching(func(shardedregistry.Entry[string, list]) bool { return true }) }},
	} {
		calls = 0
		if tt.do(); calls != tt.want {
			t.Errorf("%s clones %d times, want %d", tt.name, calls, tt.want)
		}
	}
}

// With Clone, Check and the functions of indexes get copies, one each: what they
// change, and what they keep, is nobody else's.
func TestCloneOfWhatIsChecked(t *testing.T) {
	var given []list
	spoil := func(l list) {
		if got := describe(l); got != "[1]" {
			t.Errorf("a function was given %s, want [1]", got)
		}
		(*l)[0] = 99
		given = append(given, l)
	}
	index := func(_ string, l list) []string {
		spoil(l)
		return []string{"x"}
	}
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{
		Clone:         cloneList,
		Check:         func(_ string, l list) error { spoil(l); return nil },
		Indexes:       map[string]func(string, list) []string{"a": index, "b": index},
		UniqueIndexes: map[string]func(string, list) []string{"c": index},
	})
	for name, store := range storedBy(r) {
		r.Put("a", of(1))
		mine := of(1)
		given = nil
		store(mine)
		if len(given) != 4 || describe(mine) != "[1]" {
			t.Errorf("%s: %d functions ran, and the value that was given is %s", name, len(given), describe(mine))
		}
		for _, l := range given {
			(*l)[0] = 77
		}
		if got, _ := r.Get("a"); describe(got) != "[1]" {
			t.Errorf("after %s the registry holds %s", name, describe(got))
		}
	}
}

func nil2(l list) func() (list, error) { return func() (list, error) { return l, nil } }

// T5: a Clone that panics or exits before a value is stored leaves no trace, and
// freezes nobody.
func TestCloneLeaves(t *testing.T) {
	for how, exit := range leave {
		armed := false
		r := shardedregistry.MustNew(shardedregistry.Config[string, list]{
			Shards: 1,
			Clone: func(l list) list {
				if armed {
					exit()
				}
				return cloneList(l)
			},
		})
		mustPut(t, r, "a", of(1))
		snapshot := r.Snapshot()
		for name, do := range map[string]func(){
			"Get":          func() { r.Get("a") },
			"Create":       func() { _, _ = r.Create("b", of(1)) },
			"Put":          func() { _, _ = r.Put("a", of(1)) },
			"UpdateIf":     func() { _, _ = r.UpdateIf("a", 1, of(1)) },
			"Update":       func() { _, _ = r.Update("a", grow(2)) },
			"GetOrCreate":  func() { _, _, _ = r.GetOrCreate("b", nil2(of(1))) },
			"Delete":       func() { r.Delete("a") },
			"Snapshot.Get": func() { snapshot.Get("a") },
			"All": func() {
				for range r.All() {
					t.Error("All yields what could not be cloned")
				}
			},
		} {
			armed = true
			if p := left(t, do); how == "panic" && p != "the caller's panic" {
				t.Errorf("%s: the panic became %v", name, p)
			}
			armed = false
			if e, _ := r.Lookup("a"); describe(e.Value) != "[1]" || e.Version != 1 || r.Len() != 1 {
				t.Errorf("%s, %s: left %v and %d keys", name, how, e, r.Len())
			}
		}
		within(t, func() {
			for i := range 1000 {
				mustPut(t, r, key(i), of(i))
			}
		})
	}
}

// all reads everything.
func all(r *shardedregistry.Registry[string, list]) {
	for range r.All() {
	}
}
