//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/latchfree/latchfree/cowchangeset"
)

// start makes the next changeset.
func start[E any](t *testing.T, tracker *cowchangeset.Tracker[E]) *cowchangeset.Changeset[E] {
	t.Helper()
	c, err := tracker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// one returns the first changeset of a tracker of its own.
func one[E any](t *testing.T) *cowchangeset.Changeset[E] {
	return start(t, new(cowchangeset.Tracker[E]))
}

func mustSeal[E any](t *testing.T, c *cowchangeset.Changeset[E]) cowchangeset.Final[E] {
	t.Helper()
	f, err := c.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// values returns what seq yields, whose keys must increase.
func values[E any](t *testing.T, seq iter.Seq2[uint64, E]) []E {
	t.Helper()
	var es []E
	next := uint64(0)
	for seq, e := range seq {
		if seq < next {
			t.Fatalf("seq %d after %d", seq, next-1)
		}
		next = seq + 1
		es = append(es, e)
	}
	return es
}

func wantEntries[E comparable](t *testing.T, c *cowchangeset.Changeset[E], want ...E) {
	t.Helper()
	if got := values(t, c.Entries()); !slices.Equal(got, want) || c.Len() != len(want) {
		t.Fatalf("changeset has %v, length %d; want %v", got, c.Len(), want)
	}
}

// isSealed asks both ways, and the channel last: it must not say less.
func isSealed[E any](c *cowchangeset.Changeset[E]) bool {
	sealed := c.IsSealed()
	select {
	case <-c.Sealed():
		return true
	default:
		if sealed {
			panic("IsSealed returned true before the channel was closed")
		}
		return false
	}
}

func TestChangesetRecord(t *testing.T) {
	c := one[string](t)
	wantEntries(t, c)
	for i, e := range []string{"a", "", "b"} {
		r, err := c.Record(e)
		if want := (cowchangeset.Receipt{ChangesetID: c.ID(), Ordinal: 1, Seq: uint64(i)}); r != want || err != nil {
			t.Errorf("got %v, %v; want %v", r, err, want)
		}
	}
	wantEntries(t, c, "a", "", "b")
	for range c.Entries() {
		break
	}
}

// Checks L1, L2, L3, L4.

// Entries past the ends of many chunks, singly and in batches of every size
// around a chunk's.
func TestChangesetChunks(t *testing.T) {
	for _, k := range []int{1, 2, 7, 15, 16, 17, cowchangeset.MaxChunk - 1, cowchangeset.MaxChunk, cowchangeset.MaxChunk + 1, 5000} {
		t.Run(fmt.Sprint("batch=", k), func(t *testing.T) {
			var tracker cowchangeset.Tracker[int]
			c := start(t, &tracker)
			var want []int
			for len(want) < 3*cowchangeset.MaxChunk {
				from := len(want)
				for range k {
					want = append(want, len(want))
				}
				r, err := tracker.RecordBatch(want[from:])
				if err != nil || r.Seq != uint64(from) {
					t.Fatal(r, err)
				}
				if len(want)%3 == 0 && c.Len() != len(want) { // a cut now and then
					t.Fatalf("length %d, want %d", c.Len(), len(want))
				}
			}
			wantEntries(t, c, want...)
			if f := mustSeal(t, c); f.Len() != len(want) || !slices.Equal(values(t, f.All()), want) {
				t.Errorf("final of %d entries, want %d", f.Len(), len(want))
			}
		})
	}
}

// The next chunk is there before it is needed, and not long before.
func TestChangesetChunkIsReady(t *testing.T) {
	c := one[int](t)
	late := cowchangeset.FirstChunk - cowchangeset.FirstChunk/8
	for n := 1; n <= cowchangeset.FirstChunk; n++ {
		c.Record(n)
		want := 1
		if n >= late {
			want = 2
		}
		if got := c.Chunks(); got != want {
			t.Errorf("%d chunks after %d entries, want %d", got, n, want)
		}
	}
}

func TestChangesetSeal(t *testing.T) {
	c := one[int](t)
	c.Record(1)
	c.Record(2)
	ch := c.Sealed()
	if isSealed(c) {
		t.Error("sealed too early")
	}
	f := mustSeal(t, c)
	select {
	case <-ch:
	default:
		t.Error("the channel is open after the seal")
	}
	if !isSealed(c) || f.Len() != 2 || !slices.Equal(values(t, f.All()), []int{1, 2}) {
		t.Errorf("final %v", values(t, f.All()))
	}
	if r, err := c.Record(3); err != cowchangeset.ErrSealed || r != (cowchangeset.Receipt{}) {
		t.Errorf("recording into a sealed changeset: %v, %v", r, err)
	}
	if mustSeal(t, c) != f {
		t.Error("sealing again returned another Final")
	}
	wantEntries(t, c, 1, 2)
	for range f.All() {
		break
	}
	var zero cowchangeset.Final[int]
	for range zero.All() {
		t.Error("an entry in the zero Final")
	}
	if zero.Len() != 0 {
		t.Error("the zero Final has a length")
	}
}

func TestChangesetSealContext(t *testing.T) {
	c := one[int](t)
	if p := fmt.Sprint(mustPanic(t, func() { c.Seal(noContext) })); p != "cowchangeset: Changeset.Seal called with a nil context" {
		t.Error(p)
	}
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if f, err := c.Seal(ctx); err != cause || f.Len() != 0 {
		t.Errorf("got %v, %v", f, err)
	}
	if isSealed(c) {
		t.Error("a done context sealed")
	}
	c.Record(1)
	wantEntries(t, c, 1)
}

// Checks L5, L7, L8, L10.

// Reported bug 15, Storm, unolog, agent-manager, quic-go: a last record is lost, or panics.
// A sealer stalls after the seal bit: an operation that sees the bit finishes the seal,
// before it tells anybody.
func TestChangesetStalledSealer(t *testing.T) {
	type tracker = cowchangeset.Tracker[int]
	type changeset = cowchangeset.Changeset[int]
	for name, notice := range map[string]func(*tracker, *changeset){
		"Tracker.Record":    func(tr *tracker, _ *changeset) { tr.Record(1) },
		"RecordBatch":       func(tr *tracker, _ *changeset) { tr.RecordBatch([]int{1, 2}) },
		"Tracker.Current":   func(tr *tracker, _ *changeset) { tr.Current() },
		"Tracker.Trail":     func(tr *tracker, _ *changeset) { tr.Trail() },
		"Changeset.Record":  func(_ *tracker, c *changeset) { c.Record(1) },
		"Changeset.Sealed":  func(_ *tracker, c *changeset) { c.Sealed() },
		"Changeset.Seal":    func(_ *tracker, c *changeset) { c.Seal(context.Background()) },
		"IsSealed":          func(_ *tracker, c *changeset) { c.IsSealed() },
		"Changeset.Len":     func(_ *tracker, c *changeset) { c.Len() },
		"Changeset.Entries": func(_ *tracker, c *changeset) { values(t, c.Entries()) },
	} {
		t.Run(name, func(t *testing.T) {
			var tr tracker
			c := start(t, &tr)
			c.Record(0)
			ch := c.Sealed()
			c.SealBit()
			notice(&tr, c)
			select {
			case <-ch:
			default:
				t.Error("who saw the seal did not close the channel")
			}
			if _, err := c.Record(1); err != cowchangeset.ErrSealed {
				t.Error(err)
			}
			wantEntries(t, c, 0)
		})
	}
}

// Checks L5, L7, L8, L10.

// Failed reservations do not go on inflating the count of a sealed log, and do
// not make it longer.
func TestChangesetSealedStaysSmall(t *testing.T) {
	type nothing = struct{}
	c := one[nothing](t)
	c.Record(nothing{})
	c.SealBit()
	chunks := c.Chunks()
	for range 1000 {
		if _, ok := c.Reserve(make([]nothing, 1<<20)...); ok {
			t.Fatal("reserved slots of a sealed changeset")
		}
		if _, err := c.Record(nothing{}); err != cowchangeset.ErrSealed {
			t.Fatal(err)
		}
	}
	wantEntries(t, c, nothing{})
	if n := c.Reserved(); n > 1<<20+2 {
		t.Errorf("the count went on to %d", n)
	}
	if n := c.Chunks(); n != chunks {
		t.Errorf("%d chunks, were %d", n, chunks)
	}
}

// Checks L1, L2, L3, L4.

// Reported bug 13, append-only-vec, salsa: writers spin for a descheduled one.
// Reported bug 16, disruptor, Aeron: a dead claimant stops all readers.
// A writer that stalls after its reservation delays no cut and no seal, and its
// entry enters no changeset that was cut without it.
func TestChangesetStalledWriter(t *testing.T) {
	c := one[int](t)
	c.Record(1)
	w, _ := c.Reserve(-1)
	c.Record(2)
	wantEntries(t, c, 1, 2)
	if w.Put() {
		t.Error("a writer published into a slot that a cut had passed by")
	}
	wantEntries(t, c, 1, 2)

	w, _ = c.Reserve(3)
	if !w.Put() { // nobody was in a hurry
		t.Error("a writer failed to publish without reason")
	}
	wantEntries(t, c, 1, 2, 3)

	w, _ = c.Reserve(-2)
	f := mustSeal(t, c)
	if w.Put() {
		t.Error("a writer published into a sealed changeset that was read")
	}
	if !slices.Equal(values(t, f.All()), []int{1, 2, 3}) || f.Len() != 3 {
		t.Errorf("final is %v", values(t, f.All()))
	}
}

// Checks L1, L2, L3, L4.

// Reported bug 16, disruptor, Aeron: a dead claimant stops all readers.
// A batch that stalls after any step is in all cuts from then on, or in none.
func TestChangesetStalledBatch(t *testing.T) {
	batch := make([]int, 40) // over three chunks
	for i := range batch {
		batch[i] = 100 + i
	}
	type writer = cowchangeset.Writer[int]
	for name, steps := range map[string]func(*writer) bool{
		"reserved":  func(*writer) bool { return true },
		"announced": func(w *writer) bool { return w.Announce() },
		"half full": func(w *writer) bool { return w.Announce() && w.Fill(20) },
		"full":      func(w *writer) bool { return w.Announce() && w.Fill(40) },
	} {
		for _, sealing := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/sealing=", sealing), func(t *testing.T) {
				c := one[int](t)
				c.Record(1)
				w, _ := c.Reserve(batch...)
				if !steps(w) {
					t.Fatal("a step failed")
				}
				if !sealing {
					c.Record(2)
					wantEntries(t, c, 1, 2)
					c.Record(3)
					wantEntries(t, c, 1, 2, 3)
				} else if f := mustSeal(t, c); f.Len() != 1 {
					t.Errorf("final of %d entries", f.Len())
				}
				before := values(t, c.Entries())
				if name == "reserved" && w.PutAll() || name != "reserved" && w.Fill(40) && w.Publish() {
					t.Error("the batch was published into a cut without it")
				}
				wantEntries(t, c, before...)
			})
		}
	}
	c := one[int](t)
	w, _ := c.Reserve(batch...)
	c2, _ := c.Reserve(7)
	if !c2.Put() || !w.PutAll() {
		t.Error("writers failed to publish without reason")
	}
	wantEntries(t, c, append(batch, 7)...)
}

