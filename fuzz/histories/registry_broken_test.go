//go:build !modelcheck

package histories_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	reg "github.com/latchfree/latchfree/shardedregistry"
)

func TestBrokenRegistryHistories(t *testing.T) {
	for name, broken := range map[string]func(registry) registry{
		"a Create that looks first":     func(r registry) registry { return lookThenPut{r} },
		"an Update that is lost":        func(r registry) registry { return lostUpdate{r} },
		"an UpdateIf in two steps":      func(r registry) registry { return tornUpdateIf{r} },
		"a DeleteIf in two steps":       func(r registry) registry { return tornDeleteIf{r} },
		"a Compute that deletes late":   func(r registry) registry { return tornCompute{r} },
		"a Lookup from the past":        func(r registry) registry { return &staleLookup{registry: r} },
		"versions that begin anew":      func(r registry) registry { return forgetsVersions{r} },
		"a DeleteFunc in two steps":     func(r registry) registry { return tornDeleteFunc{r} },
		"a Ref that knows one life":     func(r registry) registry { return &oneLife{registry: r} },
		"a change of a failed function": func(r registry) registry { return keepsFailed{r} },
	} {
		t.Run(name, func(t *testing.T) {
			history.Reject(t, registryTrial(func(r *rand.Rand) registry { return broken(newRegistry(r)) }))
		})
	}
}

// lookThenPut is the registry of the report that shardedregistry answers.
type lookThenPut struct{ registry }

func (r lookThenPut) Create(k string, v int) (reg.Version, error) {
	if e, ok := r.Lookup(k); ok {
		return 0, &reg.ExistsError{Given: k, Stored: k, Version: e.Version}
	}
	runtime.Gosched()
	return r.Put(k, v)
}

type lostUpdate struct{ registry }

func (r lostUpdate) Update(k string, fn func(int) (int, error)) (entry, error) {
	e, ok := r.Lookup(k)
	if !ok {
		return entry{}, reg.ErrNotFound
	}
	v, err := fn(e.Value)
	if err != nil {
		return entry{}, err
	}
	e.Value = v
	e.Version, err = r.Put(k, v)
	return e, err
}

// tornCompute deletes whatever the key holds when its function has decided.
type tornCompute struct{ registry }

func (r tornCompute) Compute(k string, fn func(int, bool) (int, reg.ComputeOp, error)) (entry, bool, error) {
	deletes := false
	e, present, err := r.registry.Compute(k, func(old int, exists bool) (int, reg.ComputeOp, error) {
		v, op, err := fn(old, exists)
		if deletes = op == reg.DeleteOp; deletes {
			op = reg.CancelOp
		}
		return v, op, err
	})
	if deletes {
		runtime.Gosched()
		r.Delete(k)
		return entry{}, false, err
	}
	return e, present, err
}

type tornUpdateIf struct{ registry }

func (r tornUpdateIf) UpdateIf(k string, version reg.Version, v int) (reg.Version, error) {
	if e, ok := r.Lookup(k); !ok || e.Version != version {
		return r.registry.UpdateIf(k, version, v)
	}
	runtime.Gosched()
	return r.Put(k, v)
}

type tornDeleteIf struct{ registry }

func (r tornDeleteIf) DeleteIf(k string, version reg.Version) error {
	if e, ok := r.Lookup(k); !ok || e.Version != version {
		return r.registry.DeleteIf(k, version)
	}
	runtime.Gosched()
	r.Delete(k)
	return nil
}

// staleLookup returns now and then what an earlier Lookup has found.
type staleLookup struct {
	registry
	seen sync.Map
}

func (r *staleLookup) Lookup(k string) (entry, bool) {
	if e, ok := r.seen.LoadAndDelete(k); ok {
		return e.(entry), true
	}
	e, ok := r.registry.Lookup(k)
	if ok {
		r.seen.Store(k, e)
	}
	return e, ok
}

// forgetsVersions begins each life of a key with version 1.
type forgetsVersions struct{ registry }

func (r forgetsVersions) Create(k string, v int) (reg.Version, error) {
	_, err := r.registry.Create(k, v)
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// keepsFailed stores what a function returned beside its error.
type keepsFailed struct{ registry }

func (r keepsFailed) Update(k string, fn func(int) (int, error)) (entry, error) {
	var failed error
	e, err := r.registry.Update(k, func(old int) (int, error) {
		v, err := fn(old)
		failed = err
		return v, nil
	})
	if failed != nil {
		return entry{}, failed
	}
	return e, err
}

// tornDeleteFunc deletes what its function has seen, or what is there by then.
type tornDeleteFunc struct{ registry }

func (r tornDeleteFunc) DeleteFunc(del func(string, int) bool) (n int) {
	for e := range r.Entries() {
		if !del(e.Key, e.Value) {
			continue
		}
		if _, ok := r.Delete(e.Key); ok {
			n++
		}
	}
	return n
}

// oneLife finds a key absent for ever once it was deleted, as a handle would that
// does not look again.
type oneLife struct {
	registry
	over sync.Map
}

func (r *oneLife) Get(k string) (int, bool) {
	if _, over := r.over.Load(k); over {
		return 0, false
	}
	return r.registry.Get(k)
}

func (r *oneLife) Delete(k string) (entry, bool) {
	e, ok := r.registry.Delete(k)
	if ok {
		r.over.Store(k, true)
	}
	return e, ok
}
