//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// remembering returns an empty registry of one shard that remembers n changes.
func remembering(n int) *shardedregistry.Registry[string, int] {
	return shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, History: n})
}

// since returns the changes that there are after a revision, less that revision.
func since(r *shardedregistry.Registry[string, int], after shardedregistry.Revision, filters ...shardedregistry.Filter[string]) (all []string, err error) {
	rr := shardedregistry.OpenRevisions(r, after, filters...)
	for {
		c, err := rr.Next()
		if err != nil || c.Revision == 0 {
			return all, err
		}
		s := fmt.Sprintf("%d: %s=%d@%d", c.Revision-after, c.Key, c.Value, c.Version)
		switch {
		case c.Bookmark:
			s = fmt.Sprintf("%d: bookmark", c.Revision-after)
		case c.Deleted:
			s = fmt.Sprintf("%d: %s=%d gone@%d", c.Revision-after, c.Key, c.Value, c.Version)
		}
		all = append(all, s)
	}
}

func wantSince(t testing.TB, r *shardedregistry.Registry[string, int], after shardedregistry.Revision, want ...string) {
	t.Helper()
	if got, err := since(r, after); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v is yielded, want %q", got, err, want)
	}
	if now, cut := r.Revision(), r.Snapshot().Revision(); now != cut {
		t.Errorf("the revision is %d, and that of a snapshot %d", now, cut)
	}
}

// Each method that changes a key gives its change the next revision, and a loop yields
// each, a deletion with the last value.
func TestWatchFrom(t *testing.T) {
	r := remembering(64)
	begin := r.Revision()
	wantSince(t, r, begin)
	mustPut(t, r, "a", 1)
	r.Create("b", 1)
	wantSince(t, r, begin, "1: a=1@1", "2: b=1@1")
	r.Update("a", func(v int) (int, error) { return v + 1, nil })
	r.UpdateIf("a", 2, 3)
	r.UpdateIf("a", 2, 4)
	first := []string{"1: a=1@1", "2: b=1@1", "3: a=2@2", "4: a=3@3"}
	wantSince(t, r, begin, first...)
	createOrUpdate(r, "c", func(int, bool) (int, error) { return 1, nil })
	createOrUpdate(r, "c", func(int, bool) (int, error) { return 0, errTest })
	r.GetOrCreate("d", answer(6, nil))
	r.Get("d")
	middle := r.Revision()
	wantSince(t, r, begin, append(first, "5: c=1@1", "6: d=6@1")...)
	r.Delete("a")
	r.DeleteIf("b", 1)
	r.DeleteFunc(func(k string, _ int) bool { return k == "c" })
	gone := []string{"1: a=3 gone@4", "2: b=1 gone@2", "3: c=1 gone@2"}
	wantSince(t, r, middle, gone...)
	r.Put("a", 8) // above the versions of all that were deleted
	r.Put("a", 9)
	r.Delete("a")
	wantSince(t, r, middle, append(gone, "4: a=8@5", "5: a=9@6", "6: a=9 gone@7")...)
	wantSince(t, r, r.Revision())
	if _, ok := r.Delete("a"); ok || r.Revision() != middle+6 {
		t.Errorf("the revision is %d after %d", r.Revision(), middle)
	}
}

// A loop resumes where another one has left off, wherever that was.
func TestWatchFromResumes(t *testing.T) {
	r := remembering(1024)
	view := map[string]int{}
	at := r.Revision()
	for i := range 300 {
		mustPut(t, r, key(i%17), i)
		if i%5 == 0 {
			r.Delete(key(i % 13))
		}
		left := i % 4 // changes that this loop yields
		for c, err := range r.WatchFrom(t.Context(), at) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Revision <= at {
				t.Fatalf("revision %d comes after %d", c.Revision, at)
			}
			apply(view, []event{c.Event})
			at = c.Revision
			if left--; left < 0 || c.Revision == r.Revision() {
				break
			}
		}
	}
	last := mustPut(t, r, "last", 1)
	for c := range r.WatchFrom(t.Context(), at) {
		apply(view, []event{c.Event})
		if c.Key == "last" && c.Version == last {
			break
		}
	}
	if len(view) != r.Len() {
		t.Errorf("the view has %d keys, want %d", len(view), r.Len())
	}
	for k, v := range view {
		wantValue(t, r, k, v)
	}
}

