//go:build !modelcheck

package histories_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	"github.com/latchfree/latchfree/fuzz/internal/history"
	reg "github.com/latchfree/latchfree/shardedregistry"
)

type entry = reg.Entry[string, int]

// registry is what is used of a shardedregistry.Registry.
type registry interface {
	Create(k string, v int) (reg.Version, error)
	Get(k string) (int, bool)
	Lookup(k string) (entry, bool)
	Put(k string, v int) (reg.Version, error)
	Update(k string, fn func(int) (int, error)) (entry, error)
	UpdateIf(k string, version reg.Version, v int) (reg.Version, error)
	Compute(k string, fn func(old int, exists bool) (int, reg.ComputeOp, error)) (entry, bool, error)
	Delete(k string) (entry, bool)
	DeleteIf(k string, version reg.Version) error
	DeleteFunc(del func(string, int) bool) int
	Entries() iter.Seq[entry]
	Len() int
}

// registryKeys are the spellings of each key.
var registryKeys = [][]string{{"backup", "Backup"}, {"resize", "RESIZE"}, {"drain", "dRAIN"}}

// newRegistry returns a registry of so few tables that they have to grow, and
// whose Normalize takes its time.
func newRegistry(r *rand.Rand) *reg.Registry[string, int] {
	return reg.MustNew(reg.Config[string, int]{Shards: 1 + r.IntN(2), Normalize: func(k string) (string, error) {
		if len(k) > 5 { // some keys only
			runtime.Gosched()
		}
		return strings.ToLower(k), nil
	}})
}

// registryTrial uses a registry with three keys, and many more to resize it.
func registryTrial(fresh func(*rand.Rand) registry) func(*rand.Rand) history.Trial[held] {
	return func(random *rand.Rand) history.Trial[held] {
		r := fresh(random)
		return history.Trial[held]{
			Clients: 4, Value: r,
			Work: func(client *history.Client[held]) {
				w := &registryClient{Client: client, registry: r}
				w.Rounds(len(registryKeys), w.operate, w.tide)
			},
			After: func(client *history.Client[held]) {
				w := &registryClient{Client: client, registry: r}
				n := 0
				for k := range registryKeys {
					if w.lookup(k); w.knows[k] != 0 {
						n++
					}
				}
				if got := r.Len(); got != n {
					w.Errorf("in the end Len is %d, want %d", got, n)
				}
			},
		}
	}
}

// registryClient is a goroutine that uses a registry.
type registryClient struct {
	*history.Client[held]
	registry registry
	made     int            // values, all different
	knows    [3]reg.Version // the versions last seen
}

func (w *registryClient) fresh() int {
	w.made++
	return 1000*(1+w.ID) + w.made
}

func (w *registryClient) operate(k int) {
	name := registryKeys[k][w.IntN(2)]
	e := registryEvent{spelled: name}
	from := w.Now()
	var version reg.Version
	var err error
	switch w.IntN(15) {
	case 0, 1:
		e.op, e.value = "Create", w.fresh()
		version, err = w.registry.Create(name, e.value)
	case 2:
		e.op, e.value = "Put", w.fresh()
		version, err = w.registry.Put(name, e.value)
	case 3:
		e.op, e.value, e.version = "UpdateIf", w.fresh(), int(w.knows[k])
		version, err = w.registry.UpdateIf(name, w.knows[k], e.value)
	case 4:
		e.op, e.version = "DeleteIf", int(w.knows[k])
		err = w.registry.DeleteIf(name, w.knows[k])
	case 5:
		w.delete(k, name)
		return
	case 6, 7:
		w.change(k, name, "Update")
		return
	case 8:
		w.change(k, name, "createOrUpdate")
		return
	case 9:
		w.entries()
		return
	case 10:
		v, ok := w.registry.Get(name)
		w.get(k, from, name, v, ok)
		return
	case 11:
		w.deleteFunc(k)
		return
	case 12, 13:
		w.compute(k, name)
		return
	default:
		w.lookup(k)
		return
	}
	e.got = held{e.value, int(version), ""}
	w.result(k, &e, err)
	w.Add(k, from, e)
}

