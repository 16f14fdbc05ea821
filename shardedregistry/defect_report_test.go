//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// naive is the registry of the defect report: a dictionary whose single
// operations are safe, as those of Python's are, with methods that combine
// several. Step is called between them.
type naive struct {
	mu   sync.Mutex // makes one access to the dictionary safe, no more
	dict map[string]int
	step func(at string)
}

func newNaive() *naive { return &naive{dict: map[string]int{}, step: func(string) {}} }

func (n *naive) load(name string) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.dict[name]
	return v, ok
}

func (n *naive) store(name string, v int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dict[name] = v
}

// create_action, with the check that its callers made.
func (n *naive) create(name string, v int) error {
	if _, ok := n.load(name); ok {
		return shardedregistry.ErrExists
	}
	n.step("checked")
	n.store(name, v)
	return nil
}

// get_action.
func (n *naive) get(name string) (int, bool) {
	name, _ = normalize(name)
	return n.load(name)
}

// update is what every caller did with an action that it had got.
func (n *naive) update(name string, f func(int) int) {
	v, _ := n.get(name)
	n.step("read")
	n.store(name, f(v))
}

// interleave runs first up to where it first calls the function that it is
// given, then second to its end, then the rest of first.
func interleave(t *testing.T, first func(pause func()), second func()) {
	t.Helper()
	paused, resume, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var before atomic.Bool
		first(func() {
			if !before.Swap(true) {
				close(paused)
				<-resume
			}
		})
	}()
	await(t, paused)
	within(t, second)
	close(resume)
	await(t, done)
}

// The report's registry loses a create: both succeed, and one action is gone.
func TestReportNaiveCreateIsLost(t *testing.T) {
	n := newNaive()
	var first, second error
	interleave(t, func(pause func()) {
		n.step = func(string) { pause() }
		first = n.create("backup", 1)
	}, func() {
		second = n.create("backup", 2)
	})
	if first != nil || second != nil {
		t.Fatalf("creates = %v, %v; the naive check was expected to miss", first, second)
	}
	if v, _ := n.get("backup"); v != 1 {
		t.Fatalf("backup holds %d; the second create was expected to be lost", v)
	}
}

// The report's registry loses an update.
func TestReportNaiveUpdateIsLost(t *testing.T) {
	n := newNaive()
	n.store("backup", 0)
	add := func(v int) int { return v + 1 }
	interleave(t, func(pause func()) {
		n.step = func(string) { pause() }
		n.update("backup", add)
	}, func() {
		n.update("backup", add)
	})
	if v, _ := n.get("backup"); v != 1 {
		t.Fatalf("backup holds %d; one of two updates was expected to be lost", v)
	}
}

// The report's registry normalises a name when it is got and not when it is
// created, so that an action is created and never found.
func TestReportNaiveNameIsNotFound(t *testing.T) {
	n := newNaive()
	if err := n.create("Backup", 1); err != nil {
		t.Fatal(err)
	}
	if _, ok := n.get("Backup"); ok {
		t.Fatal("Backup was expected not to be found")
	}
}

// The same interleaving of two creates here: while one create's constructor
// runs, the other creates. Exactly one of them wins and the other is told.
func TestReportCreate(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	interleave(t, func(pause func()) {
		_, err := createOrUpdate(r, "Backup", func(old int, exists bool) (int, error) {
			pause()
			if exists {
				return 0, shardedregistry.ErrExists
			}
			return 1, nil
		})
		wantIs(t, "the create that was overtaken", err, shardedregistry.ErrExists)
	}, func() {
		if _, err := r.Create("backup", 2); err != nil {
			t.Errorf("Create = %v", err)
		}
	})
	wantValue(t, r, " BACKUP", 2)
}

// The same interleaving of two updates here: the one that was overtaken starts
// over.
func TestReportUpdate(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	mustPut(t, r, "Backup", 0)
	interleave(t, func(pause func()) {
		_, err := r.Update("backup", func(v int) (int, error) { pause(); return v + 1, nil })
		if err != nil {
			t.Errorf("Update = %v", err)
		}
	}, func() {
		if _, err := r.Update("BACKUP", func(v int) (int, error) { return v + 1, nil }); err != nil {
			t.Errorf("Update = %v", err)
		}
	})
	wantValue(t, r, "backup", 2)
}

// T15: of creates that start together exactly one wins, and everybody sees its
// value ever after; of updates none is lost. Repeated under real concurrency.
func TestReportConcurrently(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	spellings := []string{"plan %d", "Plan %d", " PLAN %d", "pLAN %d "}
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	won := make([]atomic.Int32, rounds)
	hammer(t, len(spellings), func(worker int) {
		for round := range rounds {
			name := fmt.Sprintf(spellings[worker], round)
			if _, err := r.Create(name, 1000*(worker+1)); err == nil {
				won[round].Add(int32(1000 * (worker + 1)))
			}
			if _, err := r.Update(name, func(v int) (int, error) { return v + 1, nil }); err != nil {
				t.Errorf("Update(%q) after a create: %v", name, err)
			}
		}
	})
	for round := range rounds {
		name := fmt.Sprintf("plan %d", round)
		winner := int(won[round].Load())
		if winner%1000 != 0 || winner < 1000 || winner > 4000 {
			t.Fatalf("%s: the sum of the winners' values is %d", name, winner)
		}
		e, _ := r.Lookup(name)
		if e.Value != winner+len(spellings) || int(e.Version) != 1+len(spellings) {
			t.Fatalf("%s holds %v; want value %d after %d updates", name, e, winner+len(spellings), len(spellings))
		}
	}
}