// A loop may begin after the oldest change but one, and no earlier; the error tells from
// where. Peers were wrong by one, here and in what they then offered.
func TestCompaction(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		size := 1
		for size < n { // rounded up
			size *= 2
		}
		r := remembering(n)
		begin := r.Revision()
		for i := range 3 * size {
			if i == size {
				for j := range size {
					wantLen(t, r, begin+shardedregistry.Revision(j), size-j)
				}
			}
			mustPut(t, r, key(i), i)
			after := r.Revision() - shardedregistry.Revision(min(i+1, size))
			wantLen(t, r, after, min(i+1, size))
			if _, err := since(r, after-1); after > begin {
				want := &shardedregistry.CompactedError{Revision: after - 1, Oldest: after}
				if e := new(shardedregistry.CompactedError); !errors.As(err, &e) || *e != *want || !errors.Is(err, shardedregistry.ErrCompacted) {
					t.Fatalf("%d of %d changes, one too early: %v, want %v", i+1, size, err, want)
				}
			} else if !errors.Is(err, shardedregistry.ErrUnknownRevision) {
				t.Fatalf("before the first revision: %v", err)
			}
		}
	}
	err := (&shardedregistry.CompactedError{Revision: 5, Oldest: 7}).Error()
	if want := "shardedregistry: changes after the revision are forgotten: have read up to 5, changes up to 7 are forgotten"; err != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func wantLen(t testing.TB, r *shardedregistry.Registry[string, int], after shardedregistry.Revision, n int) {
	t.Helper()
	if got, err := since(r, after); err != nil || len(got) != n {
		t.Fatalf("%q, %v is yielded, want %d changes", got, err, n)
	}
}

// A loop that is overtaken while its body runs ends with the error, and what it has shown
// is right.
func TestWatchFromIsOvertaken(t *testing.T) {
	r := remembering(4)
	begin := r.Revision()
	mustPut(t, r, "a", 0)
	var got []string
	for c, err := range r.WatchFrom(t.Context(), begin) {
		if err != nil {
			got = append(got, err.Error())
			if c.Revision != 0 || c.Key != "" {
				t.Errorf("%v comes with the error", c)
			}
			continue // there is nothing after it
		}
		got = append(got, c.Key)
		for i := range 5 {
			mustPut(t, r, key(i), i)
		}
	}
	if len(got) != 2 || got[0] != "a" || !strings.Contains(got[1], "forgotten") {
		t.Errorf("%q is yielded", got)
	}
}

