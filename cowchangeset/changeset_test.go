//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

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

// A sealer stalls after the seal bit: an operation that sees the bit finishes the seal,
// before it tells anybody.
func TestChangesetStalledSealer(t *testing.T) {
	type tracker = cowchangeset.Tracker[int]
	type changeset = cowchangeset.Changeset[int]
	for name, notice := range map[string]func(*tracker, *changeset){
		"Tracker.Record":    func(tr *tracker, _ *changeset) { tr.Record(1) },
		"Tracker.Current":   func(tr *tracker, _ *changeset) { tr.Current() },
		"Tracker.Trail":     func(tr *tracker, _ *changeset) { tr.Trail() },
		"Changeset.Record":  func(_ *tracker, c *changeset) { c.Record(1) },
		"Changeset.Sealed":  func(_ *tracker, c *changeset) { c.Sealed() },
		"Changeset.Seal":    func(_ *tracker, c *changeset) { c.Seal(context.Background()) },
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
