//go:build !modelcheck

package shardedregistry_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// What a loop keeps of one key keeps nothing of those that changed beside it.
func TestWatchForgetsNeighbours(t *testing.T) {
	type name struct{ string }
	var r shardedregistry.Registry[any, int]
	w := shardedregistry.Subscribe(&r)
	defer w.Leave()
	stays, goes := &name{"stays"}, &name{"goes"}
	gone := weak.Make(goes)
	for _, k := range []*name{stays, goes, &name{"last"}} { // in one batch
		mustPut[any](t, &r, k, 1)
	}
	w.Drain()
	r.Delete(goes)
	w.Drain()
	for i := range 200 { // the loop looks through what it keeps
		k := &name{key(i)}
		mustPut[any](t, &r, k, i)
		r.Delete(k)
		w.Drain()
	}
	goes = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("a key that is gone is kept")
	}
	wantValue[any](t, &r, stays, 1)
}