// A revision that a registry has not reached is an error, and so is one of another.
func TestUnknownRevision(t *testing.T) {
	r, other := remembering(4), remembering(4)
	for i := range 3 {
		mustPut(t, r, "a", i)
		mustPut(t, other, "a", i)
	}
	for name, at := range map[string]shardedregistry.Revision{
		"the future": r.Revision() + 1, "the past": r.Revision() - 4, "another registry": other.Revision(), "one": 1,
		"the largest": ^shardedregistry.Revision(0),
	} {
		_, err := since(r, at)
		e := new(shardedregistry.UnknownRevisionError)
		if !errors.Is(err, shardedregistry.ErrUnknownRevision) || !errors.As(err, &e) || e.Revision != at {
			t.Errorf("%s: %v", name, err)
		}
		if want := fmt.Sprintf("shardedregistry: unknown revision: %d", at); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Revision 0 stands for all that is remembered when the loop begins; from then on nothing
// is skipped.
func TestWatchFromTheBeginning(t *testing.T) {
	r := remembering(4)
	early := shardedregistry.OpenRevisions(r, 0)
	if c, err := early.Next(); c.Revision != 0 || err != nil {
		t.Errorf("%v, %v comes of an empty registry", c, err)
	}
	for i := range 6 {
		mustPut(t, r, key(i), i)
	}
	if _, err := early.Next(); !errors.Is(err, shardedregistry.ErrCompacted) {
		t.Errorf("a loop that was overtaken: %v", err)
	}
	late := shardedregistry.OpenRevisions(r, 0)
	mustPut(t, r, key(6), 6) // which overtakes it before it has read anything
	for i := 3; i < 7; i++ {
		if c, err := late.Next(); c.Key != key(i) || err != nil {
			t.Errorf("%v, %v comes, want %s", c, err, key(i))
		}
	}
}

// Who replaces the change of a caller that stalls remembers that first, so nothing is left out,
// and the versions of a key increase with the revisions.
func TestLateChangesAreRememberedFirst(t *testing.T) {
	r := remembering(16)
	begin := r.Revision()
	mustPut(t, r, "a", 1)
	late := shardedregistry.Stored(r, "a", 2)
	wantSince(t, r, begin, "1: a=1@1") // not yet
	mustPut(t, r, "a", 3)
	want := []string{"1: a=1@1", "2: a=2@2", "3: a=3@3"}
	wantSince(t, r, begin, want...)
	late()
	wantSince(t, r, begin, want...)
	dead := shardedregistry.Kill(r, "a")
	mustPut(t, r, "a", 5)
	r.Delete("a")
	want = append(want, "4: a=3 gone@4", "5: a=5@5", "6: a=5 gone@6")
	wantSince(t, r, begin, want...)
	dead()
	wantSince(t, r, begin, want...)
	if n := shardedregistry.Linked(r); n != 0 {
		t.Errorf("%d cells are linked", n)
	}
	mustPut(t, r, "b", 1)
	stalled := shardedregistry.Kill(r, "b")
	want = append(want, "7: b=1@7")
	wantSince(t, r, begin, want...)
	stalled()
	wantSince(t, r, begin, append(want, "8: b=1 gone@8")...)
}

// A loop with filters that skips many changes yields bookmarks, from which another goes on.
func TestBookmarks(t *testing.T) {
	r := remembering(32)
	begin := r.Revision()
	a := shardedregistry.Keys("a")
	want := []string{"1: a=0@1", "5: bookmark", "9: bookmark", "12: a=1@2", "16: bookmark"}
	for i := range 2 {
		mustPut(t, r, "a", i)
		for range 10 - 5*i {
			mustPut(t, r, "b", i)
		}
	}
	if got, err := since(r, begin, a); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v is yielded, want %q", got, err, want)
	}
	for range 30 { // more than a loop that went on after the last change of a could miss
		mustPut(t, r, "b", 2)
	}
	if _, err := since(r, begin+16, a); err != nil {
		t.Error(err)
	}
	if _, err := since(r, begin+12, a); !errors.Is(err, shardedregistry.ErrCompacted) {
		t.Errorf("error %v", err)
	}
	for c, err := range r.WatchFrom(t.Context(), begin+16, a) {
		if err != nil || !c.Bookmark || c.Revision != begin+20 || c.Event != (event{}) {
			t.Errorf("%+v, %v is yielded, want a bookmark", c, err)
		}
		break
	}
}

// A registry that remembers few changes has a bookmark for each that is skipped.
func TestBookmarksOfFewChanges(t *testing.T) {
	for _, n := range []int{1, 8, 15} {
		r := remembering(n)
		begin := r.Revision()
		mustPut(t, r, "b", 1)
		if got, err := since(r, begin, shardedregistry.Keys("a")); err != nil || !slices.Equal(got, []string{"1: bookmark"}) && n < 15 || n == 15 && len(got) != 0 {
			t.Errorf("History %d: %q, %v is yielded", n, got, err)
		}
	}
}

// Filters.
func TestWatchFromFiltered(t *testing.T) {
	r := remembering(1024)
	begin := r.Revision()
	for i, k := range someKeys {
		mustPut(t, r, k, i)
	}
	for name, f := range someFilters {
		var want []string
		for i, k := range someKeys {
			if f.Accepts(k) {
				want = append(want, fmt.Sprintf("%d: %s=%d@1", i+1, k, i))
			}
		}
		if got, err := since(r, begin, f.Filters()...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v is yielded, want %q", name, got, err, want)
		}
	}

	plans := remembering(64)
	state := plans.Snapshot()
	mustPut(t, plans, "c", 1)
	mustPut(t, plans, "b", 2)
	mustPut(t, plans, "a", 3)
	for c, err := range plans.WatchFrom(t.Context(), state.Revision(), shardedregistry.Keys("a")) {
		if err != nil || c.Key != "a" || c.Value != 3 || c.Revision != state.Revision()+3 {
			t.Errorf("%v, %v is yielded", c, err)
		}
		break
	}
	for _, err := range plans.WatchFrom(t.Context(), 7) {
		if !errors.Is(err, shardedregistry.ErrUnknownRevision) {
			t.Error(err)
		}
	}
}

// The loop sleeps while there is nothing to yield, and wakes for each change.
func TestWatchFromSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := remembering(8)
		ctx, cancel := context.WithCancel(t.Context())
		got := make([][]string, 2)
		var ended atomic.Int32
		for i := range got {
			go func() {
				for c, err := range r.WatchFrom(ctx, 0) {
					got[i] = append(got[i], fmt.Sprintln(c.Key, c.Value, err))
				}
				ended.Add(1)
			}()
		}
		for i := range 20 {
			mustPut(t, r, "a", i)
			synctest.Wait()
		}
		r.Delete("a")
		synctest.Wait()
		for _, g := range got {
			if len(g) != 21 || g[19] != "a 19 <nil>\n" || g[20] != "a 19 <nil>\n" {
				t.Errorf("%q is yielded", g)
			}
		}
		cancel()
		if synctest.Wait(); ended.Load() != 2 {
			t.Error("a loop goes on when its context has ended")
		}
		for c := range r.WatchFrom(ctx, 0) {
			t.Errorf("%v is yielded when ctx has ended", c)
		}
	})
}

