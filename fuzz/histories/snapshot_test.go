//go:build !modelcheck

package histories_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	reg "github.com/latchfree/latchfree/shardedregistry"
)

// cutter is a registry that can say what all keys held at one instant. What it
// returns must not change.
type cutter interface {
	registry
	Cut() iter.Seq[entry]
}

type realCutter struct{ *reg.Registry[string, int] }

func (r realCutter) Cut() iter.Seq[entry] { return r.Snapshot().Entries() }

// cut is a Snapshot: what it holds of each key.
type cut [3]held

func (c cut) Kind() string   { return "Snapshot" }
func (c cut) String() string { return fmt.Sprintf("Snapshot() = %+v", [3]held(c)) }

// After is not asked for: a cut is of all keys.
func (c cut) After(s held) (held, bool) { return s, false }

func (c cut) AfterAll(all history.Whole[held]) (history.Whole[held], bool) {
	for k, s := range all {
		if !s.live() {
			s = held{}
		}
		if s.spelled = ""; s != c[k] {
			return all, false
		}
	}
	return all, true
}

// cutClient is a goroutine that uses a registry and takes snapshots.
type cutClient struct {
	*registryClient
	registry cutter
	own      map[string]int // what only it stores
	cuts     []iter.Seq[entry]
	were     []map[string]entry
}

func (w *cutClient) operate(k int) {
	if w.IntN(3) == 0 {
		w.cut()
		return
	}
	w.registryClient.operate(k)
}

// cut takes a snapshot, which has to hold what the client has stored.
func (w *cutClient) cut() {
	from := w.Now()
	taken := w.registry.Cut()
	to := w.Now()
	runtime.Gosched()
	was := collect(taken)
	w.cuts, w.were = append(w.cuts, taken), append(w.were, was)
	var c cut
	for k, names := range registryKeys {
		if e, ok := was[names[0]]; ok {
			c[k] = held{e.Value, int(e.Version), ""}
		}
	}
	w.AddSpan(history.AllKeys, from, to, c)
	for k, v := range w.own {
		if was[k].Value != v {
			w.Errorf("a snapshot has %d for %q, which is %d", was[k].Value, k, v)
		}
	}
}

func collect(entries iter.Seq[entry]) map[string]entry {
	all := map[string]entry{}
	for e := range entries {
		all[e.Key] = e
	}
	return all
}

func (w *cutClient) tide() {
	w.Tide(func(k int) {
		w.own[fmt.Sprint(k)] = k
		if _, err := w.registry.Create(fmt.Sprint(k), k); err != nil {
			w.Errorf("Create(%d): %v", k, err)
		}
	}, func(k int) {
		delete(w.own, fmt.Sprint(k))
		if e, ok := w.registry.Delete(fmt.Sprint(k)); e.Value != k || !ok {
			w.Errorf("Delete(%d) = %v, %v", k, e, ok)
		}
	})
}

// cutTrial uses a registry with three keys, of which snapshots are taken while
// it resizes.
func cutTrial(fresh func(*rand.Rand) cutter) func(*rand.Rand) history.Trial[held] {
	return func(random *rand.Rand) history.Trial[held] {
		r := fresh(random)
		return history.Trial[held]{
			Whole: true, Clients: 3, Value: r,
			Work: func(c *history.Client[held]) {
				w := &cutClient{registryClient: &registryClient{Client: c, registry: r}, registry: r, own: map[string]int{}}
				for range 4 {
					w.Meet(1)
					for range 2 {
						w.operate(w.IntN(len(registryKeys)))
						w.Pause()
					}
					w.tide()
				}
				for i, taken := range w.cuts {
					if now := collect(taken); !maps.Equal(now, w.were[i]) {
						w.Errorf("a snapshot was %v and is %v", w.were[i], now)
					}
				}
			},
		}
	}
}

func TestSnapshotHistories(t *testing.T) {
	cover := history.Check(t, cutTrial(func(r *rand.Rand) cutter { return realCutter{newRegistry(r)} }), "Snapshot", "Create stored", "Update stored", "Delete deleted")
	cover.RequireResizes(t)
}

func TestBrokenSnapshotHistories(t *testing.T) {
	for name, broken := range map[string]func(realCutter) cutter{
		"a loop over the keys": func(r realCutter) cutter { return loops{r} },
		"key after key":        func(r realCutter) cutter { return looksUp{r} },
	} {
		t.Run(name, func(t *testing.T) {
			history.Reject(t, cutTrial(func(r *rand.Rand) cutter { return broken(realCutter{newRegistry(r)}) }))
		})
	}
	t.Run("the registry itself", func(t *testing.T) {
		history.Expose(t, "a snapshot was", cutTrial(func(r *rand.Rand) cutter { return itself{realCutter{newRegistry(r)}} }))
	})
}

// loops yields what a loop finds, whose body takes its time.
type loops struct{ realCutter }

func (r loops) Cut() iter.Seq[entry] {
	var found []entry
	for e := range r.Entries() {
		runtime.Gosched()
		found = append(found, e)
	}
	return slices.Values(found)
}

// looksUp yields what it finds for each key of a snapshot later.
type looksUp struct{ realCutter }

func (r looksUp) Cut() iter.Seq[entry] {
	var found []entry
	for e := range r.Snapshot().Entries() {
		if e, ok := r.Lookup(e.Key); ok {
			found = append(found, e)
		}
		runtime.Gosched()
	}
	return slices.Values(found)
}

// itself yields what the registry holds by then.
type itself struct{ realCutter }

func (r itself) Cut() iter.Seq[entry] { return r.Entries() }
