package journal_test

import (
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// An ID may be given again when its changeset was pruned. Lines of that one, which
// may still be there, are not taken for lines of the other one.
func TestIDGivenAgain(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{
		start("A", 1, ""), add("A", item(0, "old")), seal("A", 1, 0), applied("A", cowchangeset.AllApplied),
		start("B", 2, "A"),
	})
	must(t, j.Prune(background, 2))
	must(t, start("A", 3, "B").Call(j))
	must(t, add("A", item(0, "new")).Call(j))
	want := []saved{
		{Header: header{ID: "B", Ordinal: 2}},
		{Header: header{ID: "A", Ordinal: 3, Previous: "B"}, Entries: []entry{item(0, "new")}},
	}
	equal(t, load(t, j), want)
}
