package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/kill"
)

// childPolicy is the variable of the environment with the child's SyncPolicy.
const childPolicy = "JOURNAL_TEST_CHILD_POLICY"

// child writes changesets until it is killed, from four goroutines, and prints
// each call that has returned. Segments are small, and it prunes and compresses.
func child(path string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(3)
		}
	}
	o := journal.Options{SegmentSize: 8 << 10}
	if os.Getenv(childPolicy) == journal.SyncNever.String() {
		o.Sync = journal.SyncNever
	}
	j, err := journal.Open[string](path, o)
	check(err)
	ordinal, previous := uint64(0), ""
	for s, err := range j.Load(background) {
		check(err)
		ordinal, previous = s.Ordinal, s.ID
		if s.Applied == cowchangeset.AllApplied || s.Aborted {
			continue
		}
		m := cowchangeset.Manifest{Len: len(s.Entries)} // what the process before has left
		if m.Len > 0 {
			m.Last = s.Entries[m.Len-1].Seq
		}
		check(j.Seal(background, s.ID, m))
		check(j.Abort(background, s.ID, "killed"))
	}
	var mu sync.Mutex // Starts come one at a time
	tell := func(kind, id string, n int) {
		_, err := os.Stdout.WriteString(fmt.Sprintln(kind, id, n))
		check(err)
	}
	next := func() string {
		mu.Lock()
		defer mu.Unlock()
		id := fmt.Sprintf("%d-%d", os.Getpid(), ordinal+1)
		check(j.Start(background, cowchangeset.Header{ID: id, Ordinal: ordinal + 1, Previous: previous}))
		ordinal, previous = ordinal+1, id
		tell("started", id, int(ordinal))
		if ordinal%5 == 0 && ordinal > 20 {
			tell("pruning", id, int(ordinal)-10)
			check(j.Prune(background, ordinal-10))
		}
		return id
	}
	for range 3 {
		go write(j, next, tell, check)
	}
	go func() {
		for range time.Tick(5 * time.Millisecond) {
			check(j.Compress(background))
		}
	}()
	write(j, next, tell, check)
}

// write is one of the child's goroutines.
func write(j *journal.Journal[string], next func() string, tell func(kind, id string, n int), check func(error)) {
	for {
		id := next()
		n := 0
		for range rand.IntN(6) {
			var batch []cowchangeset.Entry[string]
			for range 1 + rand.IntN(5) {
				batch = append(batch, cowchangeset.Entry[string]{Seq: uint64(n), Value: valueOf(id, n)})
				n++
			}
			check(j.Append(background, id, batch))
			tell("appended", id, n)
		}
		check(j.Seal(background, id, cowchangeset.Manifest{Len: n, Last: uint64(max(0, n-1))}))
		tell("sealed", id, n)
		check(j.Applied(background, id, cowchangeset.AllApplied))
		tell("applied", id, 0)
	}
}

// valueOf returns the value of an entry. Some are so long that a write of them
// can be cut off.
func valueOf(id string, n int) string {
	times := 1
	if n == 4 && strings.HasSuffix(id, "0") {
		times = 30_000
	}
	return strings.Repeat(fmt.Sprintf("%s/%d ", id, n), times)
}

// acknowledged is what the children have been told of a changeset.
type acknowledged struct {
	ordinal, entries uint64
	sealed, applied  bool
	lost             bool // with a segment that was damaged
}

// damageOne flips a byte of a segment that is not the last, repairs the journal, and returns
// the changesets that have entries in that segment.
func damageOne(t *testing.T, path string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "*.journal"))
	must(t, err)
	lost := map[string]bool{}
	if len(files) < 2 {
		return lost
	}
	name := files[rand.IntN(len(files)-1)]
	text, err := os.ReadFile(name)
	must(t, err)
	for line := range bytes.Lines(text) {
		if _, rest, ok := bytes.Cut(line, []byte(`"op":"append","id":"`)); ok {
			id, _, _ := bytes.Cut(rest, []byte(`"`))
			lost[string(id)] = true
		}
	}
	text[rand.IntN(len(text)-1)] ^= 1
	must(t, os.WriteFile(name, text, 0o600))
	if _, err := verify(path); err == nil {
		t.Fatal("nobody sees the damage")
	}
	cut, err := repair.Repair(path)
	must(t, err)
	if len(cut.Lost) != 1 {
		t.Fatal(cut)
	}
	return lost
}

