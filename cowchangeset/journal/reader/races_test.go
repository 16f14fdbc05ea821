package reader_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A view outlives the segments that it shows, and a list of segments that are
// being dropped is read again.
func TestReaderWhileDropped(t *testing.T) {
	m, all := prunedStory(t)
	i := 0
	for s, err := range readerOf(t, m).Changesets(background) {
		must(t, err)
		equal(t, s, all[i])
		i++
		m.Delete(m.Segments()...)
	}
	equal(t, i, len(all))

	m, all = prunedStory(t)
	r, err := journaltest.Reader[any](&shy{memory: m}, reader.Options{})
	must(t, err)
	equal(t, journaltest.Collect(t, r.Changesets(background)), all)
}

// A shy folder lists segments that are gone by then, or leaves some out, the first
// times.
type shy struct {
	*memory
	lists int
}

func (s *shy) Names() ([]string, error) {
	names, err := s.memory.Names()
	switch s.lists++; s.lists {
	case 1:
		return append([]string{journaltest.SegmentName(1)}, names...), err
	case 2:
		return slices.Delete(names, 1, 2), err
	}
	return names, nil
}

// What a failed write has left, and is taken back, is no damage: a Reader looks
// again, and says so if it has yielded something already.
func TestReaderRewound(t *testing.T) {
	text, _, states := storyFile(t)
	bad := slices.Clone(text)
	bad[len(bad)-9] ^= 1
	r, err := journaltest.Reader[any](&glimpse{memory: holding(text), first: holding(bad), n: 2}, reader.Options{})
	must(t, err)
	equal(t, journaltest.Collect(t, r.Changesets(background)), states[len(states)-1])
	r, err = journaltest.Reader[any](&glimpse{memory: holding(text), first: holding(bad), n: 2}, reader.Options{})
	must(t, err)
	equal(t, len(journaltest.Collect(t, r.Events(background, 0))), len(story())+1)

	m := &memory{}
	j := on(t, m)
	previous := ""
	for n := uint64(1); n < 30; n++ {
		id := fmt.Sprint(n)
		tell(t, j, []step{{Name: "start", Call: start(id, n, previous).Call, Then: func(s []saved) []saved { return s }}})
		must(t, add(id, item(0, strings.Repeat("x", 100_000))).Call(j))
		must(t, seal(id, 1, 0).Call(j))
		previous = id
	}
	whole := m.Text()
	broken := slices.Clone(whole)
	broken[len(broken)/2] ^= 1
	for what, now := range map[string][]byte{"shorter": text, "damaged": broken} {
		m := holding(whole)
		got, err := journaltest.CollectAll(func(yield func(saved, error) bool) {
			for s, err := range readerOf(t, m).Changesets(background) {
				m.Put(1, now)
				if !yield(s, err) {
					return
				}
			}
		})
		var corrupt *journal.CorruptError
		if len(got) == 0 || len(got) == 29 || (what == "shorter") != (err == reader.ErrRewound) || (what == "damaged") != errors.As(err, &corrupt) {
			t.Errorf("%s: %d, %v", what, len(got), err)
		}
	}
}

// A glimpse is a folder in which the first n segments that are opened are others.
type glimpse struct {
	*memory
	first *memory
	n     int
}

func (g *glimpse) Open(name string) (folder.File, error) {
	if g.n--; g.n >= 0 {
		return g.first.Open(name)
	}
	return g.memory.Open(name)
}

// Nor does Verify take it for damage. What two looks find is.
func TestVerifyRewound(t *testing.T) {
	text, _, _ := storyFile(t)
	bad := slices.Clone(text)
	bad[len(bad)-9] ^= 1
	good, err := verify(holding(text), journal.Anchor{})
	must(t, err)
	got, err := verify(&glimpse{memory: holding(text), first: holding(bad), n: 1}, journal.Anchor{})
	must(t, err)
	equal(t, got, good)
	var corrupt *journal.CorruptError
	if _, err := verify(&glimpse{memory: holding(text), first: holding(bad), n: 2}, journal.Anchor{}); !errors.As(err, &corrupt) {
		t.Errorf("two looks find damage: %v", err)
	}
}

// A list can lack both the oldest segment, which was dropped while the directory was
// read, and the last one, which says so: then no segment is missing.
func TestReaderWithoutEnds(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 800})
	tell(t, j, story())
	for range j.Load(background) { // so that no segment goes
		must(t, j.Prune(background, 4))
		break
	}
	must(t, j.Close())
	all := journaltest.Collect(t, readerOf(t, m).Changesets(background))
	want := journaltest.Collect(t, readerOf(t, m).Events(background, 0))
	names := m.Segments()
	r, err := journaltest.Reader[any](&narrow{memory: m}, reader.Options{PollInterval: 1})
	must(t, err)
	got := journaltest.Collect(t, r.Events(background, 0))
	if len(got) >= len(want) || !slices.EqualFunc(got, want[len(want)-len(got):], func(a, b reader.Event[any]) bool { return a.Hash == b.Hash }) {
		t.Errorf("Events yields %d events, %d are there in %v", len(got), len(want), names)
	}
	_, err = verify(&narrow{memory: m, lists: 1}, journal.Anchor{})
	must(t, err)
	r, err = journaltest.Reader[any](&narrow{memory: m}, reader.Options{})
	must(t, err)
	equal(t, journaltest.Collect(t, r.Changesets(background)), all)
	n := 0
	r, err = journaltest.Reader[any](&narrow{memory: m}, reader.Options{PollInterval: 1})
	must(t, err)
	for e, err := range r.Follow(background, 0) {
		must(t, err)
		if n++; e.Hash == want[len(want)-1].Hash {
			break
		}
	}
	equal(t, n, len(got))

	// The same lists again and again are of a journal that is damaged.
	m.Delete(names[0])
	m.Delete(names[len(names)-1])
	var corrupt *journal.CorruptError
	for what, events := range map[string]func() error{
		"Events": func() error { _, err := journaltest.CollectAll(readerOf(t, m).Events(background, 0)); return err },
		"Follow": func() error {
			r, err := journaltest.Reader[any](m, reader.Options{PollInterval: 1})
			must(t, err)
			_, err = journaltest.CollectAll(r.Follow(background, 0))
			return err
		},
	} {
		if err := events(); !errors.As(err, &corrupt) || !strings.Contains(corrupt.Reason, "missing") {
			t.Errorf("%s = %v", what, err)
		}
	}
}

// A narrow folder lists neither the first nor the last segment, the second time.
type narrow struct {
	*memory
	lists int
}

func (n *narrow) Names() ([]string, error) {
	names := n.memory.Segments()
	if n.lists++; n.lists == 2 {
		names = names[1 : len(names)-1]
	}
	return names, nil
}
