package journal_test

import (
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/journaltest"
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

	must, equal                          = journaltest.Must, journaltest.Equal
	start, add, seal, abort              = journaltest.Start, journaltest.Add, journaltest.Seal, journaltest.Abort
	applied, prune, item, unnamed        = journaltest.Applied, journaltest.Prune, journaltest.Item, journaltest.Unnamed
	tell, story                          = journaltest.Tell, journaltest.Story
	holding, on, with, chain, verifyText = journaltest.Holding, journaltest.On, journaltest.With, journaltest.Lines, journaltest.VerifyText
	readerOf                             = journaltest.ReaderOf
	newPath                              = journaltest.NewPath
	three                                = journaltest.Three
	segmented, storyFile                 = journaltest.Segmented, journaltest.StoryFile
)

func open[E any](t testing.TB, path string) *journal.Journal[E] {
	t.Helper()
	return journaltest.OpenPath[E](t, path)
}

func load[E any](t testing.TB, j *journal.Journal[E]) []cowchangeset.Saved[E] {
	t.Helper()
	return journaltest.Load(t, j)
}