// A process that is killed at any moment, while segments begin and go, leaves a
// journal that has everything that had returned, once and in order, but for what was
// finished and then pruned. The next one goes on with it.
func TestKilled(t *testing.T) {
	path := newPath(t)
	acks := map[string]*acknowledged{} // by ID
	const attempts = 20
	torn, dropped, taken, zipped, pruned := 0, 0, 0, 0, uint64(0)
	for attempt := range attempts {
		policy := []journal.SyncPolicy{journal.SyncAlways, journal.SyncNever}[attempt%2]
		n := rand.IntN(200)
		if attempt == 0 {
			n = max(n, 1) // so that there is a journal
		}
		locked := func() {
			if n > 0 { // the child has it
				if _, err := journal.Open[string](path, journal.Options{}); !errors.Is(err, journal.ErrLocked) {
					t.Errorf("opened beside another process: %v", err)
				}
			}
		}
		for _, line := range kill.After(t, n, locked, childFile+"="+path, childPolicy+"="+policy.String()) {
			var kind, id string
			var n uint64
			_, err := fmt.Sscan(line, &kind, &id, &n)
			must(t, err)
			switch kind {
			case "started":
				acks[id] = &acknowledged{ordinal: n}
			case "appended":
				acks[id].entries = n
			case "sealed":
				acks[id].sealed = true
			case "applied":
				acks[id].applied = true
			case "pruning":
				pruned = n
			}
		}
		before, err := verify(path)
		must(t, err)
		lost := map[string]bool{} // of whose entries some are
		if attempt%5 == 4 {
			lost = damageOne(t, path)
			if len(lost) > 0 {
				taken++
			}
			if before, err = verify(path); err != nil {
				t.Fatalf("round %d, repaired: %v", attempt, err)
			}
		}
		j := open[string](t, path)
		if j.Recovered() != before.Torn {
			t.Errorf("recovered %d of %d bytes", j.Recovered(), before.Torn)
		}
		if before.Torn > 0 {
			torn++
		}
		if names, _ := filepath.Glob(filepath.Join(path, "*.journal.gz")); len(names) > 0 {
			zipped++
		}
		if before.Last.Line > before.Lines {
			dropped++
		}
		found := map[string]bool{}
		for _, s := range load(t, j) {
			if want := acks[s.ID]; want != nil && lost[s.ID] {
				found[s.ID] = true
				if !s.Aborted && s.Applied != cowchangeset.AllApplied || want.applied && s.Applied != cowchangeset.AllApplied {
					t.Fatalf("round %d: %s is to be applied, or again: sealed %v, applied %d; had returned: %+v", attempt, s.ID, s.Sealed, s.Applied, want)
				}
				*want = acknowledged{ordinal: s.Ordinal, entries: uint64(len(s.Entries)), sealed: true, lost: true}
				continue
			}
			if want := acks[s.ID]; want != nil && want.lost {
				found[s.ID] = true
				if uint64(len(s.Entries)) != want.entries {
					t.Fatalf("round %d: %s has %d entries, and had %d", attempt, s.ID, len(s.Entries), want.entries)
				}
				continue
			}
			for i, e := range s.Entries {
				if e.Seq != uint64(i) || e.Value != valueOf(s.ID, i) {
					t.Fatalf("round %d: entry %d of %s is %+v", attempt, i, s.ID, e)
				}
			}
			found[s.ID] = true
			want := acks[s.ID]
			if want == nil {
				continue // its Start was on its way
			}
			if n := uint64(len(s.Entries)); n < want.entries || want.sealed && (!s.Sealed || n != want.entries) || want.applied && s.Applied != cowchangeset.AllApplied || s.Ordinal != want.ordinal {
				t.Fatalf("round %d: %s has %d entries, sealed %v, applied %d; had returned: %+v", attempt, s.ID, len(s.Entries), s.Sealed, s.Applied, want)
			}
		}
		for id, want := range acks {
			if !found[id] && want.ordinal >= pruned {
				t.Fatalf("round %d: %s, %+v, is not there; pruned up to %d", attempt, id, want, pruned)
			}
		}
		must(t, j.Close())
	}
	t.Logf("%d changesets; of %d journals %d had a torn tail, %d had dropped segments, %d had compressed ones, and %d have lost one", len(acks), attempts, torn, dropped, zipped, taken)
}
