//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// What the function makes beside an error is kept, if it is clear that it is a
// value: what a KeyErrors says nothing about, or what is not zero.
func TestManyKeepsValuesBesideErrors(t *testing.T) {
	errMoved := errors.New("moved")
	for name, tt := range map[string]struct {
		made map[int]int
		err  error
		want map[int]int
		errs map[int]error // of the keys 1 to 4; ErrNotFound: left out
	}{
		"KeyErrors": {map[int]int{1: 10, 2: 0, 3: 30}, oncecache.KeyErrors[int]{3: errRefused},
			map[int]int{1: 10, 2: 0}, map[int]error{3: errRefused, 4: oncecache.ErrNotFound}},
		"KeyErrors, wrapped": {map[int]int{1: 10}, fmt.Errorf("query: %w", oncecache.KeyErrors[int]{2: errRefused, 3: errMoved}),
			map[int]int{1: 10}, map[int]error{2: errRefused, 3: errMoved, 4: oncecache.ErrNotFound}},
		"KeyErrors of other keys": {map[int]int{1: 10, 2: 20, 3: 30, 4: 0}, oncecache.KeyErrors[int]{9: errRefused},
			map[int]int{1: 10, 2: 20, 3: 30, 4: 0}, nil},
		"an error": {map[int]int{1: 10, 2: 0}, errRefused,
			map[int]int{1: 10}, map[int]error{2: errRefused, 3: errRefused, 4: errRefused}},
		"an error and nothing":       {nil, errRefused, map[int]int{}, map[int]error{1: errRefused, 2: errRefused, 3: errRefused, 4: errRefused}},
		"ErrNotFound":                {map[int]int{1: 10}, oncecache.ErrNotFound, map[int]int{1: 10}, map[int]error{2: oncecache.ErrNotFound, 3: oncecache.ErrNotFound, 4: oncecache.ErrNotFound}},
		"no error, and a zero value": {map[int]int{1: 0}, nil, map[int]int{1: 0}, map[int]error{2: oncecache.ErrNotFound}},
	} {
		for which := range contexts(t) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var closed []int
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(k, v int) error {
					mu.Lock()
					defer mu.Unlock()
					closed = append(closed, v)
					return nil
				}})
				waits := map[int]*call{}
				got, err := c.GetOrCreateMany(contexts(t)[which], []int{1, 2, 3, 4}, func(context.Context, []int) (map[int]int, error) {
					for k := 1; k <= 4; k++ {
						waits[k] = startCall(func() (int, error) { return c.Wait(t.Context(), k) })
					}
					synctest.Wait()
					made := maps.Clone(tt.made)
					if made != nil {
						made[8] = 80
					}
					return made, tt.err
				})
				if !maps.Equal(got, tt.want) {
					t.Errorf("%s, %s: %v, want %v", name, which, got, tt.want)
				}
				want := oncecache.KeyErrors[int]{}
				for k, err := range tt.errs {
					if err != oncecache.ErrNotFound {
						want[k] = err
					}
				}
				var each oncecache.KeyErrors[int]
				if errors.As(err, &each); !maps.Equal(each, want) || len(want) == 0 && err != nil {
					t.Errorf("%s, %s: error %v, want %v", name, which, err, want)
				}
				for k, x := range waits {
					if r := x.wait(t); r.value != tt.want[k] || tt.errs[k] != nil && r.err != tt.errs[k] {
						t.Errorf("%s, %s: who waits for %d gets %+v", name, which, k, r)
					}
				}
				synctest.Wait()
				kept := maps.Collect(c.All())
				if !maps.Equal(kept, tt.want) {
					t.Errorf("%s, %s: kept %v, want %v", name, which, kept, tt.want)
				}
				var drop []int
				for k, v := range tt.made {
					if _, ok := tt.want[k]; !ok && v != 0 {
						drop = append(drop, v)
					}
				}
				if tt.made != nil {
					drop = append(drop, 80) // that nobody has asked for
				}
				slices.Sort(drop)
				if slices.Sort(closed); !slices.Equal(closed, drop) {
					t.Errorf("%s, %s: closed %v, want %v", name, which, closed, drop)
				}
				if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 || len(closed) != len(kept)+len(drop) {
					t.Errorf("%s, %s: %v, closed %v", name, which, err, closed)
				}
			})
		}
	}
}

// A KeyErrors has each error once, in an order, and is what it wraps.
func TestKeyErrors(t *testing.T) {
	errMoved := &strange{"moved"}
	e := oncecache.KeyErrors[int]{9: errMoved}
	for k := range 7 {
		e[k] = errRefused
	}
	for range 10 {
		if got, want := e.Error(), "0, 1, 2, 3, 4 and 2 more: connection refused\n9: moved"; got != want {
			t.Fatalf("the text is %q, want %q", got, want)
		}
	}
	wrapped := fmt.Errorf("batch: %w", e)
	var found *strange
	var each oncecache.KeyErrors[int]
	if !errors.Is(wrapped, errRefused) || !errors.As(wrapped, &found) || found != errMoved || !errors.As(wrapped, &each) || len(each) != 8 {
		t.Errorf("%v, %v", found, each)
	}
	if errors.Is(wrapped, oncecache.ErrClosed) {
		t.Error("it is an error that it has not")
	}
}

type strange struct{ text string }

func (e *strange) Error() string { return e.text }

// A batch that is larger than the bound returns nothing that is closed; what is
// too many goes when it has returned, and something else comes.
func TestManyAboveTheBound(t *testing.T) {
	const n, bound = 40, 4
	for which := range contexts(t) {
		synctest.Test(t, func(t *testing.T) {
			var c *oncecache.Cache[int, int]
			var returned atomic.Bool
			c = oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: bound, Close: func(k, _ int) error {
				if !returned.Load() {
					t.Errorf("%d is closed before the batch returns", k)
				}
				return nil
			}})
			var keys []int
			for k := range n + 1 {
				keys = append(keys, k)
			}
			got, err := c.GetOrCreateMany(contexts(t)[which], keys, squares)
			returned.Store(true)
			if len(got) != n+1 || err != nil {
				t.Errorf("%s: %d values, %v", which, len(got), err)
			}
			synctest.Wait()
			c.Set(-1, 1)
			synctest.Wait()
			if left, closed := c.Len(), c.Stats().Closed; left != bound || closed != n+2-bound {
				t.Errorf("%s: %d are left, %d closed", which, left, closed)
			}
			if err := c.Close(t.Context()); err != nil || c.Stats().Closed != n+2 || oncecache.Pending(c) != 0 {
				t.Errorf("%s: %v, %+v", which, err, c.Stats())
			}
		})
	}
}