// result fills in the outcome of what returned err.
func (w *registryClient) result(k int, e *registryEvent, err error) {
	var exists *reg.ExistsError
	var conflict *reg.ConflictError
	switch {
	case err == nil && e.op == "DeleteIf":
		e.outcome, e.got = "deleted", held{}
	case err == nil:
		e.outcome = "stored"
		w.knows[k] = reg.Version(e.got.version)
		return
	case errors.As(err, &exists):
		e.outcome, e.got = "exists", held{0, int(exists.Version), fmt.Sprint(exists.Stored)}
		w.knows[k] = exists.Version
		if exists.Given != e.spelled {
			w.Errorf("%v of %q", err, e.spelled)
		}
	case errors.As(err, &conflict):
		e.outcome, e.got = "conflict", held{version: int(conflict.Have)}
		w.knows[k] = conflict.Have
		if int(conflict.Want) != e.version {
			w.Errorf("%v for version %d", err, e.version)
		}
	case err == errFunction:
		e.outcome, e.got = "failed", held{}
	case err == reg.ErrNotFound:
		e.outcome, e.got = "absent", held{}
	default:
		w.Errorf("%v: %v", e, err)
		e.outcome = "absent"
	}
}

// get notes a Get, which does not tell the version.
func (w *registryClient) get(k int, from int64, name string, v int, ok bool) {
	if !ok {
		w.Add(k, from, registryEvent{op: "Get", spelled: name, outcome: "absent"})
		return
	}
	w.Add(k, from, registryEvent{op: "Get", spelled: name, outcome: "seen", saw: v})
}

func (w *registryClient) lookup(k int) {
	name := registryKeys[k][0]
	from := w.Now()
	e, ok := w.registry.Lookup(name)
	w.found(k, from, registryEvent{op: "Lookup", spelled: name}, e, ok)
}

func (w *registryClient) found(k int, from int64, e registryEvent, got entry, ok bool) {
	e.outcome = "absent"
	if ok {
		e.outcome, e.got = "found", held{got.Value, int(got.Version), ""}
	}
	w.knows[k] = got.Version
	w.Add(k, from, e)
	if ok && got.Key != registryKeys[k][0] {
		w.Errorf("%v has the key %q", e, got.Key)
	}
}

func (w *registryClient) delete(k int, name string) {
	from := w.Now()
	got, ok := w.registry.Delete(name)
	e := registryEvent{op: "Delete", spelled: name, outcome: "absent"}
	if ok {
		e.outcome, e.got = "deleted", held{got.Value, int(got.Version), ""}
	}
	w.Add(k, from, e)
}

// deleteFunc deletes one key, if it has the value that the function has seen it with last.
func (w *registryClient) deleteFunc(k int) {
	e := registryEvent{op: "DeleteFunc", outcome: "absent"}
	from := w.Now()
	n := w.registry.DeleteFunc(func(key string, v int) bool {
		if key != registryKeys[k][0] {
			return false
		}
		e.saw = v
		runtime.Gosched()
		return true
	})
	if n == 1 {
		e.outcome = "deleted"
	} else {
		e.saw = 0
	}
	w.Add(k, from, e)
	if n > 1 {
		w.Errorf("DeleteFunc deleted one key %d times", n)
	}
}

// compute runs a Compute whose function may take its time, change the key itself, and
// decide by what it is given.
func (w *registryClient) compute(k int, name string) {
	e := registryEvent{op: "Compute", spelled: name, value: w.fresh()}
	asks, selfish, ran := w.IntN(3), w.IntN(8) == 0, false
	var wanted reg.ComputeOp
	from := w.Now()
	got, present, err := w.registry.Compute(name, func(old int, exists bool) (int, reg.ComputeOp, error) {
		if exists != (old != 0) {
			w.Errorf("Compute gave its function %d, %v", old, exists)
		}
		if e.saw = old; !ran && selfish {
			w.delete(k, name)
		}
		ran = true
		runtime.Gosched()
		wanted = reg.ComputeOp((asks + old) % 3)
		return e.value, wanted, nil
	})
	if err != nil || present != (wanted == reg.UpdateOp || wanted == reg.CancelOp && e.saw != 0) {
		w.Errorf("%v, and the function asked for %v: %v, %v, %v", e, wanted, got, present, err)
	}
	e.got = held{got.Value, int(got.Version), ""}
	switch {
	case wanted == reg.UpdateOp:
		e.outcome = "stored"
	case e.saw == 0:
		e.outcome, e.value = "absent", 0
	case wanted == reg.DeleteOp:
		e.outcome, e.value = "deleted", 0
	default:
		e.outcome, e.value = "found", 0
	}
	if present {
		w.knows[k] = got.Version
	}
	w.Add(k, from, e)
}

var errFunction = errors.New("no capacity")

