//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestNilFunctions(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	wantPanic(t, "Update called with a nil function", func() { _, _ = r.Update("a", nil) })
	wantPanic(t, "Compute called with a nil function", func() { _, _, _ = r.Compute("a", nil) })
	mustPut(t, &r, "a", 1)
	wantValue(t, &r, "a", 1)
}

// leave ends the calling function in a way that no error reports.
var leave = map[string]func(){
	"panic":  func() { panic("the caller's panic") },
	"Goexit": runtime.Goexit,
}

// left runs f on a goroutine of its own and waits until it is gone, whichever
// way. It returns what f panicked with.
func left(t testing.TB, f func()) (p any) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { p = recover() }()
		f()
	}()
	await(t, done)
	return p
}

// T5: a function that panics or calls Goexit writes nothing and freezes nobody,
// not even when the table must grow, and the panic reaches its caller.
func TestFunctionLeaves(t *testing.T) {
	for how, exit := range leave {
		bad := "\x00"
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
			Shards: 1, // so that all keys are neighbours
			Normalize: func(k string) (string, error) {
				if k == bad {
					exit()
				}
				return k, nil
			},
		})
		mustPut(t, r, "present", 1)
		for name, call := range map[string]func(){
			"Update": func() {
				_, _ = r.Update("present", func(int) (int, error) { exit(); return 9, nil })
			},
			"Compute, present": func() {
				_, _ = createOrUpdate(r, "present", func(int, bool) (int, error) { exit(); return 9, nil })
			},
			"Compute, absent": func() {
				_, _ = createOrUpdate(r, "absent", func(int, bool) (int, error) { exit(); return 9, nil })
			},
			"normaliser, Create": func() { _, _ = r.Create(bad, 9) },
			"normaliser, Put":    func() { _, _ = r.Put(bad, 9) },
			"normaliser, Get":    func() { r.Get(bad) },
			"normaliser, Delete": func() { r.Delete(bad) },
		} {
			p := left(t, call)
			if how == "panic" && p != "the caller's panic" {
				t.Errorf("%s: the panic became %v", name, p)
			}
			e, _ := r.Lookup("present")
			if e.Value != 1 || e.Version != 1 || r.Len() != 1 {
				t.Errorf("%s, %s: left %v and %d keys", name, how, e, r.Len())
			}
		}
		within(t, func() {
			for i := range 2000 { // every bucket is locked while the table grows
				mustPut(t, r, key(i), i)
			}
			wantValue(t, r, "present", 1)
			mustPut(t, r, "absent", 2)
			r.Delete("present")
		})
	}
}

// T5 again, in the loop's body.
func TestLoopBodyLeaves(t *testing.T) {
	for _, exit := range leave {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "a", 1)
		left(t, func() {
			for range r.All() {
				exit()
			}
		})
		within(t, func() {
			for i := range 2000 {
				mustPut(t, r, key(i), i)
			}
		})
	}
}

// T6: a function that blocks delays nobody: neither other keys, nor the growth
// of its own table, nor other changes of its own key.
func TestFunctionBlocks(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "slow", 1)
	entered, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var runs []int
	go func() {
		defer close(done)
		e, err := r.Update("slow", func(v int) (int, error) {
			runs = append(runs, v)
			if len(runs) == 1 {
				close(entered)
				<-release
			}
			return v + 100, nil
		})
		if err != nil || e.Value != 102 {
			t.Errorf("Update = %v, %v; want value 102", e, err)
		}
	}()
	await(t, entered)
	within(t, func() {
		for i := range 2000 {
			if _, err := r.Create(key(i), i); err != nil {
				t.Error(err)
			}
			_, err := r.Update(key(i), func(v int) (int, error) { return -v, nil })
			if err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				r.Delete(key(i))
			}
		}
		mustPut(t, r, "slow", 2)
		wantValue(t, r, "slow", 2)
	})
	close(release)
	await(t, done)
	if want := "[1 2]"; fmt.Sprint(runs) != want {
		t.Errorf("the function was given %v, want %s", runs, want)
	}
}

// T7: a function may use the registry, its own key included.
func TestFunctionCallsBack(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	within(t, func() {
		e, err := r.Update("a", func(v int) (int, error) {
			wantValue(t, r, "a", v)
			for range r.All() {
				r.Len()
			}
			if _, err := r.Create(strings.Repeat("b", r.Len()), v); err != nil {
				return 0, err
			}
			e, err := createOrUpdate(r, "c", func(old int, exists bool) (int, error) {
				_, err := createOrUpdate(r, "d", func(int, bool) (int, error) { return 4, nil })
				return old + 3, err
			})
			r.Delete("d")
			return v + e.Value, err
		})
		if err != nil || e.Value != 4 || e.Version != 2 {
			t.Errorf("Update = %v, %v; want value 4 at version 2", e, err)
		}
	})
	if r.Len() != 3 { // a, b, c
		t.Errorf("Len = %d, want 3", r.Len())
	}
}
