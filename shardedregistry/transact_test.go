//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		tx.Put("gone", 7)
		e, ok = tx.Delete("gone")
		seen = append(seen, fmt.Sprint(e, ok))
		e, ok = tx.Delete("gone")
		seen = append(seen, fmt.Sprint(e, ok))
		return tx.Put("a", v-5)
	})
	if want := "10 true,false,{b 5 0} true,{gone 1 1} true,{gone 7 0} true,{ 0 0} false"; strings.Join(seen, ",") != want || err != nil {
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
// the end. To store is not to read.
func TestTransactRunsAgain(t *testing.T) {
	for name, change := range map[string]func(*shardedregistry.Registry[string, int]){
		"put":               func(r *shardedregistry.Registry[string, int]) { r.Put("a", 20) },
		"deleted":           func(r *shardedregistry.Registry[string, int]) { r.Delete("a") },
		"deleted and there": func(r *shardedregistry.Registry[string, int]) { r.Delete("a"); r.Put("a", 10) },
		"created":           func(r *shardedregistry.Registry[string, int]) { r.Put("b", 10) },
		"came and went":     func(r *shardedregistry.Registry[string, int]) { r.Put("b", 10); r.Delete("b") },
		"in a transaction":  func(r *shardedregistry.Registry[string, int]) { transfer(r, "a", "b", 3) },
	} {
		for how, read := range map[string]func(*tx){
			"Get":    func(tx *tx) { tx.Get("c") },
			"Lookup": func(tx *tx) { tx.Lookup("c") },
			"Delete": func(tx *tx) { tx.Delete("c") },
		} {
			for _, recovers := range []bool{false, true} {
				var r shardedregistry.Registry[string, int]
				r.Put("a", 10)
				r.Put("c", 10)
				runs, before, after := 0, 0, 0
				err := r.Transact(func(tx *tx) error {
					runs++
					if recovers {
						defer func() { recover() }()
					}
					a, _ := tx.Get("a")
					b, _ := tx.Get("b")
					if _, ok := tx.Get("d"); ok {
						t.Error("d is there")
					}
					if runs == 1 {
						change(&r)
					}
					tx.Put("e", 1)
					before++
					read(tx)
					after++
					tx.Put("c", a+b)
					return nil
				})
				if runs != 2 || before != 2 || after != 1 || err != nil {
					t.Errorf("%s, %s: the function has run %d times, %d to Put, %d to its end, %v", name, how, runs, before, after, err)
				}
				a, _ := r.Get("a")
				b, _ := r.Get("b")
				if c, _ := r.Get("c"); c != a+b {
					t.Errorf("%s, %s: c is %d, want %d + %d", name, how, c, a, b)
				}
				if _, ok := r.Get("d"); ok || shardedregistry.Linked(&r) != r.Len() {
					t.Errorf("%s, %s: %d keys, %d linked", name, how, r.Len(), shardedregistry.Linked(&r))
				}
			}
		}
	}
}

// Changes of other keys, also in the shard of those that were absent, do not make the function run
// again; beside several absent keys, creations do not.
func TestTransactBesideOtherKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		absent []string
		change func(*shardedregistry.Registry[string, int])
	}{
		"deleted": {[]string{"a"}, func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "other", 1); r.Delete("other") }},
		"created": {[]string{"a", "b"}, func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "other", 1) }},
	} {
		r := shardedregistry.MustNew(config{Shards: 1})
		runs := 0
		if err := r.Transact(func(tx *tx) error {
			runs++
			for _, k := range tt.absent {
				tx.Get(k)
			}
			tt.change(r)
			mustPut(t, r, "c", runs)
			if c, _ := tx.Get("c"); c != runs {
				t.Errorf("%s: c is %d in run %d", name, c, runs)
			}
			return nil
		}); err != nil || runs != 1 {
			t.Errorf("%s: the function has run %d times, %v", name, runs, err)
		}
	}
}

