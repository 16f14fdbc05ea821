//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

type tx = shardedregistry.Tx[string, int]

// transfer moves n from one account to another.
func transfer(r *shardedregistry.Registry[string, int], from, to string, n int) error {
	return r.Transact(func(tx *tx) error {
		a, _ := tx.Get(from)
		b, _ := tx.Get(to)
		tx.Put(from, a-n)
		return tx.Put(to, b+n)
	})
}

func TestTransactStoresAll(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	r.Put("a", 10)
	r.Put("gone", 1)
	var seen []string
	err := r.Transact(func(tx *tx) error {
		v, ok := tx.Get("a")
		seen = append(seen, fmt.Sprint(v, ok))
		_, ok = tx.Get("b")
		seen = append(seen, fmt.Sprint(ok))
		if err := tx.Put("b", 5); err != nil {
			return err
		}
		e, ok := tx.Lookup("b")
		seen = append(seen, fmt.Sprint(e, ok))
		e, ok = tx.Delete("gone")
		seen = append(seen, fmt.Sprint(e, ok))
		e, ok = tx.Delete("gone")
		seen = append(seen, fmt.Sprint(e, ok))
		return tx.Put("a", v-5)
	})
	if want := "10 true,false,{b 5 0} true,{gone 1 1} true,{ 0 0} false"; strings.Join(seen, ",") != want || err != nil {
		t.Errorf("the function has seen %q, %v, want %q", strings.Join(seen, ","), err, want)
	}
	for k, want := range map[string]string{"a": "{a 5 2} true", "b": "{b 5 1} true", "gone": "{ 0 0} false"} {
		if got := fmt.Sprint(r.Lookup(k)); got != want {
			t.Errorf("%s is %s, want %s", k, got, want)
		}
	}
	if n, linked := r.Len(), shardedregistry.Linked(&r); n != 2 || linked != 2 {
		t.Errorf("Len() = %d, %d linked, want 2", n, linked)
	}
}

// Whatever ends a function early, nothing has changed and nothing is left.
func TestTransactChangesNothing(t *testing.T) {
	failed := errors.New("failed")
	var r shardedregistry.Registry[string, int]
	r.Put("a", 10)
	use := func(tx *tx) {
		tx.Put("a", 1)
		tx.Put("b", 1)
		tx.Delete("a")
	}
	for name, run := range map[string]func(){
		"error": func() {
			if err := r.Transact(func(tx *tx) error { use(tx); return failed }); err != failed {
				t.Errorf("Transact() = %v, want %v", err, failed)
			}
		},
		"panic": func() {
			defer func() {
				if p := recover(); p != failed {
					t.Errorf("the panic is %v, want %v", p, failed)
				}
			}()
			r.Transact(func(tx *tx) error { use(tx); panic(failed) })
		},
		"exit": func() {
			done := make(chan bool)
			go func() {
				defer close(done)
				r.Transact(func(tx *tx) error { use(tx); runtime.Goexit(); return nil })
			}()
			<-done
		},
		"only reads": func() {
			if err := r.Transact(func(tx *tx) error { tx.Get("a"); tx.Get("b"); tx.Delete("b"); return nil }); err != nil {
				t.Error(err)
			}
		},
	} {
		run()
		if got := fmt.Sprint(r.Lookup("a")); got != "{a 10 1} true" {
			t.Errorf("%s: a is %s", name, got)
		}
		if n, linked := r.Len(), shardedregistry.Linked(&r); n != 1 || linked != 1 {
			t.Errorf("%s: Len() = %d, %d linked, want 1", name, n, linked)
		}
	}
}

// A key that was read and has changed makes the function run again, at the next read or in
// the end.
func TestTransactRunsAgain(t *testing.T) {
	for name, change := range map[string]func(*shardedregistry.Registry[string, int]){
		"put":               func(r *shardedregistry.Registry[string, int]) { r.Put("a", 20) },
		"deleted":           func(r *shardedregistry.Registry[string, int]) { r.Delete("a") },
		"deleted and there": func(r *shardedregistry.Registry[string, int]) { r.Delete("a"); r.Put("a", 10) },
		"created":           func(r *shardedregistry.Registry[string, int]) { r.Put("b", 10) },
		"came and went":     func(r *shardedregistry.Registry[string, int]) { r.Put("b", 10); r.Delete("b") },
		"in a transaction":  func(r *shardedregistry.Registry[string, int]) { transfer(r, "a", "b", 3) },
	} {
		for _, recovers := range []bool{false, true} {
			var r shardedregistry.Registry[string, int]
			r.Put("a", 10)
			r.Put("c", 10)
			runs, after := 0, 0
			err := r.Transact(func(tx *tx) error {
				runs++
				if recovers {
					defer func() { recover() }()
				}
				a, _ := tx.Get("a")
				b, ok := tx.Get("b")
				if _, ok2 := tx.Get("d"); ok2 {
					t.Error("d is there")
				}
				if runs == 1 {
					change(&r)
				}
				tx.Get("c")
				after++
				tx.Put("c", a+b)
				_ = ok
				return nil
			})
			if runs != 2 || after != 1 || err != nil {
				t.Errorf("%s: the function has run %d times, %d to its end, %v", name, runs, after, err)
			}
			a, _ := r.Get("a")
			b, _ := r.Get("b")
			if c, _ := r.Get("c"); c != a+b {
				t.Errorf("%s: c is %d, want %d + %d", name, c, a, b)
			}
			if _, ok := r.Get("d"); ok || shardedregistry.Linked(&r) != r.Len() {
				t.Errorf("%s: %d keys, %d linked", name, r.Len(), shardedregistry.Linked(&r))
			}
		}
	}
}

func TestTransactOfItsOwnKey(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	runs := 0
	err := r.Transact(func(tx *tx) error {
		runs++
		v, _ := tx.Get("a")
		r.Put("a", v+1)
		return tx.Put("b", v)
	})
	if err != shardedregistry.ErrTooManyRetries {
		t.Errorf("Transact() = %v after %d runs", err, runs)
	}
	if want := shardedregistry.Patience + shardedregistry.Proofs; runs != want {
		t.Errorf("the function has run %d times, want %d", runs, want)
	}
	if n := shardedregistry.Suspects(&r); n != 0 {
		t.Errorf("%d detectors are left", n)
	}
}