// Checks L5, L7, L8, L10.

// Writers that stall before the chunk that they reserved exists.
func TestChangesetStalledFarWriter(t *testing.T) {
	for _, sealing := range []bool{false, true} {
		c := one[int](t)
		hole, _ := c.Reserve(make([]int, 100)...)
		far, _ := c.Reserve(1)
		batch, _ := c.Reserve(2, 3)
		if sealing {
			mustSeal(t, c)
			if n := c.Chunks(); n != 0 {
				t.Errorf("sealing made %d chunks", n)
			}
		} else {
			wantEntries(t, c)
		}
		if far.Put() || batch.PutAll() || hole.PutAll() {
			t.Error("a writer published into a slot that a cut had passed by")
		}
		wantEntries(t, c)
	}
}

type large = [1 << 16]byte

// collected waits until the garbage collector has taken what p points to.
func collected(t *testing.T, what string, p weak.Pointer[large]) {
	t.Helper()
	for began := time.Now(); p.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Errorf("%s is kept", what)
			return
		}
	}
}

// Checks L11.

// A Final keeps its own entries, and neither its changeset nor those before and
// after it: however many entries it has, with gaps or none.
func TestFinalKeepsItsEntriesAlone(t *testing.T) {
	for _, n := range []int{0, 1, cowchangeset.FirstChunk, 1000} {
		for _, gap := range []bool{false, true} {
			tracker := cowchangeset.MustNew(cowchangeset.Config[*large]{PruneUnapplied: true})
			var finals []cowchangeset.Final[*large]
			var pointers []weak.Pointer[large]
			for i := range 3 {
				c := start(t, tracker)
				own := new(large)
				own[0] = byte(i)
				for range n {
					tracker.Record(own)
				}
				if n == 0 && i != 1 {
					tracker.Record(own) // which the Final of an empty one must not reach
				}
				if gap {
					w, _ := c.Reserve(own) // beyond the last entry
					c.Len()
					w.Put()
				}
				if i == 1 {
					finals = append(finals, mustSeal(t, c))
				}
				pointers = append(pointers, weak.Make(own))
			}
			start(t, tracker)
			tracker.Prune(1)
			collected(t, "what was recorded before", pointers[0])
			collected(t, "what was recorded afterwards", pointers[2])
			if got := values(t, finals[0].All()); len(got) != n || n > 0 && (got[0][0] != 1 || pointers[1].Value() == nil) || finals[0].Len() != n {
				t.Errorf("%d entries, want %d", len(got), n)
			}
			runtime.KeepAlive(tracker)
		}
	}
}