// Another transaction that is in the way is finished, and commits; but where two keys have the same
// hash, the other might need what this one holds, and is aborted.
func TestTransactInTheWay(t *testing.T) {
	alphabet := func(k string) uint64 { return uint64(k[0]) << 50 }
	same := func(string) uint64 { return 1 << 60 }
	for _, tt := range []struct {
		hash        func(string) uint64
		other, keys string
		commits     bool
	}{
		{alphabet, "bc", "ab", true},
		{alphabet, "bc", "ba", true},
		{alphabet, "bd", "abc", true},
		{same, "bc", "ab", false},
		{same, "bd", "abc", false},
		{same, "cd", "abc", false},
	} {
		r := shardedregistry.MustNew(config{Shards: 1})
		shardedregistry.SetHash(r, tt.hash)
		for _, k := range []string{"a", "b", "c", "d"} {
			mustPut(t, r, k, 1)
		}
		puts := func(v int, keys string) func(*tx) error {
			return func(tx *tx) error {
				for _, k := range keys {
					tx.Put(string(k), v)
				}
				return nil
			}
		}
		decide := shardedregistry.Begun(r, puts(2, tt.other))
		if err := r.Transact(puts(3, tt.keys)); err != nil {
			t.Errorf("%s beside %s: %v", tt.keys, tt.other, err)
		}
		if committed := decide()(); committed != tt.commits {
			t.Errorf("%s beside %s: that has committed: %t, want %t", tt.keys, tt.other, committed, tt.commits)
		}
		for k, v := range r.All() {
			want := 1
			if tt.commits && strings.Contains(tt.other, k) {
				want = 2
			}
			if strings.Contains(tt.keys, k) {
				want = 3
			}
			if v != want {
				t.Errorf("%s beside %s: %s is %d, want %d", tt.keys, tt.other, k, v, want)
			}
		}
	}
}

// Likewise keys that were absent, and came and went while a watcher keeps their cells in the table.
func TestTransactSeesWhatCameAndWent(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w := shardedregistry.Subscribe(&r)
	mustPut(t, &r, "a", 1)
	r.Delete("a") // which the watcher has not come to
	runs := 0
	if err := r.Transact(func(tx *tx) error {
		runs++
		tx.Get("a")
		tx.Get("b")
		if runs == 1 {
			r.Put("a", 2)
			r.Delete("a")
		}
		tx.Get("c")
		return nil
	}); err != nil || runs != 2 {
		t.Errorf("the function has run %d times, %v", runs, err)
	}
	w.Leave()
}

// A function that recovers the panic of a conflict may panic with another, which is its caller's, and
// so is that of a transaction around it.
func TestTransactPassesPanicsOn(t *testing.T) {
	conflicting := func(r *shardedregistry.Registry[string, int], tx *tx, key string) {
		defer func() { recover() }()
		tx.Get(key)
		r.Put(key, 1)
		tx.Get("none")
		t.Error("the conflict was not noticed")
	}
	var r shardedregistry.Registry[string, int]
	if p := left(t, func() {
		r.Transact(func(tx *tx) error {
			conflicting(&r, tx, "a")
			panic(errTest)
		})
	}); p != errTest {
		t.Errorf("the panic is %v", p)
	}

	var outer, inner int
	if err := r.Transact(func(tx *tx) error {
		outer++
		tx.Get("b")
		if outer == 1 {
			r.Put("b", 1)
		}
		return r.Transact(func(tx2 *shardedregistry.Tx[string, int]) error {
			if inner++; inner == 1 {
				conflicting(&r, tx2, "a")
			}
			tx.Get("c") // which ends both, the first time
			return tx.Put("b", outer)
		})
	}); err != nil || outer != 2 || inner != 2 {
		t.Errorf("the functions have run %d and %d times, %v", outer, inner, err)
	}
	wantValue(t, &r, "b", 2)
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
	if runs != shardedregistry.MaxAttempts {
		t.Errorf("the function has run %d times, want %d", runs, shardedregistry.MaxAttempts)
	}
}