// After a snapshot, whatever is going on, nothing is missed: the peer's watch that began
// after what changed between the list and the watch.
func TestListThenWatch(t *testing.T) {
	r := remembering(1024)
	mustPut(t, r, "a", 1)
	stalls := shardedregistry.Stored(r, "a", 2) // in the snapshot, and remembered later
	state := r.Snapshot()
	mustPut(t, r, "b", 1)
	stalls()
	mustPut(t, r, "c", 1)
	if v, _ := state.Get("a"); v != 2 {
		t.Fatalf("the snapshot has %d", v)
	}
	wantSince(t, r, state.Revision(), "1: b=1@1", "2: a=2@2", "3: c=1@1") // a is repeated

	taking := shardedregistry.Join(r)
	mustPut(t, r, "a", 3)
	taking.Collect()
	mustPut(t, r, "a", 4)
	s := taking.Leave()
	if v, _ := s.Get("a"); v != 3 {
		t.Errorf("the snapshot has %d", v)
	}
	wantSince(t, r, state.Revision(), "1: b=1@1", "2: a=2@2", "3: c=1@1", "4: a=3@3", "5: a=4@4")
}

// A caller that begins anew after each error ends with what the registry has, however
// little is remembered, once the writers rest.
func TestBeginAnewAfterCompaction(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		r := remembering(n)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 3000 {
				if r.Put(key(i%7), i); i%3 == 0 {
					r.Delete(key(i % 5))
				}
			}
			r.Put("last", 1)
		}()
		view := map[string]int{}
		lists := 0
		for ended := false; !ended; lists++ {
			state := r.Snapshot()
			clear(view)
			for k, v := range state.All() {
				view[k] = v
			}
			if _, ended = view["last"]; ended {
				break
			}
			for c, err := range r.WatchFrom(t.Context(), state.Revision()) {
				if err != nil {
					if !errors.Is(err, shardedregistry.ErrCompacted) {
						t.Error(err)
					}
					break
				}
				apply(view, []event{c.Event})
				if ended = c.Key == "last"; ended {
					break
				}
			}
		}
		<-done
		if len(view) != r.Len() {
			t.Errorf("history %d: the view has %v", n, view)
		}
		for k, v := range view {
			wantValue(t, r, k, v)
		}
	}
}

// The history keeps what it remembers, and no more.
func TestHistoryMemory(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, *blob]{History: 8})
	first := new(blob)
	replaced := weak.Make(first)
	mustPut(t, r, "a", first)
	first = nil
	for range 7 {
		mustPut(t, r, "a", new(blob))
	}
	if runtime.GC(); replaced.Value() == nil {
		t.Error("the history does not keep a value")
	}
	mustPut(t, r, "a", new(blob))
	if runtime.GC(); replaced.Value() != nil {
		t.Error("the history keeps a value that it has forgotten")
	}
	runtime.KeepAlive(r)
}

// Keys are as they are stored in changes too, whatever else there is.
func TestWatchFromWithAllOfConfig(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, task]{
		History: 8, Normalize: normalize,
		Indexes: map[string]func(string, task) []string{"all": func(string, task) []string { return []string{"one"} }},
	})
	begin := r.Revision()
	mustPut(t, r, "A", task{Owner: "ann"})
	mustPut(t, r, "b", task{Owner: "bob"})
	r.Delete("B")
	var got []string
	for c, err := range r.WatchFrom(t.Context(), begin) {
		if got = append(got, fmt.Sprintln(c.Key, c.Value.Owner, c.Deleted, err)); c.Deleted {
			break
		}
	}
	if want := []string{"a ann false <nil>\n", "b bob false <nil>\n", "b bob true <nil>\n"}; !slices.Equal(got, want) {
		t.Errorf("%q is yielded, want %q", got, want)
	}
}

// A registry without History has no revisions.
func TestNoHistory(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	if r.Revision() != 0 {
		t.Error("an empty registry has a revision")
	}
	mustPut(t, &r, "a", 1)
	if r.Revision() != 0 {
		t.Error("a registry without History has a revision")
	}
	for text, do := range map[string]func(){
		"WatchFrom without Config.History":    func() { r.WatchFrom(t.Context(), 0) },
		"WatchFrom called with a nil context": func() { remembering(1).WatchFrom(noContext, 0) },
	} {
		wantPanic(t, text, do)
	}
	next, stop := iter.Pull2(remembering(1).WatchFrom(t.Context(), 7))
	if _, err, ok := next(); !ok || err == nil {
		t.Errorf("%v, %v", err, ok)
	}
	stop()
}

// A loop from the beginning that was overtaken before it began counts what it skips from where it begins.
func TestBookmarksOfALoopThatIsOvertaken(t *testing.T) {
	r := remembering(32)
	begin := r.Revision()
	rr := shardedregistry.OpenRevisions(r, 0, shardedregistry.Keys("b"))
	for i := range 100 {
		mustPut(t, r, "a", i)
	}
	if c, err := rr.Next(); err != nil || !c.Bookmark || c.Revision != begin+100-32+4 {
		t.Errorf("%+v, %v is yielded, want a bookmark at %d", c, err, begin+100-32+4)
	}
}
