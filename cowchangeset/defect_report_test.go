//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// The defect report: a service keeps the IDs of its changesets in a list, and
// records each change into the last one.
//
//	start_changeset(): id = store.start(plan); ids.append(id)
//	record_change(e):  error if not ids; id = ids[-1]; store.record(id, e)
//
// naive is that service. Its list and its store are each safe for concurrent
// use; at is called between the steps.
type naive struct {
	mu    sync.Mutex
	ids   []int
	store [][]string
	at    func(step string)
}

func (n *naive) locked(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *naive) start() {
	var id int
	n.locked(func() { id = len(n.store); n.store = append(n.store, nil) })
	n.at("started in the store")
	n.locked(func() { n.ids = append(n.ids, id) })
}

func (n *naive) record(e string) bool {
	id := -1
	n.locked(func() {
		if len(n.ids) > 0 {
			id = n.ids[len(n.ids)-1]
		}
	})
	if id < 0 {
		return false
	}
	n.at("read the current ID")
	n.locked(func() { n.store[id] = append(n.store[id], e) })
	return true
}

// stopAt makes the naive service stop at a step until released.
func (n *naive) stopAt(step string) (reached <-chan struct{}, release func()) {
	r, g := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.at = func(s string) {
		if s == step {
			once.Do(func() { close(r); <-g })
		}
	}
	return r, func() { close(g) }
}

// First window: the changeset exists in the store, and the list does not say
// so. What is recorded meanwhile lands in the previous changeset, or nowhere.
func TestReportNaiveWindowOfStart(t *testing.T) {
	for _, before := range []int{0, 1} {
		n := &naive{at: func(string) {}}
		for range before {
			n.start()
		}
		reached, release := n.stopAt("started in the store")
		var wg sync.WaitGroup
		wg.Go(n.start)
		<-reached
		ok := n.record("e")
		release()
		wg.Wait()
		if before == 0 && ok {
			t.Error("the naive service was expected to refuse the change")
		}
		if before == 1 && (len(n.store[0]) != 1 || len(n.store[1]) != 0) {
			t.Errorf("the naive service was expected to misplace the change: %v", n.store)
		}
	}
}

// Second window: the change knows its changeset, and is not in it. Meanwhile
// that changeset ends and is applied, without the change.
func TestReportNaiveWindowOfRecord(t *testing.T) {
	n := &naive{at: func(string) {}}
	n.start()
	reached, release := n.stopAt("read the current ID")
	var wg sync.WaitGroup
	wg.Go(func() { n.record("e") })
	<-reached
	n.start() // the first changeset is history now
	applied := len(n.store[0])
	release()
	wg.Wait()
	if applied != 0 || len(n.store[0]) != 1 {
		t.Errorf("the naive service was expected to record into a changeset already applied: %v", n.store)
	}
}

// The same interleavings of ours. A Start that got as far as making its
// changeset known is completed by whoever asks for the current one; until
// then, the one before it is current, and not yet applied.
func TestReportWindowOfStart(t *testing.T) {
	var tracker cowchangeset.Tracker[string]
	first := tracker.Announce("first")
	if r, err := tracker.Record("e"); err != nil || r.ChangesetID != "first" {
		t.Fatal(r, err)
	}
	tracker.Announce("second")
	r, err := tracker.Record("f")
	if err != nil || r.ChangesetID != "first" {
		t.Fatal(r, err)
	}
	final := mustSeal(t, first) // to apply it, if the Start did not
	if got := values(t, final.All()); len(got) != 2 || got[1] != "f" {
		t.Errorf("applied %v", got)
	}
	if r, err := tracker.Record("g"); err != nil || r.ChangesetID != "second" {
		t.Error(r, err)
	}
}

// A Record that chose its changeset, and then sees it applied, goes to the one
// that is current instead.
func TestReportWindowOfRecord(t *testing.T) {
	for _, stop := range []int{1, 2, 3} { // after choosing, reserving, finding the slot
		var tracker cowchangeset.Tracker[string]
		first := start(t, &tracker)
		var final cowchangeset.Final[string]
		step := 0
		r, err := tracker.RecordSlowly("e", func() {
			if step++; step == stop {
				start(t, &tracker)
				final = mustSeal(t, first) // applied now
			}
		})
		if err != nil || r.Ordinal != 2 || final.Len() != 0 || first.Len() != 0 {
			t.Errorf("stopped at step %d: recorded at %v, %v; applied %d, then has %d", stop, r, err, final.Len(), first.Len())
		}
	}
}

// Without forcing anything: plans that start and are applied while others
// record. What is applied is what the receipts say, each change once.
func TestReportConcurrently(t *testing.T) {
	for range iterations(500) {
		const writers, each, plans = 2, 30, 10
		var tracker cowchangeset.Tracker[entry]
		start(t, &tracker)
		var receipts [writers]map[entry]uint64
		applied := make([]map[entry]uint64, 0, plans+1)
		apply := func(c *cowchangeset.Changeset[entry]) {
			f, err := c.Seal(context.Background())
			if err != nil {
				t.Error(err)
			}
			set := map[entry]uint64{}
			for _, e := range f.All() {
				set[e] = c.Ordinal()
			}
			applied = append(applied, set)
		}
		crew := newCrew()
		for w := range receipts {
			receipts[w] = map[entry]uint64{}
			crew.add(func() {
				for k := range each {
					r, err := tracker.Record(entry{w, k})
					if err != nil {
						t.Error(err)
						return
					}
					receipts[w][entry{w, k}] = r.Ordinal
				}
			})
		}
		crew.add(func() {
			for range plans {
				c, err := tracker.Start(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				apply(c.Previous())
			}
		})
		crew.run()
		last, _ := tracker.Current()
		apply(last)
		n := 0
		for _, set := range applied {
			for e, ordinal := range set {
				n++
				if got := receipts[e.writer][e]; got != ordinal {
					t.Fatalf("%v was applied with changeset %d and has a receipt for %d", e, ordinal, got)
				}
			}
		}
		if n != writers*each {
			t.Fatalf("%d of %d changes were applied", n, writers*each)
		}
	}
}
