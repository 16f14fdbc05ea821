//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Whatever shows a value shows a clone: who changes it changes nothing that the
// registry holds.
func TestCloneOfWhatIsFoundAndWatched(t *testing.T) {
	digit := func(_ string, v *int) []string { return []string{strconv.Itoa(*v % 10)} }
	r := shardedregistry.MustNew(shardedregistry.Config[string, *int]{
		Clone:         func(v *int) *int { w := *v; return &w },
		Indexes:       map[string]func(string, *int) []string{"digit": digit},
		UniqueIndexes: map[string]func(string, *int) []string{"number": func(_ string, v *int) []string { return []string{strconv.Itoa(*v)} }},
	})
	given := 17
	mustPut(t, r, "a", &given)
	shown := 0
	spoil := func(how string, v *int) {
		t.Helper()
		shown++
		if *v != 17 {
			t.Errorf("%s shows %d, want 17", how, *v)
		}
		*v = 99
		if now, _ := r.Get("a"); *now != 17 {
			t.Fatalf("what %s shows is what the registry holds", how)
		}
	}
	spoil("Put", &given)
	for e := range r.ByIndex("digit", "7") {
		spoil("ByIndex", e.Value)
	}
	if e, ok := r.LookupBy("number", "17"); ok {
		spoil("LookupBy", e.Value)
	} else {
		t.Error("LookupBy finds nothing")
	}
	e, err := r.Wait(t.Context(), "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	spoil("Wait", e.Value)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // for a watch that shows nothing
	defer cancel()
	for s, event := range r.WatchSnapshot(ctx) {
		if s != nil {
			v, _ := s.Get("a")
			spoil("a snapshot", v)
			given = 17
			mustPut(t, r, "a", &given) // is told to this loop
			continue
		}
		spoil("WatchSnapshot", event.Value)
		break
	}
	for event := range r.Watch(changing(ctx, t, r)) {
		spoil("Watch", event.Value)
		break
	}
	if shown != 7 {
		t.Errorf("%d of 7 have shown a value", shown)
	}
}

// changing returns a context that asks for a change of a when the loop that is
// given it has begun: the first to look at it is a loop that watches already.
func changing(ctx context.Context, t *testing.T, r *shardedregistry.Registry[string, *int]) context.Context {
	return &asked{Context: ctx, then: func() {
		v := 17
		mustPut(t, r, "a", &v)
	}}
}

// asked is a context that calls a function when it is asked for its error for the
// first time.
type asked struct {
	context.Context
	then func()
}

func (a *asked) Err() error {
	if then := a.then; then != nil {
		a.then = nil
		then()
	}
	return a.Context.Err()
}

// CreateMany goes on where a value is rejected, and says which key it was.
func TestCreateManyRejected(t *testing.T) {
	errOdd := errors.New("odd")
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Check: func(_ string, v int) error {
			if v == 1 {
				return errOdd
			}
			return nil
		},
		UniqueIndexes: map[string]func(string, int) []string{"half": func(_ string, v int) []string { return []string{strconv.Itoa(v / 4)} }},
	})
	n, err := r.CreateMany(slicesAll([]string{"a", "b", "c", "d", "e"})) // 0 to 4
	if n != 2 || r.Len() != 2 || !errors.Is(err, errOdd) || !errors.Is(err, shardedregistry.ErrNotUnique) {
		t.Fatalf("CreateMany = %d, %v, and %d keys", n, err, r.Len())
	}
	var rejected *shardedregistry.KeyError
	if !errors.As(err, &rejected) || rejected.Key != "b" || rejected.Err != errOdd {
		t.Errorf("CreateMany = %v, with %v", err, rejected)
	}
	wantValue(t, r, "a", 0)
	wantValue(t, r, "e", 4)
}