// Sealing again returns an equal Final, also to a writer that came too late, and
// those of different changesets differ, empty or not.
func TestFinalsAreEqual(t *testing.T) {
	tracker, c := opened(t, 1, 2)
	late, _ := c.Reserve(make([]int, 3*cowchangeset.MaxChunk)...)
	f := mustSeal(t, c)
	if late.PutAll() {
		t.Error("recorded after the seal")
	}
	if again := mustSeal(t, c); again != f || !slices.Equal(values(t, again.All()), []int{1, 2}) {
		t.Error("two Finals")
	}
	if g := mustSeal(t, start(t, tracker)); g == f || g == (cowchangeset.Final[int]{}) || g.Len() != 0 {
		t.Error("Finals of different changesets are equal")
	}
	var zero cowchangeset.Final[int]
	if zero.Len() != 0 || values(t, zero.All()) != nil {
		t.Error("the zero Final is not empty")
	}
}

// What receipts promise across a crash: one whose Seq is below Durable is for good;
// any other is lost with its entry, and its place may be given to another.
func TestReceiptsAcrossACrash(t *testing.T) {
	for _, async := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{Async: async})
			c, err := tracker.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			given := map[cowchangeset.Receipt]int{}
			record := func(tracker *cowchangeset.Tracker[int], v int) cowchangeset.Receipt {
				r, err := tracker.Record(v)
				if err != nil && !errors.Is(err, cowchangeset.ErrStore) {
					t.Fatal(err)
				}
				return r
			}
			for v := range 3 {
				given[record(tracker, v)] = v
			}
			if err := tracker.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.faults(failing("Append")) // until the crash
			lost := record(tracker, 3)
			given[lost] = 3
			synctest.Wait()
			durable := c.Durable()
			if lost.Seq < durable {
				t.Error("what the store does not have is durable")
			}
			m.faults(nil)
			names := func(context.Context) (string, error) { return "later", nil }
			resume := func() (*cowchangeset.Tracker[int], *cowchangeset.Changeset[int]) {
				tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m, NewID: names})
				if err != nil {
					t.Fatal(err)
				}
				c, open := tracker.Current()
				if !open || c.Durable() != durable {
					t.Errorf("open %t, %d durable, were %d", open, c.Durable(), durable)
				}
				found := map[cowchangeset.Receipt]int{}
				for r, v := range tracker.Trail().All() {
					found[r] = v
				}
				for r, v := range given {
					if got, ok := found[r]; ok != (r.Seq < durable) || ok && got != v {
						t.Errorf("%v names %d, %t, was given for %d", r, got, ok, v)
					}
				}
				return tracker, c
			}
			// A tracker that seals it and starts another gives no receipt twice.
			tracker, c = resume()
			order := m.ids()
			if _, err := c.Seal(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
			for range 10 {
				if r := record(tracker, 9); given[r] != 0 || r.Ordinal != 2 {
					t.Errorf("%v is given again", r)
				}
			}
			m.check(t)
			// One that goes on with it may.
			synctest.Wait()
			m.mu.Lock()
			m.order, m.sets["1"].Sealed = order, false
			m.mu.Unlock()
			tracker, _ = resume()
			if r := record(tracker, 9); r != lost {
				t.Errorf("%v, and not %v again", r, lost)
			}
		})
	}
}

