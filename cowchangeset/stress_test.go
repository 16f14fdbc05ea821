//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// crew runs goroutines that start together.
type crew struct {
	wg   sync.WaitGroup
	gate chan struct{}
}

func newCrew() *crew { return &crew{gate: make(chan struct{})} }

func (c *crew) add(f func()) { c.wg.Go(func() { <-c.gate; f() }) }

func (c *crew) run() { close(c.gate); c.wg.Wait() }

// iterations is n, or few with -short.
func iterations(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// stumble yields now and then, so that others see what is half done.
func stumble() {
	if rand.Uint32N(4) == 0 {
		runtime.Gosched()
	}
}

// entry is the k-th entry of a writer.
type entry struct{ writer, k int }

// observer checks that the trails it takes grow, and that they hold for each
// writer its first entries without a hole, at least those it has completed.
type observer struct {
	tracker   *cowchangeset.Tracker[entry]
	completed []atomic.Int64 // by writer
	last      []int
}

// observe takes a trail and returns how many entries each changeset had.
func (o *observer) observe(t *testing.T) map[uint64]int {
	least := make([]int64, len(o.completed))
	for w := range o.completed {
		least[w] = o.completed[w].Load()
	}
	seen := make([]int, len(o.completed))
	perSet := map[uint64]int{}
	trail := o.tracker.Trail()
	latest := uint64(0)
	n := 0
	for r, e := range trail.All() {
		perSet[r.Ordinal]++
		latest = r.Ordinal
		n++
		if e.k != seen[e.writer] {
			t.Errorf("entry %d of writer %d follows %d others", e.k, e.writer, seen[e.writer])
			return nil
		}
		seen[e.writer]++
	}
	if trail.Len() != n {
		t.Errorf("trail of %d entries has length %d", n, trail.Len())
	}
	for w, n := range seen {
		if int64(n) < least[w] || n < o.last[w] {
			t.Errorf("writer %d had completed %d and been seen with %d, now with %d", w, least[w], o.last[w], n)
		}
	}
	o.last = seen
	delete(perSet, latest) // which may still grow
	return perSet
}

// Checks L1, L2, L3, L4.

// Writers, starters, sealers and observers at once. Every entry is where its
// receipt says and nowhere else; writers' entries are in order; trails are
// prefixes; and a changeset with a visible successor no longer changes.
func TestStressTracker(t *testing.T) {
	const writers, each, starts = 4, 150, 100
	for range iterations(60) {
		var tracker cowchangeset.Tracker[entry]
		start(t, &tracker)
		completed := make([]atomic.Int64, writers)
		receipts := make([][]cowchangeset.Receipt, writers)
		var left atomic.Int64
		left.Store(writers)
		crew := newCrew()
		for w := range writers {
			crew.add(func() {
				defer left.Add(-1)
				for k := 0; k < each; {
					batch := []entry{{w, k}}
					var r cowchangeset.Receipt
					var err error
					switch rand.IntN(3) {
					case 0:
						r, err = tracker.Record(batch[0])
					case 1:
						r, err = tracker.RecordSlowly(batch[0], stumble)
					case 2:
						for range rand.IntN(40) {
							batch = append(batch, entry{w, k + len(batch)})
						}
						r, err = tracker.RecordBatch(batch)
					}
					if err != nil {
						if !errors.Is(err, cowchangeset.ErrSealed) {
							t.Error(err)
						}
						stumble()
						continue
					}
					for range batch {
						receipts[w] = append(receipts[w], r)
						r.Seq++
						k++
					}
					completed[w].Store(int64(k))
				}
			})
		}
		for s := range 2 {
			crew.add(func() {
				for range starts {
					if left.Load() == 0 {
						return
					}
					if c, _ := tracker.Current(); s == 1 && rand.IntN(3) == 0 {
						f, err := c.Seal(context.Background())
						stumble()
						if err != nil || c.Len() != f.Len() || !isSealed(c) {
							t.Errorf("sealed with %d entries, has %d, %v", f.Len(), c.Len(), err)
						}
					}
					if _, err := tracker.Start(context.Background()); err != nil {
						t.Error(err)
					}
					for range rand.IntN(20) {
						runtime.Gosched()
					}
				}
			})
		}
		frozen := make([]map[uint64]int, 2)
		for i := range frozen {
			frozen[i] = map[uint64]int{}
			crew.add(func() {
				o := observer{&tracker, completed, make([]int, writers)}
				for left.Load() > 0 && !t.Failed() {
					stumble()
					for ordinal, n := range o.observe(t) {
						if was, ok := frozen[i][ordinal]; ok && was != n {
							t.Errorf("changeset %d had %d entries and a successor, now %d", ordinal, was, n)
						}
						frozen[i][ordinal] = n
					}
				}
			})
		}
		crew.run()

		final := map[cowchangeset.Receipt]entry{}
		perSet := map[uint64]int{}
		for r, e := range tracker.Trail().All() {
			final[r] = e
			perSet[r.Ordinal]++
		}
		total := 0
		for w, rs := range receipts {
			total += len(rs)
			for k, r := range rs {
				if e, ok := final[r]; !ok || e != (entry{w, k}) {
					t.Fatalf("at %v is %v, want entry %d of writer %d", r, e, k, w)
				}
				if k > 0 && (rs[k-1].Ordinal > r.Ordinal || rs[k-1].Ordinal == r.Ordinal && rs[k-1].Seq >= r.Seq) {
					t.Fatalf("%v comes after %v", rs[k-1], r)
				}
			}
		}
		if total != len(final) {
			t.Fatalf("%d receipts for %d entries", total, len(final))
		}
		for _, seen := range frozen {
			for ordinal, n := range seen {
				if perSet[ordinal] != n {
					t.Fatalf("changeset %d had %d entries and a successor, at last %d", ordinal, n, perSet[ordinal])
				}
			}
		}
	}
}

// Checks T1, T2, T3, T4.

// Reported bug 14, the defect report, systeminit: a change lands in another changeset.
// While one Start follows another, and nobody seals, no Record fails. And once
// anything is in a changeset, the one before it accepts nothing: at once, not
// only in the end. Each Start finds the recorder busy: it waits until the one
// before it was noticed.
func TestStressStart(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	known := start(t, &tracker)
	starts := iterations(4_000)
	every := 4096 // records to a yield: seldom, so that the two end up on two processors
	if runtime.GOMAXPROCS(0) == 1 {
		every = 64
	}
	var noticed atomic.Int64
	crew := newCrew()
	crew.add(func() {
		for i := range starts {
			for noticed.Load() < int64(i) && !t.Failed() {
				runtime.Gosched()
			}
			tracker.Start(context.Background())
		}
	})
	crew.add(func() {
		for n := 0; noticed.Load() < int64(starts); n++ {
			if n%every == 0 {
				runtime.Gosched()
			}
			r, err := tracker.Record(1)
			if err != nil {
				t.Errorf("after changeset %d: %v", known.Ordinal(), err)
				return
			}
			if r.Ordinal == known.Ordinal() {
				continue
			}
			if _, err := known.Record(1); err != cowchangeset.ErrSealed {
				t.Errorf("changeset %d has entries, and %d accepts more: %v", r.Ordinal, known.Ordinal(), err)
				return
			}
			var open bool
			if known, open = tracker.Current(); !open {
				t.Error("no changeset is open")
				return
			}
			noticed.Store(int64(known.Ordinal() - 1))
		}
	})
	crew.run()
}

// Checks L5, L7, L8, L10.

// Reported bug 15, Storm, unolog, agent-manager, quic-go: a last record is lost, or panics.
// Records that race with a seal: those that succeed are in the Final, which is
// the same for all sealers, and the others are not. The channel closes.
func TestStressSeal(t *testing.T) {
	for range iterations(2000) {
		var tracker cowchangeset.Tracker[entry]
		c := start(t, &tracker)
		c.Reserve(entry{}) // a writer that never comes back, so that sealers overlap
		const writers, each = 3, 50
		finals := make([]cowchangeset.Final[entry], 2)
		recorded := make([][]uint64, writers)
		crew := newCrew()
		for w := range writers {
			crew.add(func() {
				for k := range each {
					r, err := c.Record(entry{w, k})
					if err != nil {
						return
					}
					recorded[w] = append(recorded[w], r.Seq)
				}
			})
		}
		for i := range finals {
			crew.add(func() {
				for range rand.IntN(3) {
					runtime.Gosched()
				}
				finals[i], _ = c.Seal(context.Background())
				if !isSealed(c) {
					t.Error("the channel is open after the seal")
				}
			})
		}
		crew.add(func() { tracker.Start(context.Background()) })
		crew.run()
		if finals[0] != finals[1] {
			t.Fatal("two Finals")
		}
		n := 0
		for seq, e := range finals[0].All() {
			n++
			if e.k >= len(recorded[e.writer]) || recorded[e.writer][e.k] != seq {
				t.Fatalf("entry %v at %d has no receipt", e, seq)
			}
		}
		if want := len(recorded[0]) + len(recorded[1]) + len(recorded[2]); n != want || finals[0].Len() != n {
			t.Fatalf("%d of %d recorded entries", n, want)
		}
	}
}

// Checks T1, T2, T3, T4.

// Of all StartAfters behind one changeset, exactly one starts.
func TestStressStartAfter(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	var prev *cowchangeset.Changeset[int]
	for range iterations(2000) {
		var won [3]*cowchangeset.Changeset[int]
		crew := newCrew()
		for i := range won {
			crew.add(func() {
				c, err := tracker.StartAfter(context.Background(), prev)
				if now, _ := tracker.Current(); now == prev {
					t.Error("StartAfter returned before the next changeset was current")
				}
				if won[i] = c; (c == nil) != (err == cowchangeset.ErrConflict) {
					t.Error(c, err)
				}
			})
		}
		crew.run()
		n := 0
		for _, c := range won {
			if c != nil {
				n++
				prev = c
			}
		}
		if n != 1 {
			t.Fatalf("%d winners", n)
		}
	}
}

// Many more goroutines than processors, at chunk ends.
func TestStressManyWriters(t *testing.T) {
	c := one[int](t)
	const goroutines = 10_000
	crew := newCrew()
	for g := range goroutines {
		crew.add(func() {
			if _, err := c.Record(g); err != nil {
				t.Error(err)
			}
		})
	}
	crew.run()
	all := values(t, c.Entries())
	slices.Sort(all)
	if len(all) != goroutines || len(slices.Compact(all)) != goroutines {
		t.Errorf("%d entries", len(all))
	}
}

// Checks S2, S3, S4.

// Appenders, updaters and readers: nothing is lost, nothing goes back, and what
// was loaded never changes.
func TestStressSlice(t *testing.T) {
	const writers, each = 3, 200
	for range iterations(100) {
		var s cowchangeset.Slice[*entry]
		var updates, left atomic.Int64
		left.Store(writers)
		crew := newCrew()
		for w := range writers {
			crew.add(func() {
				defer left.Add(-1)
				for k := range each {
					e := &entry{w, k}
					if rand.IntN(2) == 0 {
						s.Append(e)
					} else {
						s.AppendSlowly(e, stumble)
					}
					switch rand.IntN(20) {
					case 0:
						s.Update(func(old []*entry) []*entry { stumble(); return slices.Clone(old) })
						updates.Add(1)
					case 1:
						if old := s.Snapshot(); s.CompareAndSwap(old, slices.Clone(old.Items())) {
							updates.Add(1)
						}
					}
				}
			})
		}
		crew.add(func() {
			version, length := uint64(0), 0
			for ; left.Load() > 0; stumble() {
				snap := s.Snapshot()
				if snap.Version() < version || len(snap.Items()) < length {
					t.Errorf("from version %d, length %d to %d, %d", version, length, snap.Version(), len(snap.Items()))
					return
				}
				version, length = snap.Version(), len(snap.Items())
				var next [writers]int
				for _, e := range snap.Items() {
					if e == nil || e.k != next[e.writer] {
						t.Errorf("%v out of order", e)
						return
					}
					next[e.writer]++
				}
			}
		})
		crew.run()
		if got, want := s.Snapshot(), writers*each; len(got.Items()) != want || got.Version() != uint64(want)+uint64(updates.Load()) {
			t.Fatalf("%d items, version %d, after %d appends and %d updates", len(got.Items()), got.Version(), want, updates.Load())
		}
	}
}
