package shardedregistry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
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

// With Fingerprint, every way to change a value behind the registry's back is
// found by the next operation on its key, whichever that is, which names key and
// version and changes nothing.
func TestFingerprint(t *testing.T) {
	next := map[string]func(*shardedregistry.Registry[string, list]){
		"Get":      func(r *shardedregistry.Registry[string, list]) { r.Get("a") },
		"Lookup":   func(r *shardedregistry.Registry[string, list]) { r.Lookup("a") },
		"Put":      func(r *shardedregistry.Registry[string, list]) { r.Put("a", of(5)) },
		"Update":   func(r *shardedregistry.Registry[string, list]) { r.Update("a", grow(5)) },
		"UpdateIf": func(r *shardedregistry.Registry[string, list]) { r.UpdateIf("a", version(r), of(5)) },
		"Upsert": func(r *shardedregistry.Registry[string, list]) {
			r.Upsert("a", func(list, bool) (list, error) { return of(5), nil })
		},
		"GetOrCreate": func(r *shardedregistry.Registry[string, list]) { r.GetOrCreate("a", nil2(nil)) },
		"Delete":      func(r *shardedregistry.Registry[string, list]) { r.Delete("a") },
		"DeleteIf":    func(r *shardedregistry.Registry[string, list]) { r.DeleteIf("a", version(r)) },
		"Ref.Get":     func(r *shardedregistry.Registry[string, list]) { r.Ref("a").Get() },
		"DeleteMatching": func(r *shardedregistry.Registry[string, list]) {
			r.DeleteMatching(func(shardedregistry.Entry[string, list]) bool { return true })
		},
		"All": func(r *shardedregistry.Registry[string, list]) { all(r) },
	}
	fresh := func() *shardedregistry.Registry[string, list] {
		r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Fingerprint: describe})
		mustPut(t, r, "a", of(1, 2))
		return r
	}
	for found, do := range next {
		for way := range handedOut(fresh()) {
			t.Run("from "+way+" found by "+found, func(t *testing.T) {
				r := fresh()
				l := handedOut(r)[way]()
				(*l)[0] = 99
				wantFound(t, r, l, do)
			})
		}
		for way := range storedBy(fresh()) {
			t.Run("given to "+way+" found by "+found, func(t *testing.T) {
				r, l := fresh(), of(1, 2)
				storedBy(r)[way](l)
				(*l)[0] = 99
				wantFound(t, r, l, do)
			})
		}
	}
}

// version returns the version of "a" without looking at its value.
func version(r *shardedregistry.Registry[string, list]) shardedregistry.Version {
	_, err := r.Create("a", nil)
	return err.(*shardedregistry.ExistsError).Version
}

// wantFound fails the test unless do panics over the value of "a", which is l,
// and changes nothing.
func wantFound(t *testing.T, r *shardedregistry.Registry[string, list], l list, do func(*shardedregistry.Registry[string, list])) {
	t.Helper()
	v := version(r)
	p := left(t, func() { do(r) })
	want := fmt.Sprintf("shardedregistry: the value of a at version %d was changed behind the registry's back: it was [1,2] and is [99,2]", v)
	if p != want {
		t.Errorf("the panic is %v, want %s", p, want)
	}
	(*l)[0] = 1
	if got, ok := r.Get("a"); !ok || got != l || version(r) != v {
		t.Errorf("the registry holds %v, %v at version %d; want %v at %d", got, ok, version(r), l, v)
	}
}

// The function of an Update that modifies what it is given is found at once, in
// its own call, and so is that of DeleteMatching.
func TestFingerprintOfAFunction(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Fingerprint: describe})
	mustPut(t, r, "a", of(1, 2))
	for name, do := range map[string]func(){
		"Update": func() {
			r.Update("a", func(l list) (list, error) { (*l)[0] = 99; return l, nil })
		},
		"DeleteMatching": func() {
			r.DeleteMatching(func(e shardedregistry.Entry[string, list]) bool { (*e.Value)[0] = 99; return true })
		},
	} {
		l, _ := r.Get("a")
		if p, _ := left(t, do).(string); !strings.Contains(p, "a at version 1 was changed") {
			t.Errorf("%s: the panic is %q", name, p)
		}
		(*l)[0] = 1
	}
	wantListed(t, r, "[1,2]", 1)
}

