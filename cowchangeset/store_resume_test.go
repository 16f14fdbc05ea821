//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Prune forgets, and only what it may.
func TestPrune(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	if tracker.Prune(1) != 0 {
		t.Error("forgets what there is not")
	}
	var all []*cowchangeset.Changeset[int]
	for v := range 5 {
		c, _ := tracker.Start(t.Context())
		all = append(all, c)
		tracker.Record(v)
	}
	old := tracker.Trail()
	if err := tracker.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := tracker.Prune(2); n != 3 {
		t.Error(n)
	}
	if got := tracker.IDs(); !slices.Equal(got, []string{"4", "5"}) {
		t.Errorf("left %v", got)
	}
	if n := tracker.Prune(2); n != 0 {
		t.Error(n)
	}
	if all[3].Previous() != nil || all[4].Previous() != all[3] {
		t.Error("wrong links")
	}
	count := func(tr cowchangeset.Trail[int]) (vs []int) {
		for r, v := range tr.All() {
			if r.Ordinal != uint64(v+1) {
				t.Error(r, v)
			}
			vs = append(vs, v)
		}
		return vs
	}
	if got := count(tracker.Trail()); !slices.Equal(got, []int{3, 4}) || tracker.Trail().Len() != 2 {
		t.Error(got)
	}
	if got := count(old); !slices.Equal(got, []int{0, 1, 2, 3, 4}) || old.Len() != 5 {
		t.Error(got)
	}
	if n, err := tracker.Start(t.Context()); err != nil || n.Ordinal() != 6 {
		t.Error(n, err)
	}
	if p := panicOf(func() { tracker.Prune(0) }); p != "cowchangeset: Tracker.Prune called with 0, must keep at least 1" {
		t.Error(p)
	}
	m.check(t)
}

// What the store has not been told stays.
func TestPruneKeepsWhatIsNotDurable(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	m.faults(func(_ context.Context, method, id string) error {
		if method == "Append" && id == "2" {
			return errDisk
		}
		return nil
	})
	for v := range 4 {
		tracker.Start(t.Context())
		tracker.Record(v)
	}
	for c, _ := tracker.Current(); c != nil; c = c.Previous() {
		c.Seal(t.Context())
	}
	if n := tracker.Prune(1); n != 1 || tracker.IDs()[0] != "2" {
		t.Error(n, tracker.IDs())
	}
	m.check(t)
}

func panicOf(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// The memory of what is forgotten returns.
func TestPruneFreesMemory(t *testing.T) {
	tracker := cowchangeset.MustNew(cowchangeset.Config[*[1 << 16]byte]{PruneUnapplied: true})
	var first weak.Pointer[[1 << 16]byte]
	for i := range 100 {
		tracker.Start(t.Context())
		e := new([1 << 16]byte)
		if i == 0 {
			first = weak.Make(e)
		}
		tracker.Record(e)
		if i > 50 {
			tracker.Prune(10)
		}
	}
	for began := time.Now(); first.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("what was forgotten is not collected")
		}
	}
	if n := len(tracker.IDs()); n != 10 {
		t.Error(n)
	}
}

// Whatever happens while others prune, IDs and trails have no gaps.
func TestStressPrune(t *testing.T) {
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
	tracker.Start(t.Context())
	together(4, func(g int) {
		for i := range 500 {
			switch g {
			case 0:
				tracker.Start(t.Context())
				tracker.Record(i)
			case 1:
				tracker.Prune(1 + i%3)
			case 2:
				if len(tracker.IDs()) == 0 {
					t.Error("no changeset")
				}
			default:
				last, n := uint64(0), 0
				tr := tracker.Trail()
				for r := range tr.All() {
					if r.Ordinal < last || last != 0 && r.Ordinal > last+1 {
						t.Errorf("changeset %d after %d", r.Ordinal, last)
					}
					last = r.Ordinal
					n++
				}
				if n != tr.Len() {
					t.Errorf("%d entries, Len %d", n, tr.Len())
				}
			}
		}
	})
}

// everything says what a tracker shows.
func everything(tracker *cowchangeset.Tracker[int]) (all []string) {
	for r, v := range tracker.Trail().All() {
		all = append(all, fmt.Sprint(r, v))
	}
	for c, _ := tracker.Current(); c != nil; c = c.Previous() {
		all = append(all, fmt.Sprint(c.ID(), c.Ordinal(), c.Len(), c.Applied(), c.Reason()))
	}
	return append(all, tracker.IDs()...)
}

