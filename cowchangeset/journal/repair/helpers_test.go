package repair_test

import (
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	inside "github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

type (
	header = journaltest.Header
	entry  = journaltest.Entry
	saved  = journaltest.Saved
	step   = journaltest.Step
	memory = journaltest.Memory
)

const whole = cowchangeset.AllApplied

var (
	background = journaltest.Background
	errBoom    = journaltest.ErrBoom

	must, equal                   = journaltest.Must, journaltest.Equal
	start, add, seal, abort       = journaltest.Start, journaltest.Add, journaltest.Seal, journaltest.Abort
	applied, prune, item, unnamed = journaltest.Applied, journaltest.Prune, journaltest.Item, journaltest.Unnamed
	tell, story                   = journaltest.Tell, journaltest.Story
	on, with, chain               = journaltest.On, journaltest.With, journaltest.Lines
	readerOf                      = journaltest.ReaderOf
	newPath                       = journaltest.NewPath
	three, onlyPrune, prunedStory = journaltest.Three, journaltest.OnlyPrune, journaltest.PrunedStory
	damaged                       = journaltest.Damaged
)

func open[E any](t testing.TB, path string) *journal.Journal[E] {
	t.Helper()
	return journaltest.OpenPath[E](t, path)
}

func load[E any](t testing.TB, j *journal.Journal[E]) []cowchangeset.Saved[E] {
	t.Helper()
	return journaltest.Load(t, j)
}

// verify is reader.Verify of a folder.
func verify(f folder.Folder, since journal.Anchor) (reader.Report, error) {
	return inside.Verify(folder.Gzip{Folder: f}, since)
}