func TestTransactNilFunction(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	wantPanic(t, "shardedregistry: Transact called with a nil function", func() { r.Transact(nil) })
}

// A Tx is of no use when its function has ended, however that was.
func TestTransactIsOver(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	var kept *tx
	func() {
		defer func() { recover() }()
		r.Transact(func(tx *tx) error { kept = tx; panic("left") })
	}()
	wantPanic(t, "shardedregistry: Tx.Get called outside of the function of its Transact", func() { new(tx).Get("a") })
	wantPanic(t, "shardedregistry: Tx.Put called outside of the function of its Transact", func() { (*tx)(nil).Put("a", 1) })
	for name, call := range map[string]func(){
		"Get":    func() { kept.Get("a") },
		"Lookup": func() { kept.Lookup("a") },
		"Put":    func() { kept.Put("a", 1) },
		"Delete": func() { kept.Delete("a") },
	} {
		wantPanic(t, "shardedregistry: Tx."+name+" called outside of the function of its Transact", call)
	}
}

// A transaction in a transaction is one of its own.
func TestTransactInTransact(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	r.Put("a", 1)
	runs := 0
	err := r.Transact(func(outer *tx) error {
		runs++
		a, _ := outer.Get("a")
		if runs == 1 {
			if err := r.Transact(func(inner *tx) error {
				outer.Get("b") // also of the other, whose function has not ended
				inner.Put("a", 5)
				return inner.Put("inner", a)
			}); err != nil {
				return err
			}
		}
		outer.Get("c")
		return outer.Put("outer", a)
	})
	outer, _ := r.Get("outer")
	inner, _ := r.Get("inner")
	if err != nil || runs != 2 || outer != 5 || inner != 1 {
		t.Errorf("%v, %d runs, outer %d, inner %d, want <nil>, 2, 5, 1", err, runs, outer, inner)
	}
	// The conflict of the outer one passes through the inner one.
	runs = 0
	err = r.Transact(func(outer *tx) error {
		runs++
		outer.Get("a")
		return r.Transact(func(inner *tx) error {
			if runs == 1 {
				r.Put("a", 6)
			}
			outer.Get("d")
			return inner.Put("e", runs)
		})
	})
	if e, _ := r.Get("e"); err != nil || runs != 2 || e != 2 {
		t.Errorf("%v, %d runs, e is %d", err, runs, e)
	}
}

// What a transaction replaces is kept for no snapshot, if the last one has ended while Check ran.
func TestTransactKeepsNothing(t *testing.T) {
	var taking shardedregistry.Taking[string, int]
	r := shardedregistry.MustNew(config{Check: func(_ string, v int) error {
		if v == 2 {
			taking.Leave()
		}
		return nil
	}})
	mustPut(t, r, "a", 1)
	mustPut(t, r, "b", 1)
	taking = shardedregistry.Join(r)
	if err := r.Transact(func(tx *tx) error { tx.Put("a", 2); return tx.Put("b", 3) }); err != nil {
		t.Error(err)
	}
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d records are kept", n)
	}
}

// Of many keys, all or nothing is stored, and each is found again.
func TestTransactManyKeys(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	const n = 100
	for round := range 3 {
		err := r.Transact(func(tx *shardedregistry.Tx[int, int]) error {
			for k := range n {
				v, ok := tx.Get(k)
				if ok != (round > 0) || v != round*k {
					return fmt.Errorf("%d is %d, %v in round %d", k, v, ok, round)
				}
				tx.Put(k, -1)
				tx.Put(k, v+k)
			}
			for k := range n {
				if v, ok := tx.Get(k); !ok || v != (round+1)*k {
					return fmt.Errorf("%d is %d, %v afterwards", k, v, ok)
				}
			}
			return nil
		})
		if err != nil || r.Len() != n {
			t.Fatalf("round %d: %v, %d keys", round, err, r.Len())
		}
	}
	if err := r.Transact(func(tx *shardedregistry.Tx[int, int]) error {
		for k := range n {
			tx.Delete(k)
		}
		return nil
	}); err != nil || r.Len() != 0 || shardedregistry.Linked(r) != 0 {
		t.Errorf("%v, %d keys, %d linked", err, r.Len(), shardedregistry.Linked(r))
	}
}