// Resume makes what there was, whatever that was, and goes on with it.
func TestResume(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		tracker, m := kept(cowchangeset.Config[int]{})
		for life := range 3 {
			for range r.IntN(30) {
				c, open := tracker.Current()
				switch n := r.IntN(12); {
				case c == nil || n == 0:
					tracker.Start(t.Context())
				case n == 1:
					c.Seal(t.Context())
				case n == 2 && !open:
					c.Abort(t.Context(), errDisk)
				case n == 3 && !open:
					c.Apply(t.Context(), func(context.Context, final) error { return nil })
				case n == 4 && !open:
					c.ApplyEach(t.Context(), func(_ context.Context, _ uint64, v int) error {
						if v%3 == 0 {
							return errDisk
						}
						return nil
					})
				case n == 5:
					tracker.RecordBatch([]int{r.IntN(100), r.IntN(100)})
				case n == 6 && open:
					if w, ok := c.Reserve(-1); ok { // killed by a cut: a gap
						c.Len()
						w.Put()
					}
				default:
					tracker.Record(r.IntN(100))
				}
			}
			if err := tracker.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := len(m.called())
			again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m, NewID: func(context.Context) (string, error) { n++; return fmt.Sprint("life", life, " ", n), nil }})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := everything(again), everything(tracker); !reflect.DeepEqual(got, want) {
				t.Fatalf("resumed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if calls := m.called()[n:]; len(calls) != 0 {
				t.Errorf("the store is told again: %q", calls)
			}
			_, wasOpen := tracker.Current()
			if _, open := again.Current(); open != wasOpen {
				t.Errorf("open %t, was %t", open, wasOpen)
			}
			tracker = again
		}
		m.check(t)
	}
}

// What the process had not told the store of a sealed changeset is told by Resume.
func TestResumeSeals(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	tracker.Start(t.Context())
	tracker.Record(1)
	m.faults(func(_ context.Context, method, _ string) error {
		if method == "Seal" {
			return errDisk
		}
		return nil
	})
	tracker.Start(t.Context())
	tracker.Flush(t.Context())
	m.faults(nil)
	if m.has("1").Sealed {
		t.Fatal("is sealed")
	}
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Flush(t.Context()); err != nil || !m.has("1").Sealed {
		t.Error(err)
	}
	m.check(t)
}

// liar loads what it is given.
type liar struct {
	*memory
	all []saved
	err error
}

func (l liar) Load(context.Context) iter.Seq2[saved, error] {
	return func(yield func(saved, error) bool) {
		for _, s := range l.all {
			if !yield(s, nil) {
				return
			}
		}
		if l.err != nil {
			yield(saved{}, l.err)
		}
	}
}

// What does not fit is an error that says what, and no tracker.
func TestResumeRefuses(t *testing.T) {
	header := func(id string, n uint64, previous string) cowchangeset.Header {
		return cowchangeset.Header{ID: id, Ordinal: n, Previous: previous}
	}
	for want, l := range map[string]liar{
		"empty ID":                    {all: []saved{{Header: header("", 1, "")}}},
		"its ordinal is 0":            {all: []saved{{Header: header("a", 0, "")}}},
		"its ordinal is 3, after 1":   {all: []saved{{Header: header("a", 1, "")}, {Header: header("b", 3, "a")}}},
		`it follows "x", after "a"`:   {all: []saved{{Header: header("a", 1, "")}, {Header: header("b", 2, "x")}}},
		"entry 2 comes after entry 2": {all: []saved{{Header: header("a", 1, ""), Entries: []item{{2, 0}, {2, 0}}}}},
		"is beyond what":              {all: []saved{{Header: header("a", 1, ""), Entries: []item{{1 << 62, 0}}}}},
		"disk full":                   {all: []saved{{Header: header("a", 1, "")}}, err: errDisk},
	} {
		l.memory = newMemory()
		tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: l})
		if tracker != nil || err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, cowchangeset.ErrStore) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errEnded)
	for id, l := range map[string]liar{ // the context's end, where it is seen; but not in place of the loader's own error
		"a": {all: []saved{{Header: header("a", 1, "")}}},
		"":  {err: errDisk},
	} {
		l.memory = newMemory()
		_, err := cowchangeset.Resume(ended, cowchangeset.Config[int]{Store: l})
		var s *cowchangeset.StoreError
		if want := map[string]error{"a": errEnded, "": errDisk}[id]; !errors.As(err, &s) || s.ChangesetID != id || !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", id, err, want)
		}
	}
	// A store may have forgotten the first ones.
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: liar{memory: newMemory(), all: []saved{{Header: header("g", 7, "f")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if c, open := tracker.Current(); c.Ordinal() != 7 || !open {
		t.Error(c.Ordinal(), open)
	}
}

// What was aborted was sealed, too.
func TestResumeAborted(t *testing.T) {
	l := liar{memory: newMemory(), all: []saved{{Header: cowchangeset.Header{ID: "a", Ordinal: 1}, Aborted: true}}}
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: l})
	if err != nil {
		t.Fatal(err)
	}
	if c, open := tracker.Current(); open || !c.IsSealed() {
		t.Error("it is open")
	}
}