// A function has run, and the process ends before the store knows that: it runs
// again.
func TestApplyRunsAgainAfterACrash(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	tracker.Record(1)
	ran := 0
	fn := func(context.Context, final) error { ran++; return nil }
	m.faults(failing("Applied"))
	for range 2 {
		if err := c.Apply(t.Context(), fn); !errors.Is(err, errDisk) || ran != 1 {
			t.Error(err, ran)
		}
	}
	m.faults(nil)
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	for c := range tracker.Pending() {
		if err := c.Apply(t.Context(), fn); err != nil {
			t.Error(err)
		}
	}
	if ran != 2 || m.has("1").Applied != cowchangeset.AllApplied {
		t.Errorf("ran %d times", ran)
	}
	m.check(t)
}

// Reported bug 12, boxcar: each of many writers allocates the next chunk.
// T12 boxcar #1: writers that reach the end of a chunk together make one more, and not
// one each.
func TestT12_StressChunksAreNotWasted(t *testing.T) {
	for range 20 {
		_, c := opened(t)
		together(16, func(int) {
			for i := range 200 {
				c.Record(i)
			}
		})
		slots, chunks := cowchangeset.FirstChunk, 1
		for n := slots; slots < int(c.Reserved()); chunks++ {
			n = min(2*n, cowchangeset.MaxChunk)
			slots += n
		}
		if got := c.Chunks(); got > chunks+1 {
			t.Fatalf("%d chunks for %d slots, %d would do", got, c.Reserved(), chunks)
		}
	}
}

