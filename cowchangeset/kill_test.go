//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/kill"
)

// childFile is the variable of the environment with the child's journal.
const childFile = "COWCHANGESET_TEST_CHILD"

// resumed returns the tracker of a journal.
func resumed(path string) (*cowchangeset.Tracker[string], *journal.Journal[string], error) {
	j, err := journal.Open[string](path, journal.Options{Sync: journal.SyncNever}) // it is not the machine that ends
	if err != nil {
		return nil, nil, err
	}
	tracker, err := cowchangeset.Resume(context.Background(), cowchangeset.Config[string]{Store: j})
	return tracker, j, err
}

// child records from several goroutines until it is killed, starts a changeset now
// and then, and prints the receipt of each entry when its Record has returned.
func child(path string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(3)
		}
	}
	tracker, _, err := resumed(path)
	check(err)
	if _, open := tracker.Current(); !open {
		_, err := tracker.Start(context.Background())
		check(err)
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
				_, err := tracker.Start(context.Background())
				check(err)
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
	path := filepath.Join(t.TempDir(), "journal")
	acknowledged := map[string]cowchangeset.Receipt{}
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		for _, line := range kill.After(t, rand.IntN(150), nil, childFile+"="+path) {
			var r cowchangeset.Receipt
			var e string
			if _, err := fmt.Sscan(line, &r.ChangesetID, &r.Ordinal, &r.Seq, &e); err != nil {
				t.Fatal(line, err)
			}
			acknowledged[e] = r
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
					t.Fatalf("round %d: %s is at %v, was acknowledged at %v", round, e, r, want)
				}
			}
			if found[e] {
				t.Fatalf("round %d: %s is there twice", round, e)
			}
			found[e] = true
		}
		if n != len(acknowledged) {
			t.Fatalf("round %d: %d of %d acknowledged entries are there", round, n, len(acknowledged))
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
}
