//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/kill"
)

// childFile is the variable of the environment with the child's journal.
const childFile = "COWCHANGESET_TEST_CHILD"

// resumed returns the tracker of a journal.
func resumed(path string) (*cowchangeset.Tracker[string], *journal.Journal[string], error) {
	// It is not the machine that ends. Segments are small, and what nobody needs goes.
	j, err := journal.Open[string](path, journal.Options{Sync: journal.SyncNever, SegmentSize: 16 << 10})
	if err != nil {
		return nil, nil, err
	}
	tracker, err := cowchangeset.Resume(context.Background(), cowchangeset.Config[string]{Store: j})
	return tracker, j, err
}

// child records from several goroutines until it is killed, starts a changeset now
// and then, applies the one before it, prunes what is older, and prints the receipt
// of each entry when its Record has returned.
func child(path string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(3)
		}
	}
	tracker, _, err := resumed(path)
	check(err)
	current, open := tracker.Current()
	if !open {
		current, err = tracker.Start(context.Background())
		check(err)
	}
	apply := func(context.Context, cowchangeset.Final[string]) error { return nil }
	for c := current.Previous(); c != nil; c = c.Previous() {
		if c.Applied() != cowchangeset.AllApplied { // the process before was killed
			check(c.Apply(context.Background(), apply))
		}
	}
	record := func(g int) {
		for i := 0; ; i++ {
			es := make([]string, 1+i%3)
			for k := range es {
				es[k] = fmt.Sprintf("%d.%d.%d.%d", os.Getpid(), g, i, k)
			}
			var r cowchangeset.Receipt
			var err error
			if len(es) == 1 {
				r, err = tracker.Record(es[0])
			} else {
				r, err = tracker.RecordBatch(es)
			}
			check(err)
			for k, e := range es {
				_, err := fmt.Println(r.ChangesetID, r.Ordinal, r.Seq+uint64(k), e)
				check(err)
			}
			if g == 0 && i%7 == 0 {
				c, err := tracker.Start(context.Background())
				check(err)
				check(c.Previous().Apply(context.Background(), apply))
				if c.Ordinal() > 10 {
					_, err := fmt.Println("pruning", c.Ordinal()-5, 0, "-")
					check(err)
					tracker.Prune(6)
				}
			}
		}
	}
	for g := range 3 {
		go record(1 + g)
	}
	record(0)
}

// A process that is killed at any moment has lost nothing that was acknowledged,
// and nothing is there twice, whichever process goes on.
func TestKilled(t *testing.T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("WebAssembly has no processes")
	}
	path := filepath.Join(t.TempDir(), "journal")
	acknowledged, pruned := map[string]cowchangeset.Receipt{}, uint64(0)
	attempts := 20
	if testing.Short() {
		attempts = 5
	}
	for attempt := range attempts {
		for _, line := range kill.After(t, rand.IntN(400), nil, childFile+"="+path) {
			var r cowchangeset.Receipt
			var e string
			if _, err := fmt.Sscan(line, &r.ChangesetID, &r.Ordinal, &r.Seq, &e); err != nil {
				t.Fatal(line, err)
			}
			if r.ChangesetID == "pruning" {
				pruned = r.Ordinal
			} else {
				acknowledged[e] = r
			}
		}
		tracker, j, err := resumed(path)
		if err != nil {
			t.Fatal(err)
		}
		found, n := map[string]bool{}, 0
		for r, e := range tracker.Trail().All() {
			if want, ok := acknowledged[e]; ok {
				n++
				if r != want {
					t.Fatalf("round %d: %s is at %v, was acknowledged at %v", attempt, e, r, want)
				}
			}
			if found[e] {
				t.Fatalf("round %d: %s is there twice", attempt, e)
			}
			found[e] = true
		}
		for e, r := range acknowledged {
			if !found[e] && r.Ordinal >= pruned {
				t.Fatalf("round %d: %s, %v, is not there; pruned up to %d, and %d of %d are there", attempt, e, r, pruned, n, len(acknowledged))
			}
		}
		if err := tracker.Flush(t.Context()); err != nil { // Resume has told it of seals
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(acknowledged) == 0 {
		t.Error("nothing was acknowledged")
	}
	t.Logf("%d entries, pruned up to changeset %d", len(acknowledged), pruned)
}
