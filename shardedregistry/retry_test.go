//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// alternate changes its key each time it runs, from present to absent and back.
const alternate = "DeleteIf if present, else Create"

// selfish are functions that change their own key each time they run.
var selfish = map[string]func(r *shardedregistry.Registry[string, int]){
	"Put": func(r *shardedregistry.Registry[string, int]) { r.Put("a", 1) },
	"Update": func(r *shardedregistry.Registry[string, int]) {
		r.Update("a", func(v int) (int, error) { return v + 1, nil })
	},
	"UpdateIf": func(r *shardedregistry.Registry[string, int]) {
		e, _ := r.Lookup("a")
		r.UpdateIf("a", e.Version, 1)
	},
	"Put, Delete, Create": func(r *shardedregistry.Registry[string, int]) {
		r.Put("a", 1)
		r.Delete("a")
		r.Create("a", 1)
	},
	alternate: func(r *shardedregistry.Registry[string, int]) {
		if e, ok := r.Lookup("a"); ok {
			r.DeleteIf("a", e.Version)
		} else {
			r.Create("a", 1)
		}
	},
}

// T7b: a function that changes its own key ends in ErrTooManyRetries, whatever
// others do meanwhile, and nothing is left of it.
func TestFunctionKeepsChangingItsKey(t *testing.T) {
	for name, change := range selfish {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
			mustPut(t, r, "a", 0)
			var stop atomic.Bool
			others := make(chan struct{})
			go func() { // another goroutine in the same shard, now and then at the same key
				defer close(others)
				for i := 0; !stop.Load(); i++ {
					r.Put(key(i%100), i)
					// A key that was absent, that others create and that
					// alternate deletes is absent again, and may be created.
					if i%50 == 0 && name != alternate {
						r.Put("a", i)
					}
					runtime.Gosched()
				}
			}()
			runs := 0
			within(t, func() {
				_, err := createOrUpdate(r, "a", func(old int, _ bool) (int, error) {
					runs++
					change(r)
					return old + 1, nil
				})
				wantIs(t, "Compute", err, shardedregistry.ErrTooManyRetries)
			})
			stop.Store(true)
			await(t, others)
			if runs != shardedregistry.MaxAttempts {
				t.Errorf("the function ran %d times, want %d", runs, shardedregistry.MaxAttempts)
			}
			mustPut(t, r, "a", 7)
			wantValue(t, r, "a", 7)
		})
	}
}

func TestUpdateKeepsChangingItsKey(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	runs := 0
	_, err := r.Update("a", func(v int) (int, error) {
		runs++
		mustPut(t, &r, "a", runs)
		return -1, nil
	})
	wantIs(t, "Update", err, shardedregistry.ErrTooManyRetries)
	if runs != shardedregistry.MaxAttempts {
		t.Errorf("the function ran %d times, want %d", runs, shardedregistry.MaxAttempts)
	}
	wantValue(t, &r, "a", runs) // its last own change, and not its result
}

// A call that gives up because its function changes the key has not made a pause between all of
// its attempts, which would take fifty times as long as they do.
func TestFewPausesBeforeGivingUp(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	fn := func(v int) (int, error) {
		_, err := r.Put("a", v)
		return v, err
	}
	var gaveUp, attempts time.Duration
	for range 3 { // each is too long when others take the processor
		begin := time.Now()
		_, err := r.Update("a", fn)
		gaveUp = time.Since(begin)
		wantIs(t, "Update", err, shardedregistry.ErrTooManyRetries)

		begin = time.Now()
		for v := range shardedregistry.MaxAttempts {
			_, _ = fn(v)
		}
		if attempts = time.Since(begin); gaveUp < 10*attempts {
			return
		}
	}
	t.Errorf("a call that gives up takes %v, its function alone %v", gaveUp, attempts)
}

// The change may be made by a function of a function.
func TestNestedFunctionsChangeAKey(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	mustPut(t, &r, "b", 0)
	_, err := r.Update("a", func(v int) (int, error) {
		_, err := r.Update("b", func(w int) (int, error) {
			mustPut(t, &r, "a", v+1)
			return w + 1, nil
		})
		return v, err
	})
	wantIs(t, "Update", err, shardedregistry.ErrTooManyRetries)
	if e, _ := r.Lookup("b"); e.Value != shardedregistry.MaxAttempts {
		t.Errorf("b holds %v", e)
	}
}

// A function that deletes its own key finds it absent when it runs again.
func TestFunctionDeletesItsKey(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	_, err := r.Update("a", func(v int) (int, error) { r.Delete("a"); return v, nil })
	wantIs(t, "Update", err, shardedregistry.ErrNotFound)
	mustPut(t, &r, "a", 0)
	var existed []bool
	e, err := createOrUpdate(&r, "a", func(_ int, exists bool) (int, error) {
		existed = append(existed, exists)
		r.Delete("a")
		return 5, nil
	})
	if err != nil || e.Value != 5 || len(existed) != 2 || !existed[0] || existed[1] {
		t.Errorf("Compute = %v, %v after it existed %v; want value 5 after true, false", e, err, existed)
	}
}

// A function that changes its own key in all runs but the last that it has gets through.
func TestOccasionalOwnChange(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	runs := 0
	_, err := r.Update("a", func(v int) (int, error) {
		if runs++; runs < shardedregistry.MaxAttempts {
			r.Put("a", -runs)
		}
		return runs, nil
	})
	if err != nil {
		t.Errorf("Update = %v, want success in the run that left the key alone", err)
	}
	wantValue(t, &r, "a", shardedregistry.MaxAttempts)
}

// Contention alone never gives ErrTooManyRetries. The function yields, so that it loses as
// often as one can, and no call comes near the bound.
func TestContentionNeverGivesUp(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	const workers = 8
	each := 1000
	if testing.Short() {
		each = 100
	}
	var runs, most atomic.Int64
	hammer(t, workers, func(int) {
		for range each {
			mine := int64(0)
			_, err := r.Update("a", func(v int) (int, error) {
				mine++
				runtime.Gosched() // somebody else changes the key now
				return v + 1, nil
			})
			if err != nil {
				t.Errorf("Update = %v", err)
			}
			runs.Add(mine)
			for was := most.Load(); mine > was && !most.CompareAndSwap(was, mine); was = most.Load() {
			}
		}
	})
	wantValue(t, &r, "a", workers*each)
	t.Logf("%d runs for %d updates, at most %d for one", runs.Load(), workers*each, most.Load())
	if most.Load() > int64(shardedregistry.MaxAttempts/10) {
		t.Errorf("a call ran its function %d times, a tenth of what ends one is %d", most.Load(), shardedregistry.MaxAttempts/10)
	}
}

// A goroutine that always wins for a while does not make another give up.
func TestAlwaysOvertaken(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 0)
	ask, answer := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answer)
		for range ask {
			mustPut(t, r, "a", 0)
			answer <- struct{}{}
		}
	}()
	const lost = 2000
	runs := 0
	e, err := r.Update("a", func(int) (int, error) {
		if runs++; runs <= lost {
			ask <- struct{}{}
			<-answer
		}
		return runs, nil
	})
	close(ask)
	<-answer
	if err != nil || e.Value != lost+1 {
		t.Errorf("Update = %v, %v; want success after %d lost attempts", e, err, lost)
	}
}
