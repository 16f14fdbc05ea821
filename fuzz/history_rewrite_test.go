//go:build !modelcheck

package fuzz_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
)

// rewriter is a registry of which all keys change at one instant.
type rewriter interface {
	cutter
	Clear() int
	Replace(iter.Seq2[string, int]) error
}

// cleared is a Clear.
type cleared struct{}

func (cleared) Kind() string              { return "Clear" }
func (cleared) String() string            { return "Clear()" }
func (cleared) After(s held) (held, bool) { return s, false } // it is of all keys
func (cleared) AfterAll(all history.Whole[held]) (history.Whole[held], bool) {
	for k, s := range all {
		if s.live() {
			all[k] = held{version: s.version + 1}
		}
	}
	return all, true
}

// rewriteClient is a goroutine that clears a registry, too, so that it knows of no key that
// it is there.
type rewriteClient struct{ *cutClient }

func (w *rewriteClient) operate(r rewriter, k int) {
	if w.IntN(4) != 0 {
		w.cutClient.operate(k)
		return
	}
	from := w.Now()
	r.Clear()
	w.Add(history.AllKeys, from, cleared{})
}

// drift makes the registry resize.
func drift(c interface {
	Tide(add, remove func(int))
}, r rewriter) {
	c.Tide(func(k int) { r.Create(fmt.Sprint(k), k) }, func(k int) { r.Delete(fmt.Sprint(k)) })
}

// clearTrial uses a registry with three keys, which is cleared, and of which snapshots are
// taken, while it resizes.
func clearTrial(fresh func(*rand.Rand) rewriter) func(*rand.Rand) history.Trial[held] {
	return func(random *rand.Rand) history.Trial[held] {
		r := fresh(random)
		return history.Trial[held]{
			Whole: true, Clients: 3, Value: r,
			Work: func(c *history.Client[held]) {
				w := &rewriteClient{&cutClient{registryClient: &registryClient{Client: c, registry: r}, registry: r}}
				for range 4 {
					w.Meet(1)
					for range 2 {
						w.operate(r, w.IntN(len(registryKeys)))
						w.Pause()
					}
					drift(w, r)
				}
			},
		}
	}
}

// valueEvent is an operation where nobody asks for versions: on one key, or by Replace or
// Snapshot on all.
type valueEvent struct {
	op   string
	want [3]int // to be stored, or what was found, 0 where a key was absent
}

func (e valueEvent) Kind() string   { return e.op }
func (e valueEvent) String() string { return fmt.Sprint(e.op, e.want) }

func (e valueEvent) After(s held) (held, bool) {
	next := held{value: e.want[0]}
	switch e.op {
	case "Get":
		return s, s == next
	case "Delete":
		return held{}, s == next
	}
	return next, true // Put
}

func (e valueEvent) AfterAll(all history.Whole[held]) (history.Whole[held], bool) {
	ok := true
	for k := range e.want {
		next := held{value: e.want[k]}
		if e.op == "Snapshot" && all[k] != next {
			ok = false
		}
		all[k] = next
	}
	return all, ok
}

// replaceTrial is clearTrial with Replace, where the versions of what it creates are not known.
func replaceTrial(fresh func(*rand.Rand) rewriter) func(*rand.Rand) history.Trial[held] {
	return func(random *rand.Rand) history.Trial[held] {
		r := fresh(random)
		return history.Trial[held]{
			Whole: true, Clients: 3, Value: r,
			Work: func(c *history.Client[held]) {
				w := &registryClient{Client: c, registry: r}
				for range 4 {
					c.Meet(1)
					for range 2 {
						w.rewriteOrLook(r)
						c.Pause()
					}
					drift(c, r)
				}
			},
		}
	}
}

func (w *registryClient) rewriteOrLook(r rewriter) {
	k := w.IntN(len(registryKeys))
	name, from := registryKeys[k][w.IntN(2)], w.Now()
	var e valueEvent
	switch w.IntN(6) {
	case 0, 1:
		e.op = "Replace"
		for k := range registryKeys {
			if w.IntN(3) != 0 {
				e.want[k] = w.fresh()
			}
		}
		if err := r.Replace(func(yield func(string, int) bool) {
			for k, v := range e.want {
				runtime.Gosched()
				if v != 0 && !yield(registryKeys[k][0], v) {
					return
				}
			}
		}); err != nil {
			w.Errorf("Replace: %v", err)
		}
		k = history.AllKeys
	case 2:
		e.op = "Snapshot"
		was := collect(r.Cut())
		for k, names := range registryKeys {
			e.want[k] = was[names[0]].Value
		}
		k = history.AllKeys
	case 3:
		e.op, e.want[0] = "Put", w.fresh()
		if _, err := r.Put(name, e.want[0]); err != nil {
			w.Errorf("Put: %v", err)
		}
	case 4:
		e.op = "Delete"
		got, _ := r.Delete(name)
		e.want[0] = got.Value
	case 5:
		e.op = "Get"
		e.want[0], _ = r.Get(name)
	}
	w.Add(k, from, e)
}

func realRewriter(r *rand.Rand) rewriter { return realCutter{newRegistry(r)} }

func TestClearHistories(t *testing.T) {
	cover := history.Check(t, clearTrial(realRewriter), "Clear", "Snapshot", "Create stored", "Update stored", "Delete deleted")
	cover.RequireResizes(t)
}

func TestReplaceHistories(t *testing.T) {
	cover := history.Check(t, replaceTrial(realRewriter), "Replace", "Snapshot", "Put", "Delete", "Get")
	cover.RequireResizes(t)
}

// keyByKey clears and replaces one key after the other.
type keyByKey struct{ realCutter }

func (r keyByKey) Clear() int {
	return r.DeleteFunc(func(string, int) bool { runtime.Gosched(); return true })
}

func (r keyByKey) Replace(entries iter.Seq2[string, int]) error {
	r.Clear()
	for k, v := range entries {
		if _, err := r.Put(k, v); err != nil {
			return err
		}
	}
	return nil
}

func TestBrokenRewriteHistories(t *testing.T) {
	broken := func(r *rand.Rand) rewriter { return keyByKey{realCutter{newRegistry(r)}} }
	t.Run("Clear", func(t *testing.T) { history.Reject(t, clearTrial(broken)) })
	t.Run("Replace", func(t *testing.T) { history.Reject(t, replaceTrial(broken)) })
}