// Keys are normalised, and those that are invalid are not there.
func TestTransactKeys(t *testing.T) {
	bad := errors.New("empty")
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(k string) (string, error) {
		if k == "" {
			return "", bad
		}
		return strings.ToLower(k), nil
	}})
	err := r.Transact(func(tx *tx) error {
		if _, ok := tx.Get(""); ok {
			t.Error("an invalid key is there")
		}
		if _, ok := tx.Lookup(""); ok {
			t.Error("an invalid key is found")
		}
		if _, ok := tx.Delete(""); ok {
			t.Error("an invalid key was deleted")
		}
		tx.Put("A", 1)
		if v, ok := tx.Get("a"); !ok || v != 1 {
			t.Errorf("a is %d, %v", v, ok)
		}
		return tx.Put("", 1)
	})
	if !errors.Is(err, shardedregistry.ErrInvalidKey) || !errors.Is(err, bad) || r.Len() != 0 {
		t.Errorf("Transact() = %v, %d keys", err, r.Len())
	}
	if err := r.Transact(func(tx *tx) error { tx.Put("a", 1); return tx.Put("A", 2) }); err != nil {
		t.Error(err)
	}
	var exists *shardedregistry.ExistsError
	if _, err := r.Create("a", 3); !errors.As(err, &exists) || exists.Stored != "A" {
		t.Errorf("Create() = %v, want an error that shows A", err)
	}
	f := shardedregistry.MustNew(shardedregistry.Config[float64, int]{})
	if err := f.Transact(func(tx *shardedregistry.Tx[float64, int]) error { return tx.Put(math.NaN(), 1) }); !errors.Is(err, shardedregistry.ErrInvalidKey) {
		t.Errorf("NaN: %v", err)
	}
}

// A value that Check or a unique index rejects leaves everything as it was.
func TestTransactRejected(t *testing.T) {
	negative := errors.New("negative")
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Check: func(_ string, v int) error {
			if v < 0 {
				return negative
			}
			return nil
		},
		UniqueIndexes: map[string]func(string, int) []string{"value": func(_ string, v int) []string { return []string{fmt.Sprint(v)} }},
	})
	mustPut(t, r, "a", 1)
	mustPut(t, r, "b", 2)
	for name, tt := range map[string]struct {
		do   func(*tx)
		want string
	}{
		"Check":               {func(tx *tx) { tx.Put("c", 3); tx.Put("a", -1) }, "negative"},
		"taken":               {func(tx *tx) { tx.Put("c", 3); tx.Put("d", 2) }, `shardedregistry: value of a unique index is taken: value "2" by b`},
		"taken by what stays": {func(tx *tx) { tx.Lookup("b"); tx.Put("a", 2) }, `shardedregistry: value of a unique index is taken: value "2" by b`},
		"twice":               {func(tx *tx) { tx.Put("c", 7); tx.Put("d", 7) }, `shardedregistry: value of a unique index is taken: value "7" by `},
	} {
		err := r.Transact(func(tx *tx) error { tt.do(tx); return nil })
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: Transact() = %v, want %s", name, err, tt.want)
		}
		a, _ := r.Lookup("a")
		b, _ := r.Lookup("b")
		_, keys, pins := shardedregistry.Pins(r)
		if got := fmt.Sprint(a, b, r.Len(), shardedregistry.Linked(r), keys, pins); got != "{a 1 1} {b 2 1} 2 2 2 2" {
			t.Errorf("%s: %s is left", name, got)
		}
	}
}