// What was applied was sealed, whatever else the store has of it.
func TestResumeApplied(t *testing.T) {
	for _, applied := range []uint64{1, cowchangeset.AllApplied} {
		loaded := saved{Header: cowchangeset.Header{ID: "a", Ordinal: 1}, Entries: []item{{0, 0}, {1, 1}}, Applied: applied}
		l := liar{memory: newMemory(), all: []saved{loaded}}
		loaded.Sealed = true
		l.order, l.sets["a"] = []string{"a"}, &loaded
		tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: l, StoreTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c, open := tracker.Current()
		if _, err := c.Record(2); open || err != cowchangeset.ErrSealed || c.Applied() != applied {
			t.Errorf("applied up to %d, open %t, Record: %v", c.Applied(), open, err)
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		var want error
		left := []int{1}
		if applied == cowchangeset.AllApplied {
			want, left = cowchangeset.ErrApplied, nil
		}
		var got []int
		err = c.ApplyEach(t.Context(), func(_ context.Context, _ uint64, e int) error { got = append(got, e); return nil })
		if err != want || !slices.Equal(got, left) {
			t.Errorf("applied up to %d, and then %v: %v", applied, got, err)
		}
		if err := c.Abort(t.Context(), nil); err != cowchangeset.ErrApplied {
			t.Errorf("Abort of what is applied: %v", err)
		}
	}
}

// A Loader that stops in the middle because ctx has ended, and does not say so,
// makes no tracker that lacks the rest.
func TestResumeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	q := &quitter{memory: newMemory(), end: func() { cancel(errDisk) }}
	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[int]{Store: q})
	if tracker != nil || !errors.Is(err, errDisk) || !errors.Is(err, cowchangeset.ErrStore) {
		t.Error(tracker, err)
	}
	if context.Cause(q.given) != errDisk {
		t.Error("the context of Load has not ended")
	}
}

// quitter loads one of several.
type quitter struct {
	*memory
	end   func()
	given context.Context
}

func (q *quitter) Load(ctx context.Context) iter.Seq2[saved, error] {
	q.given = ctx
	return func(yield func(saved, error) bool) {
		if yield(saved{Header: cowchangeset.Header{ID: "a", Ordinal: 1}}, nil) {
			q.end()
		}
	}
}

// shelf is a store of one changeset that is not told anything.
type shelf struct {
	cowchangeset.Store[string]
	has cowchangeset.Saved[string]
}

func (s *shelf) Load(context.Context) iter.Seq2[cowchangeset.Saved[string], error] {
	return func(yield func(cowchangeset.Saved[string], error) bool) { yield(s.has, nil) }
}

// A gap ends in the chunk that it begins in, or in the next one: wherever it begins,
// and also where chunks are longer than they need be.
func TestResumeAcrossTheEndsOfChunks(t *testing.T) {
	for begin := 0; begin < 3*cowchangeset.MaxChunk; begin += 3 {
		for gap := cowchangeset.MaxChunk - 1; gap < cowchangeset.MaxChunk+40; gap += 13 {
			s := &shelf{has: cowchangeset.Saved[string]{Header: cowchangeset.Header{ID: "a", Ordinal: 1}}}
			var want []uint64
			for i := range begin + 1 {
				want = append(want, uint64(i))
			}
			want[begin] += uint64(gap)
			for _, seq := range want {
				s.has.Entries = append(s.has.Entries, cowchangeset.Entry[string]{Seq: seq, Value: fmt.Sprint(seq)})
			}
			tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[string]{Store: s})
			if err != nil {
				t.Fatal(err)
			}
			c, _ := tracker.Current()
			got := 0
			for seq, e := range c.Entries() {
				if got == len(want) || seq != want[got] || e != fmt.Sprint(seq) {
					t.Fatalf("%d entries, then a gap of %d: entry %d is %q", begin, gap, seq, e)
				}
				got++
			}
			if got != len(want) {
				t.Fatalf("%d entries, then a gap of %d: there are %d", begin, gap, got)
			}
		}
	}
}