func wantListed(t *testing.T, r *shardedregistry.Registry[string, list], want string, v shardedregistry.Version) {
	t.Helper()
	if e, ok := r.Lookup("a"); !ok || describe(e.Value) != want || e.Version != v {
		t.Errorf("the registry holds %v, %v", e, ok)
	}
}

// With Clone too, what callers do to their copies is no matter, and a Clone that
// is not deep is found.
func TestFingerprintAndClone(t *testing.T) {
	for deep, clone := range map[bool]func(list) list{true: cloneList, false: func(l list) list { return l }} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Clone: clone, Fingerprint: describe})
		mustPut(t, r, "a", of(1, 2))
		l, _ := r.Get("a")
		(*l)[0] = 99
		if p := left(t, func() { r.Get("a") }); (p == nil) != deep {
			t.Errorf("a deep Clone: %v, the panic: %v", deep, p)
		}
	}
}

// A registry whose values are left alone finds nothing, whatever its users do at
// once, and keeps nothing of keys that are gone.
func TestStressFingerprint(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Shards: 1, Fingerprint: describe})
	n := iterations(2000)
	hammer(t, 4, func(worker int) {
		for i := range n {
			k := key(i % 3)
			switch (i/3 + worker) % 6 {
			case 0:
				r.Create(k, of(i))
			case 1:
				r.Update(k, grow(i))
			case 2:
				r.Delete(k)
			case 3:
				r.Put(k, of(i))
			case 4:
				for range r.All() {
					runtime.Gosched()
				}
			}
			r.Get(k)
		}
	})
	for i := range 3 {
		r.Put(key(i), of(i)) // and with that, above whatever a late reader has left
		r.Delete(key(i))
	}
	if n := shardedregistry.Imprints(r); n != 0 {
		t.Errorf("%d imprints are kept of no keys", n)
	}
}

// A deleter that stalls does not take the imprint of the key's next life with it.
func TestFingerprintOfANextLife(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Fingerprint: describe})
	mustPut(t, r, "a", of(1))
	rest := shardedregistry.Kill(r, "a")
	l := of(1, 2)
	mustPut(t, r, "a", l)
	rest()
	(*l)[0] = 99
	if p, _ := left(t, func() { r.Get("a") }).(string); !strings.Contains(p, "it was [1,2] and is [99,2]") {
		t.Errorf("the panic is %q", p)
	}
}

// T5: a Fingerprint that panics after a value was stored has changed nothing but
// that.
func TestFingerprintLeaves(t *testing.T) {
	for _, exit := range leave {
		armed := false
		r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Shards: 1, Fingerprint: func(l list) string {
			if armed {
				exit()
			}
			return describe(l)
		}})
		armed = true
		left(t, func() { _, _ = r.Create("a", of(1)) })
		left(t, func() { r.Delete("a") }) // it looks before it deletes
		armed = false
		wantListed(t, r, "[1]", 1)
		if _, ok := r.Delete("a"); !ok || r.Len() != 0 || shardedregistry.Linked(r) != 0 {
			t.Errorf("Delete = %v, Len = %d, %d linked", ok, r.Len(), shardedregistry.Linked(r))
		}
	}
}

func ExampleConfig_clone() {
	type team struct{ members []string }
	teams := shardedregistry.MustNew(shardedregistry.Config[string, *team]{
		Clone: func(t *team) *team { return &team{slices.Clone(t.members)} },
	})
	teams.Create("red", &team{[]string{"ann"}})

	mine, _ := teams.Get("red")
	mine.members[0] = "eve" // changes a copy
	teams.Update("red", func(t *team) (*team, error) {
		t.members = append(t.members, "bob") // likewise, and stores it
		return t, nil
	})
	theirs, _ := teams.Get("red")
	fmt.Println(theirs.members)
	// Output: [ann bob]
}

func ExampleConfig_fingerprint() {
	type team struct{ Members []string }
	teams := shardedregistry.MustNew(shardedregistry.Config[string, *team]{ // in a test
		Fingerprint: func(t *team) string { return fmt.Sprint(*t) },
	})
	teams.Create("red", &team{[]string{"ann"}})
	defer func() { fmt.Println(recover()) }()

	mine, _ := teams.Get("red")
	mine.Members[0] = "eve" // changes what everybody sees
	teams.Get("red")
	// Output: shardedregistry: the value of red at version 1 was changed behind the registry's back: it was {[ann]} and is {[eve]}
}

// all reads everything.
func all(r *shardedregistry.Registry[string, list]) {
	for range r.All() {
	}
}