// change runs an Update, or a Compute of a key present or not, whose function may take its time, change
// the key itself, and end in every way.
func (w *registryClient) change(k int, name, op string) {
	e := registryEvent{op: op, spelled: name, value: w.fresh()}
	ending := cacheEnding(w.IntN(9))
	selfish := w.IntN(8) == 0
	ran := false
	fn := func(old int, exists bool) (int, error) {
		if exists != (old != 0) {
			w.Errorf("%s gave its function %d, %v", op, old, exists)
		}
		if e.saw = old; !ran && selfish {
			w.delete(k, name)
		}
		ran = true
		runtime.Gosched()
		switch ending {
		case inError:
			return 1, errFunction
		case inPanic:
			panic(errFunction)
		case inGoexit:
			runtime.Goexit()
		}
		return e.value, nil
	}
	var got entry
	var err error
	call := func() {
		if op == "Update" {
			got, err = w.registry.Update(name, func(old int) (int, error) { return fn(old, true) })
		} else {
			got, err = adapt.CreateOrUpdate(w.registry, name, fn)
		}
	}
	from := w.Now()
	if ending == inPanic || ending == inGoexit {
		returned, panicked := w.Apart(call)
		if ran && !returned {
			err = errFunction
		}
		if ran && err != reg.ErrNotFound && (returned || (panicked != nil) != (ending == inPanic)) {
			w.Errorf("%s returned: %v, panicked: %v, though its function ended %v", op, returned, panicked, ending)
		}
	} else {
		call()
	}
	if err != nil && err != errFunction {
		e.saw = 0 // of a run that counts for nothing
	}
	e.got = held{got.Value, int(got.Version), ""}
	w.result(k, &e, err)
	w.Add(k, from, e)
}

// entries notes what Entries says of each key: what was there when it was
// yielded, or nothing at some moment of the loop.
func (w *registryClient) entries() {
	from := w.Now()
	var yielded [3]bool
	for e := range w.registry.Entries() {
		for k, names := range registryKeys {
			if e.Key != names[0] {
				continue
			}
			if yielded[k] {
				w.Errorf("Entries yields %q twice", e.Key)
			}
			yielded[k] = true
			w.found(k, from, registryEvent{op: "Entries"}, e, true)
		}
	}
	for k, there := range yielded {
		if !there {
			w.found(k, from, registryEvent{op: "Entries"}, entry{}, false)
		}
	}
}

func (w *registryClient) tide() {
	w.Tide(func(k int) {
		if _, err := w.registry.Create(fmt.Sprint(k), k); err != nil {
			w.Errorf("Create(%d): %v", k, err)
		}
	}, func(k int) {
		if e, ok := w.registry.Delete(fmt.Sprint(k)); e.Value != k || !ok {
			w.Errorf("Delete(%d) = %v, %v", k, e, ok)
		}
	})
}

func TestRegistryHistories(t *testing.T) {
	cover := history.Check(t, registryTrial(func(r *rand.Rand) registry { return newRegistry(r) }),
		"Create stored", "Create exists", "Put stored", "UpdateIf stored", "UpdateIf absent", "UpdateIf conflict",
		"DeleteIf deleted", "DeleteIf absent", "DeleteIf conflict", "Delete deleted", "Delete absent",
		"Update stored", "Update absent", "Update failed", "createOrUpdate stored", "createOrUpdate failed",
		"DeleteFunc deleted", "DeleteFunc absent",
		"Compute stored", "Compute deleted", "Compute found", "Compute absent",
		"Get seen", "Get absent", "Lookup found", "Lookup absent", "Entries found", "Entries absent")
	cover.RequireResizes(t)
}

// The same where four of six spellings are Refs that all clients share.
func TestRegistryRefHistories(t *testing.T) {
	cover := history.Check(t, registryTrial(func(r *rand.Rand) registry { return withRefs(newRegistry(r)) }),
		"Create stored", "Create exists", "Put stored", "UpdateIf stored", "UpdateIf absent", "UpdateIf conflict",
		"DeleteIf deleted", "DeleteIf absent", "DeleteIf conflict", "Delete deleted", "Delete absent",
		"Update stored", "Update absent", "Update failed", "createOrUpdate stored", "createOrUpdate failed",
		"Compute stored", "Compute deleted", "Compute found", "Compute absent",
		"Get seen", "Get absent", "Lookup found", "Lookup absent")
	cover.RequireResizes(t)
}

// withRefs returns r with Refs for all spellings of two keys.
func withRefs(r *reg.Registry[string, int]) registry {
	refs := map[string]reg.Ref[string, int]{}
	for _, names := range registryKeys[1:] {
		for _, name := range names {
			refs[name] = r.Ref(name)
		}
	}
	return adapt.ByRefs(r, refs)
}
