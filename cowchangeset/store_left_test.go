//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// lazy is a store of three changesets that leaves out the entries of those that are
// finished.
type lazy struct {
	cowchangeset.Store[string] // is not called
	saved                      []cowchangeset.Saved[string]
	failure                    error
	hang                       bool   // LoadEntries waits for the end of its context
	during                     func() // called by LoadEntries once, or nil
	reads                      int
}

func newLazy() *lazy {
	h := func(id string, n uint64, previous string) cowchangeset.Header {
		return cowchangeset.Header{ID: id, Ordinal: n, Previous: previous}
	}
	return &lazy{saved: []cowchangeset.Saved[string]{
		{Header: h("A", 1, ""), Manifest: cowchangeset.Manifest{Len: 2, Last: 5}, Sealed: true, Applied: cowchangeset.AllApplied},
		{Header: h("B", 2, "A"), Manifest: cowchangeset.Manifest{Len: 2, Last: 5}, Sealed: true, Aborted: true, Reason: "why"},
		{Header: h("C", 3, "B"), Entries: []cowchangeset.Entry[string]{{Seq: 0, Value: "C0"}}},
	}}
}

func (l *lazy) Load(context.Context) iter.Seq2[cowchangeset.Saved[string], error] {
	return func(yield func(cowchangeset.Saved[string], error) bool) {
		for _, s := range l.saved {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (l *lazy) Applied(context.Context, string, uint64) error { return nil }

func (l *lazy) Prune(context.Context, uint64) error { return nil }

func (l *lazy) LoadEntries(ctx context.Context, id string) iter.Seq2[cowchangeset.Entry[string], error] {
	return func(yield func(cowchangeset.Entry[string], error) bool) {
		l.reads++
		if f := l.during; f != nil {
			l.during = nil
			f()
		}
		if l.hang {
			<-ctx.Done()
			yield(cowchangeset.Entry[string]{}, ctx.Err())
			return
		}
		if yield(cowchangeset.Entry[string]{Seq: 0, Value: id + "0"}, nil) {
			if l.failure != nil {
				yield(cowchangeset.Entry[string]{}, l.failure)
				return
			}
			yield(cowchangeset.Entry[string]{Seq: 5, Value: id + "5"}, nil)
		}
	}
}

func resumeLazy(t *testing.T, l *lazy) *cowchangeset.Tracker[string] {
	t.Helper()
	tracker, err := cowchangeset.Resume(context.Background(), cowchangeset.Config[string]{Store: l})
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

// What is finished comes back as a header, and its entries are read when somebody asks
// for them, wherever that is.
func TestEntriesLeftInTheStore(t *testing.T) {
	l := newLazy()
	tracker := resumeLazy(t, l)
	a, _ := tracker.ByID("A")
	b, _ := tracker.ByID("B")
	if a.Len() != 2 || b.Len() != 2 || tracker.Trail().Len() != 5 || a.Durable() != 6 || !a.IsSealed() || b.Reason().Error() != "why" ||
		len(slices.Collect(tracker.Pending())) > 0 {
		t.Error("other headers")
	}
	for _, c := range []*cowchangeset.Changeset[string]{a, b} {
		err := c.Apply(context.Background(), func(context.Context, cowchangeset.Final[string]) error { panic("applied again") })
		if !errors.Is(err, cowchangeset.ErrApplied) && !errors.Is(err, cowchangeset.ErrAborted) {
			t.Error(err)
		}
		if _, err := c.Record("late"); err != cowchangeset.ErrSealed {
			t.Error(err)
		}
	}
	if l.reads > 0 {
		t.Error("entries were read")
	}
	want := []string{"A0", "A5", "B0", "B5", "C0"}
	trail := tracker.Trail()
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	texts := func(all iter.Seq2[uint64, string]) (texts []string) {
		for seq, e := range all {
			if (seq == 5) != (e[1] == '5') {
				t.Errorf("%d: %s", seq, e)
			}
			texts = append(texts, e)
		}
		return texts
	}
	var all []string
	for r, e := range trail.All() {
		all = append(all, e)
		if r.ChangesetID != e[:1] {
			t.Error(r, e)
		}
	}
	check("Trail", all, want...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var followed []string
	for _, e := range tracker.Follow(ctx, cowchangeset.Receipt{Ordinal: 1, Seq: 1}) {
		if followed = append(followed, e); e == "C0" {
			cancel()
		}
	}
	check("Follow", followed, want[1:]...)
	check("Changeset.Follow", texts(a.Follow(context.Background(), 1)), "A5")
	for range a.Entries() {
		break
	}
	check("Entries", texts(a.Entries()), "A0", "A5")
	f, err := a.Seal(context.Background())
	again, _ := a.Seal(context.Background())
	if err != nil || f.Len() != 2 || f != again {
		t.Error(err, f)
	}
	check("Final", texts(f.All()), "A0", "A5")
	reads := l.reads
	check("Entries of what was sealed", texts(a.Entries()), "A0", "A5")
	check("Follow of what was sealed", texts(a.Follow(context.Background(), 0)), "A0", "A5")
	if l.reads > reads {
		t.Error("Seal has not kept the entries")
	}
	l.during = func() { again, _ = b.Seal(context.Background()) }
	if f, err = b.Seal(context.Background()); err != nil || f != again {
		t.Error("two Seals at once return different Finals", err)
	}
	check("Final of two", texts(f.All()), "B0", "B5")
}

// After Fetch, loops over a trail need no store, wherever it ends and whenever it was taken.
func TestTrailFetch(t *testing.T) {
	for n := 1; n <= 3; n++ {
		l := newLazy()
		l.saved = l.saved[:n]
		tracker := resumeLazy(t, l)
		trail := tracker.Trail()
		if err := trail.Fetch(context.Background()); err != nil {
			t.Fatal(err)
		}
		l.failure = errors.New("boom")
		for _, trail := range []cowchangeset.Trail[string]{trail, tracker.Trail()} {
			var all []string
			for _, e := range trail.All() {
				all = append(all, e)
			}
			if want := []string{"A0", "A5", "B0", "B5", "C0"}[:min(2*n, 5)]; !slices.Equal(all, want) || trail.Len() != len(want) {
				t.Errorf("%v, want %v", all, want)
			}
			if err := trail.Fetch(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := (cowchangeset.Trail[string]{}).Fetch(context.Background()); err != nil {
		t.Error(err)
	}
}

// A store that yields other entries than its Manifest says has failed.
func TestEntriesLeftInAStoreThatYieldsOthers(t *testing.T) {
	for _, m := range []cowchangeset.Manifest{{Len: 1, Last: 5}, {Len: 3, Last: 5}, {Len: 2, Last: 4}, {Len: 2, Last: 6}} {
		l := newLazy()
		l.saved[0].Manifest = m
		tracker := resumeLazy(t, l)
		if err := tracker.Trail().Fetch(context.Background()); !errors.Is(err, cowchangeset.ErrStore) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// A store that cannot yield the entries is an error where there is one, and no trail that
// ends early; but what was pruned is gone.
func TestEntriesLeftInAStoreThatFails(t *testing.T) {
	l := newLazy()
	tracker := resumeLazy(t, l)
	a, _ := tracker.ByID("A")
	trail := tracker.Trail()
	l.failure = errors.New("boom")
	var failed *cowchangeset.StoreError
	if f, err := a.Seal(context.Background()); !errors.As(err, &failed) || !errors.Is(err, l.failure) || f.Len() > 0 {
		t.Error(err)
	}
	for range (cowchangeset.Final[string]{}).All() {
		t.Error("an entry")
	}
	for what, loop := range map[string]func(){
		"Entries": func() {
			for range a.Entries() {
			}
		},
		"Trail": func() {
			for range trail.All() {
			}
		},
		"Follow": func() {
			for range a.Follow(context.Background(), 0) {
			}
		},
	} {
		func() {
			defer func() {
				if err, _ := recover().(*cowchangeset.StoreError); err == nil || err.ChangesetID != "A" || !errors.Is(err, l.failure) {
					t.Errorf("%s: %v", what, err)
				}
			}()
			loop()
		}()
	}
	if err := trail.Fetch(context.Background()); !errors.As(err, &failed) || !errors.Is(err, l.failure) {
		t.Errorf("Fetch: %v", err)
	}
	if n := tracker.Prune(1); n != 2 {
		t.Fatal(n)
	}
	n := 0
	for range trail.All() {
		n++
	}
	if n != 1 { // that of C
		t.Errorf("%d entries", n)
	}
	for range a.Entries() {
		t.Error("an entry")
	}
	if err := trail.Fetch(context.Background()); !errors.Is(err, l.failure) { // or it would seem complete
		t.Errorf("Fetch of what was pruned: %v", err)
	}
}

// Loops wait no longer for entries than for any other answer of the store.
func TestEntriesLeftInAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLazy()
		l.hang = true
		tracker := resumeLazy(t, l)
		a, _ := tracker.ByID("A")
		trail := tracker.Trail()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for what, read := range map[string]func() error{
			"Entries": func() error {
				for range a.Entries() {
				}
				return nil
			},
			"Trail": func() error {
				for range trail.All() {
				}
				return nil
			},
			"Follow": func() error {
				for range tracker.Follow(ctx, cowchangeset.Receipt{}) {
				}
				return nil
			},
			"Seal": func() error { _, err := a.Seal(ctx); return err },
		} {
			began := time.Now()
			err := func() (err error) {
				defer func() {
					if failed, ok := recover().(*cowchangeset.StoreError); ok {
						err = failed
					}
				}()
				return read()
			}()
			if !errors.Is(err, cowchangeset.ErrStoreTimeout) || !errors.Is(err, cowchangeset.ErrStore) || time.Since(began) != time.Minute {
				t.Errorf("%s: %v after %v", what, err, time.Since(began))
			}
		}
		time.AfterFunc(time.Second, cancel)
		for range a.Follow(ctx, 0) {
			t.Error("an entry")
		}
	})
}

// Resume refuses what it could not read later.
func TestEntriesLeftOutWrongly(t *testing.T) {
	for what, change := range map[string]func(*cowchangeset.Saved[string]){
		"not finished":     func(s *cowchangeset.Saved[string]) { s.Aborted = false },
		"entries as well":  func(s *cowchangeset.Saved[string]) { s.Entries = []cowchangeset.Entry[string]{{}} },
		"too many":         func(s *cowchangeset.Saved[string]) { s.Manifest.Len = 7 },
		"beyond all bound": func(s *cowchangeset.Saved[string]) { s.Manifest.Last = 1 << 62 },
	} {
		l := newLazy()
		change(&l.saved[1])
		if _, err := cowchangeset.Resume(context.Background(), cowchangeset.Config[string]{Store: l}); err == nil {
			t.Error(what)
		}
	}
	type eager struct{ cowchangeset.Loader[string] } // and no EntryLoader
	if _, err := cowchangeset.Resume(context.Background(), cowchangeset.Config[string]{Store: eager{newLazy()}}); err == nil {
		t.Error("no EntryLoader")
	}
}

// A caller that stops waiting for entries that were left ends the store's call.
func TestEntriesLeftAreReadInTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLazy()
		l.hang = true
		tracker := resumeLazy(t, l)
		a, _ := tracker.ByID("A")
		for what, read := range map[string]func(ctx context.Context) error{
			"Seal":        func(ctx context.Context) error { _, err := a.Seal(ctx); return err },
			"Trail.Fetch": tracker.Trail().Fetch,
			"Follow": func(ctx context.Context) error {
				for range a.Follow(ctx, 0) {
					t.Error("an entry")
				}
				return ctx.Err()
			},
		} {
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s panics: %v", what, p)
					}
				}()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				began := time.Now()
				if err := read(ctx); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
					t.Errorf("%s: %v after %v", what, err, time.Since(began))
				}
			}()
		}
		reads := l.reads
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for range a.Follow(done, 0) {
			t.Error("an entry")
		}
		apply := func(context.Context, cowchangeset.Final[string]) error { panic("applied again") }
		if err := a.Apply(done, apply); err != context.Canceled || l.reads != reads {
			t.Error("a done context:", err, l.reads-reads)
		}
	})
}

// A store that has begun something with the context of Claim or LoadEntries learns that the
// call is over, long before StoreTimeout.
func TestContextsOfReadsEndWithThem(t *testing.T) {
	s := &noting{lazy: newLazy(), given: map[string]context.Context{}}
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[string]{Store: s, StoreTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := tracker.Trail().Fetch(t.Context()); err != nil || len(s.given) != 2 {
		t.Error(err, s.given)
	}
	for method, ctx := range s.given {
		if ctx.Err() != context.Canceled {
			t.Errorf("%s has returned, and its context has not ended: %v", method, ctx.Err())
		}
	}
}

// noting notes the contexts of its calls.
type noting struct {
	*lazy
	given map[string]context.Context
}

func (n *noting) Claim(ctx context.Context) error { n.given["Claim"] = ctx; return nil }

func (n *noting) Release() {}

func (n *noting) LoadEntries(ctx context.Context, id string) iter.Seq2[cowchangeset.Entry[string], error] {
	n.given["LoadEntries"] = ctx
	return n.lazy.LoadEntries(ctx, id)
}