// Reported bug 13, append-only-vec, salsa: writers spin for a descheduled one.
// T13 append-only-vec #15, salsa #555: however many write, and on one processor,
// nobody spins for another one.
func TestT13_StressManyOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const writers = 10_000
	_, c := opened(t)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			c.Record(i)
			if i%1000 == 0 {
				c.Len()
			}
		})
	}
	all.Wait()
	got := values(t, c.Entries())
	slices.Sort(got)
	if len(got) != writers || got[0] != 0 || got[writers-1] != writers-1 {
		t.Errorf("%d of %d entries", len(got), writers)
	}
}

// Reported bug 17, trusty-tools, AgentHub: the store gets entries out of order.
// T17 trusty-tools #7161, AgentHub #2154: the store sees entries in the order of
// their numbers, from one caller at a time, however many record.
func TestT17_StressStoreSeesTheOrder(t *testing.T) {
	for _, async := range []bool{false, true} {
		tracker, m := kept(cowchangeset.Config[int]{Async: async})
		var mu sync.Mutex
		receipts := map[int]cowchangeset.Receipt{}
		tracker.Start(t.Context())
		together(8, func(g int) {
			for i := range 100 {
				v := 1000*g + i
				r, err := tracker.Record(v)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				receipts[v] = r
				mu.Unlock()
				if g == 0 && i%20 == 0 {
					tracker.Start(t.Context())
				}
			}
		})
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		n := 0
		for _, id := range m.ids() {
			for _, e := range m.has(id).Entries {
				n++
				if r := receipts[e.Value]; r.ChangesetID != id || r.Seq != e.Seq {
					t.Errorf("%d is at %d of %s, its receipt says %v", e.Value, e.Seq, id, r)
				}
			}
		}
		if n != len(receipts) || n != 800 {
			t.Errorf("%d entries in the store, %d receipts", n, len(receipts))
		}
		m.check(t)
	}
}

// Reported bug 20, Kubernetes: a retry conflicts with its own first attempt.
// T20 Kubernetes #80916, #107417: a caller that tries again after a failure of its own
// does not conflict with itself.
func TestT20_RetriesDoNotConflict(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	first, _ := tracker.Start(t.Context())
	for _, fail := range []func(*memory, func(context.Context, string, string) error){(*memory).faults, (*memory).lateFaults} {
		fail(m, func(context.Context, string, string) error { return errDisk })
		if _, err := tracker.StartAfter(t.Context(), first); !errors.Is(err, errDisk) {
			t.Error(err)
		}
		fail(m, nil)
		next, err := tracker.StartAfter(t.Context(), first)
		if err != nil || next.Previous() != first {
			t.Fatal(err)
		}
		first = next
	}
	m.check(t)
}