// Unique values are checked for what the keys hold afterwards.
func TestTransactMovesUniqueValues(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*tx)
		want string
	}{
		"swapped":    {func(tx *tx) { tx.Put("a", 2); tx.Put("b", 1) }, "a2 b1 c3"},
		"in a ring":  {func(tx *tx) { tx.Put("a", 2); tx.Put("b", 3); tx.Put("c", 1) }, "a2 b3 c1"},
		"passed on":  {func(tx *tx) { tx.Put("a", 2); tx.Put("b", 3); tx.Put("c", 4) }, "a2 b3 c4"},
		"renamed":    {func(tx *tx) { tx.Delete("b"); tx.Put("d", 2) }, "a1 d2 c3"},
		"kept":       {func(tx *tx) { tx.Put("a", 1); tx.Put("b", 4) }, "a1 b4 c3"},
		"taken back": {func(tx *tx) { tx.Put("a", 2); tx.Delete("b"); tx.Put("a", 4); tx.Put("b", 2) }, "a4 b2 c3"},
	} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
			UniqueIndexes: map[string]func(string, int) []string{"value": func(_ string, v int) []string { return []string{fmt.Sprint(v)} }},
		})
		mustPut(t, r, "a", 1)
		mustPut(t, r, "b", 2)
		mustPut(t, r, "c", 3)
		if err := r.Transact(func(tx *tx) error { tt.do(tx); return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range strings.Fields(tt.want) {
			key, value := want[:1], want[1:]
			if e, ok := r.LookupBy("value", value); !ok || e.Key != key || fmt.Sprint(e.Value) != value {
				t.Errorf("%s: LookupBy(%s) = %v, %v, want %s", name, value, e, ok, key)
			}
		}
		if _, keys, pins := shardedregistry.Pins(r); r.Len() != 3 || keys != 3 || pins != 3 {
			t.Errorf("%s: %d keys with %d pins of %d are left", name, r.Len(), pins, keys)
		}
	}
}

func TestTransactionSize(t *testing.T) {
	if n := shardedregistry.TransactionSize(); n > 192 {
		t.Errorf("a transaction of two keys takes %d bytes, more than a size class of 192", n)
	}
}

// Keys of a transaction may share a value of an index that is not unique.
func TestTransactSharesIndexValues(t *testing.T) {
	r := newTasks()
	err := r.Transact(func(tx *shardedregistry.Tx[string, task]) error {
		tx.Put("a", task{Owner: "ann", Email: "1"})
		return tx.Put("b", task{Owner: "ann", Email: "2"})
	})
	if err != nil {
		t.Errorf("Transact = %v", err)
	}
	agreeTasks(t, r)
}

// A transaction that helps a deletion, which has returned, tells nobody who has come since.
func TestTransactTellsOfNoOldDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		go func() { // a slow loop
			for range r.Watch(ctx) {
				<-release
			}
		}()
		synctest.Wait()
		r.Put("x", 1) // the slow loop's body blocks here
		synctest.Wait()
		r.Put("a", 1)
		r.Delete("a") // has returned
		var got []shardedregistry.Event[string, int]
		go func() {
			for e := range r.Watch(ctx) {
				got = append(got, e)
			}
		}()
		synctest.Wait()
		if err := r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			if _, ok := tx.Get("a"); ok {
				t.Error("a is there")
			}
			return tx.Put("b", 2)
		}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for _, e := range got {
			if e.Key == "a" {
				t.Errorf("a loop that began after Delete had returned yields %+v", e)
			}
		}
		close(release)
		cancel()
		synctest.Wait()
	})
}

// Times to live begin when the functions for all keys have run.
func TestTransactGrantsWholeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
			Check: func(k string, v int) error {
				if k == "b" {
					time.Sleep(2 * time.Second)
				}
				return nil
			},
			TTL: func(string, int) time.Duration { return time.Second },
		})
		if err := r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			return errors.Join(tx.Put("a", 1), tx.Put("b", 1))
		}); err != nil {
			t.Fatal(err)
		}
		stored := time.Now()
		synctest.Wait()
		if _, ok := r.Get("a"); !ok {
			t.Errorf("expired %v after it was stored, %v after Transact began", time.Since(stored), time.Since(began))
		}
	})
}
