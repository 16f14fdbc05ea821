package journaltest

import (
	"iter"
	"strconv"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// Collect returns what a loop yields, which must not be an error.
func Collect[V any](t testing.TB, all iter.Seq2[V, error]) (got []V) {
	t.Helper()
	for v, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	return got
}

// CollectAll returns what a loop yields before its error, and that, or nil.
func CollectAll[V any](all iter.Seq2[V, error]) (got []V, err error) {
	for v, e := range all {
		if err = e; e == nil {
			got = append(got, v)
		}
	}
	return got, err
}

// PrunedStory returns a folder in memory with a story that was pruned, in segments
// of which the first is gone, and what there is to load.
func PrunedStory(t testing.TB) (m *Memory, all []Saved) {
	t.Helper()
	m = &Memory{}
	j, err := Open[any](m, journal.Options{SegmentSize: 800})
	Must(t, err)
	states := Tell(t, j, Story())
	Must(t, j.Prune(Background, 2))
	Must(t, j.Close())
	return m, Unnamed(states[len(states)-1][1:])
}

// ErrorOf returns the error of a call.
func ErrorOf[A any](_ A, err error) error { return err }

// Three returns a folder with a story in three segments, and what there is to load
// after each line.
func Three(t testing.TB) (m *Memory, states [][]Saved) {
	t.Helper()
	m = &Memory{}
	j := On(t, m)
	var all []Saved
	states = append(states, nil, all)
	for i, s := range Story() {
		Must(t, s.Call(j))
		if all = s.Then(all); i == 5 || i == 10 {
			states = append(states, all)
			Must(t, j.Rotate(Background))
		}
		states = append(states, all)
	}
	Must(t, j.Close())
	return m, states
}

// OnlyPrune returns a folder whose first segment was dropped, and in which the line
// that allowed it is damaged; and what can still be loaded.
func OnlyPrune(t testing.TB) (*Memory, []Saved) {
	t.Helper()
	m := &Memory{}
	j := On(t, m)
	Tell(t, j, []Step{Start("A", 1, ""), Seal("A", 0, 0), Applied("A", cowchangeset.AllApplied)})
	Must(t, j.Rotate(Background))
	Must(t, Start("B", 2, "A").Call(j))
	Must(t, Add("B", Item(0, "b")).Call(j))
	n := len(m.Segment(2).Data)
	Must(t, j.Prune(Background, 2))
	Must(t, Seal("B", 1, 0).Call(j))
	Must(t, j.Close())
	return Damaged(m, 2, n+50), []Saved{
		{Header: Header{ID: "A", Ordinal: 1}, Sealed: true, Applied: cowchangeset.AllApplied},
		{Header: Header{ID: "B", Ordinal: 2, Previous: "A"}, Entries: []Entry{Item(0, "b")}},
	}
}

// Segmented returns a journal that was told a story and has several segments, where
// their lines end, and what there is to load.
func Segmented(t *testing.T) (m *Memory, states []Saved) {
	t.Helper()
	m = &Memory{}
	j := With(t, m, journal.Options{SegmentSize: 1500})
	all := Tell(t, j, Story())
	Must(t, j.Close())
	if m.Segment(3) == nil || m.Segment(5) != nil {
		t.Fatalf("%d files", len(m.Segments()))
	}
	return m, all[len(all)-1]
}

// StoryFile returns a file that has a story, where its lines end, and what there is to
// load after each of them.
func StoryFile(t *testing.T) (text []byte, ends []int, states [][]Saved) {
	m := &Memory{}
	j := On(t, m)
	ends = append(ends, len(m.Text()))
	for _, s := range Story() {
		Must(t, s.Call(j))
		ends = append(ends, len(m.Text()))
	}
	return m.Text(), ends, Tell(t, On(t, &Memory{}), Story())
}

// Damaged returns a folder in which a byte of a segment is another.
func Damaged(m *Memory, number, i int) *Memory {
	m = m.Clone()
	m.Segment(number).Data[i] ^= 1
	return m
}

// Many returns a folder with a journal of n applied changesets, each in a segment of its
// own, and the journal.
func Many(t testing.TB, n int) (*Memory, *journal.Journal[any]) {
	m := &Memory{}
	j := On(t, m)
	before := ""
	for i := range n {
		id := strconv.Itoa(i + 1)
		Must(t, Start(id, uint64(i+1), before).Call(j))
		Must(t, Seal(id, 0, 0).Call(j))
		Must(t, Applied(id, cowchangeset.AllApplied).Call(j))
		Must(t, j.Rotate(Background))
		before = id
	}
	return m, j
}
