package journal_test

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
	noContext  = journaltest.NoContext
	background = journaltest.Background
	errBoom    = journaltest.ErrBoom

	must, equal                   = journaltest.Must, journaltest.Equal
	start, add, seal, abort       = journaltest.Start, journaltest.Add, journaltest.Seal, journaltest.Abort
	applied, prune, item, unnamed = journaltest.Applied, journaltest.Prune, journaltest.Item, journaltest.Unnamed
	tell, story                   = journaltest.Tell, journaltest.Story
	holding, on, with, chain      = journaltest.Holding, journaltest.On, journaltest.With, journaltest.Lines
	readerOf                      = journaltest.ReaderOf
	newPath                       = journaltest.NewPath
	three                         = journaltest.Three
	segmented, storyFile          = journaltest.Segmented, journaltest.StoryFile
)

func open[E any](t testing.TB, path string) *journal.Journal[E] {
	t.Helper()
	return journaltest.OpenPath[E](t, path)
}

func load[E any](t testing.TB, j *journal.Journal[E]) []cowchangeset.Saved[E] {
	t.Helper()
	return journaltest.Load(t, j)
}

// verifyFolder is reader.Verify of a folder.
func verifyFolder(f folder.Folder, since journal.Anchor) (reader.Report, error) {
	return inside.Verify(folder.Gzip{Folder: f}, since)
}

// verifyText verifies the first segment of a journal.
func verifyText(text []byte) (reader.Report, error) {
	return verifyFolder(holding(text), journal.Anchor{})
}
