//go:build !modelcheck

package oncecache_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// The report: two modules of a service share a dictionary of engines by URL.
// Each looks for the engine, and if it finds none creates one and stores it.
// When both do so together there are two engines for one in-memory database:
// the schema that one module makes is missing in the engine of the other.

// naiveEngines is that dictionary. Like Python's, it survives concurrent use:
// the mutex stands for the interpreter's lock around each single step.
type naiveEngines struct {
	mu    sync.Mutex
	byURL map[string]*engine
}

func (n *naiveEngines) find(url string) *engine {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byURL[url]
}

func (n *naiveEngines) store(url string, e *engine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byURL[url] = e
}

// get is what either module does; missed is called between its steps.
func (n *naiveEngines) get(url string, missed func()) *engine {
	if e := n.find(url); e != nil {
		return e
	}
	missed()
	e := &engine{url}
	n.store(url, e)
	return e
}

func TestReport_NaiveMakesTwoEngines(t *testing.T) {
	naive := naiveEngines{byURL: map[string]*engine{}}
	checked, proceed, done := make(chan struct{}), make(chan struct{}), make(chan *engine)
	go func() { // the module that makes the schema
		done <- naive.get(memory, func() { close(checked); <-proceed })
	}()
	<-checked
	plans := naive.get(memory, func() {}) // the module that runs plans
	close(proceed)
	schema := <-done

	if schema == plans {
		t.Error("the interleaving of the report makes one engine; the test no longer shows the defect")
	}
	if naive.find(memory) != schema {
		t.Error("the plan's engine, the one in use, is still in the dictionary")
	}
}

// The same interleaving: the first caller is between its check and its store
// when the second asks. The second waits, and gets the engine of the first.
func TestReport_OneEngine(t *testing.T) {
	var engines oncecache.Cache[string, *engine]
	checked, proceed, done := make(chan struct{}), make(chan struct{}), make(chan *engine)
	go func() {
		e, _ := engines.GetOrCreate(memory, func() (*engine, error) {
			close(checked)
			<-proceed
			return &engine{memory}, nil
		})
		done <- e
	}()
	<-checked
	go func() {
		e, _ := engines.GetOrCreate(memory, func() (*engine, error) {
			return &engine{"a second engine"}, nil
		})
		done <- e
	}()
	close(proceed)
	if a, b := <-done, <-done; a == nil || a != b || a.url != memory {
		t.Errorf("the modules hold %v and %v", a, b)
	}
}

// Reported bug 2, the defect report: one creates, another stores: two values.
// T1 otter #152, moka PR #195, eko/gocache #242; T2: both modules race for
// many URLs, over and over, and one of them may bring an engine of its own.
func TestReport_OneEngineUnderStress(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for round := range rounds {
		var engines oncecache.Cache[string, *engine]
		var made atomic.Int32
		var held [4]*engine
		url := fmt.Sprint("sqlite://memory-", round)
		together(len(held), func(module int) {
			if module == 3 {
				if e := (&engine{url}); stored(engines.SetIfAbsent(url, e)) {
					made.Add(1)
				}
			}
			held[module], _ = engines.GetOrCreate(url, func() (*engine, error) {
				made.Add(1)
				return &engine{url}, nil
			})
		})
		if n := made.Load(); n != 1 {
			t.Fatalf("round %d: %d engines for one URL", round, n)
		}
		for module, e := range held {
			if e == nil || e != held[0] {
				t.Fatalf("round %d: module %d holds %p, module 0 holds %p", round, module, e, held[0])
			}
		}
	}
}
