//go:build !modelcheck

package shardedregistry_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
				_, err := r.Upsert("a", func(old int, _ bool) (int, error) {
					runs++
					change(r)
					return old + 1, nil
				})
				wantIs(t, "Upsert", err, shardedregistry.ErrTooManyRetries)
			})
			stop.Store(true)
			await(t, others)
			if least := shardedregistry.Patience + shardedregistry.Proofs; runs < least {
				t.Errorf("the function ran %d times, want at least %d", runs, least)
			}
			if n := shardedregistry.Suspects(r); n != 0 {
				t.Errorf("%d suspects are still listed", n)
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
	if want := shardedregistry.Patience + shardedregistry.Proofs; runs != want {
		t.Errorf("the function ran %d times, want %d", runs, want)
	}
	wantValue(t, &r, "a", runs) // its last own change, and not its result
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
	if e, _ := r.Lookup("b"); e.Value != shardedregistry.Patience+shardedregistry.Proofs {
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
	e, err := r.Upsert("a", func(_ int, exists bool) (int, error) {
		existed = append(existed, exists)
		r.Delete("a")
		return 5, nil
	})
	if err != nil || e.Value != 5 || len(existed) != 2 || !existed[0] || existed[1] {
		t.Errorf("Upsert = %v, %v after it existed %v; want value 5 after true, false", e, err, existed)
	}
}

// A function that changes its own key now and then gets through: contention
// makes it run often, but an attempt without an own change acquits it.
func TestOccasionalOwnChange(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	runs := 0
	_, err := r.Update("a", func(v int) (int, error) {
		if runs++; runs < shardedregistry.Patience+shardedregistry.Proofs {
			mustPut(t, &r, "a", -runs)
		}
		return runs, nil
	})
	if err != nil {
		t.Errorf("Update = %v, want success in the run that left the key alone", err)
	}
	wantValue(t, &r, "a", shardedregistry.Patience+shardedregistry.Proofs)
}

// A function that panics while it is a detector is not listed any more.
func TestDetectorLeaves(t *testing.T) {
	for how, exit := range leave {
		var r shardedregistry.Registry[string, int]
		mustPut(t, &r, "a", 0)
		listed := 0
		left(t, func() {
			runs := 0
			_, _ = r.Update("a", func(v int) (int, error) {
				if runs++; runs > shardedregistry.Patience {
					listed = shardedregistry.Suspects(&r)
					exit()
				}
				mustPut(t, &r, "a", runs)
				return -1, nil
			})
		})
		if listed != 1 || shardedregistry.Suspects(&r) != 0 {
			t.Errorf("%s: %d suspects were listed and %d are left; want 1 and 0", how, listed, shardedregistry.Suspects(&r))
		}
	}
}

// Contention alone never gives ErrTooManyRetries. The function yields, so that
// it loses far more often than attemptsBeforeDetecting allows.
func TestContentionNeverGivesUp(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	const workers = 8
	each := 1000
	if testing.Short() {
		each = 100
	}
	var runs atomic.Int64
	hammer(t, workers, func(int) {
		for range each {
			_, err := r.Update("a", func(v int) (int, error) {
				runs.Add(1)
				runtime.Gosched() // somebody else changes the key now
				return v + 1, nil
			})
			if err != nil {
				t.Errorf("Update = %v", err)
			}
		}
	})
	wantValue(t, &r, "a", workers*each)
	t.Logf("%d runs for %d updates", runs.Load(), workers*each)
}

// However many are listed, each is caught by its own goroutine.
func TestManySuspects(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	n := 2000
	if testing.Short() {
		n = 200
	}
	hammer(t, 4, func(worker int) {
		mine, other := key(worker%2), key(worker%2+1)
		for range n {
			shardedregistry.Listed(r, mine, func(own *bool) {
				mustPut(t, r, other, 1)
				if *own {
					t.Error("caught by a change of another key")
				}
				mustPut(t, r, mine, 1)
				if !*own {
					t.Error("not caught by a change of its own")
				}
			})
		}
	})
	if n := shardedregistry.Suspects(r); n != 0 {
		t.Errorf("%d suspects are still listed", n)
	}
}

func TestDetectorList(t *testing.T) {
	var l shardedregistry.SuspectList
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	hammer(t, 3, func(int) {
		for range n {
			listed, drop := l.Push()
			if !listed() {
				t.Error("not listed after push")
			}
			drop()
			if listed() {
				t.Error("listed after drop")
			}
		}
	})
}

// A goroutine that always wins makes another a detector again and again without
// ever proving anything, not by changes of other keys either.
func TestDetectorIsAcquitted(t *testing.T) {
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
	lost := 5 * (shardedregistry.Patience + shardedregistry.Proofs)
	runs := 0
	e, err := r.Update("a", func(int) (int, error) {
		if runs++; runs <= lost {
			ask <- struct{}{}
			<-answer
			mustPut(t, r, "b", runs)
		}
		return runs, nil
	})
	close(ask)
	<-answer
	if err != nil || e.Value != lost+1 {
		t.Errorf("Update = %v, %v; want success after %d lost attempts", e, err, lost)
	}
}
