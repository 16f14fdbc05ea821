//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// With Fingerprint, every way to change a value behind the registry's back is
// found by the next operation on its key, whichever that is, which names key and
// version and changes nothing.
func TestFingerprint(t *testing.T) {
	next := map[string]func(*shardedregistry.Registry[string, list]){
		"Get":      func(r *shardedregistry.Registry[string, list]) { r.Get("a") },
		"Peek":     func(r *shardedregistry.Registry[string, list]) { r.Peek("a") },
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

// A deleter that stalls does not take the fingerprint of the key's next life with it.
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

// Nor has it kept anybody from being told of that.
func TestFingerprintLeavesWatchersTold(t *testing.T) {
	type lists = shardedregistry.Registry[string, list]
	for name, change := range map[string]func(*lists){
		"Create":   func(r *lists) { _, _ = r.Create("new", of(2)) },
		"Put":      func(r *lists) { _, _ = r.Put("a", of(2)) },
		"UpdateIf": func(r *lists) { _, _ = r.UpdateIf("a", 1, of(2)) },
	} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Fingerprint: func(l list) string {
			if describe(l) == "[2]" {
				panic("fingerprint")
			}
			return describe(l)
		}})
		_, _ = r.Create("a", of(1))
		w := shardedregistry.Subscribe(r)
		left(t, func() { change(r) })
		if n := w.Piled(); n != 1 {
			t.Errorf("%s: a loop was told of %d changes", name, n)
		}
		w.Leave()
	}
}
