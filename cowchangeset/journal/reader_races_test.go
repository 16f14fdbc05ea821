package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// A view outlives the segments that it shows, and a list of segments that are
// being dropped is read again.
func TestReaderWhileDropped(t *testing.T) {
	m, all := prunedStory(t)
	i := 0
	for s, err := range reader(t, m).Changesets(background) {
		must(t, err)
		equal(t, s, all[i])
		i++
		m.mu.Lock()
		clear(m.files)
		m.mu.Unlock()
	}
	equal(t, i, len(all))

	m, all = prunedStory(t)
	r, err := journal.ReaderOn[any](&shy{memory: m}, journal.Options{})
	must(t, err)
	equal(t, collect(t, r.Changesets(background)), all)
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
		return append([]string{journal.SegmentName(1)}, names...), err
	case 2:
		return slices.Delete(names, 1, 2), err
	}
	return names, err
}

// What a failed write has left, and is taken back, is no damage: a Reader looks
// again, and says so if it has yielded something already.
func TestReaderRewound(t *testing.T) {
	text, _, states := told(t)
	bad := slices.Clone(text)
	bad[len(bad)-9] ^= 1
	r, err := journal.ReaderOn[any](&glimpse{memory: holding(text), first: holding(bad), n: 2}, journal.Options{})
	must(t, err)
	equal(t, collect(t, r.Changesets(background)), states[len(states)-1])
	r, err = journal.ReaderOn[any](&glimpse{memory: holding(text), first: holding(bad), n: 2}, journal.Options{})
	must(t, err)
	equal(t, len(collect(t, r.Events(background, 0))), len(story())+1)

	m := &memory{}
	j := on(t, m)
	previous := ""
	for n := uint64(1); n < 30; n++ {
		id := fmt.Sprint(n)
		tell(t, j, []step{{"start", start(id, n, previous).call, func(s []saved) []saved { return s }}})
		must(t, add(id, item(0, strings.Repeat("x", 100_000))).call(j))
		must(t, seal(id, 1, 0).call(j))
		previous = id
	}
	whole := m.bytes()
	broken := slices.Clone(whole)
	broken[len(broken)/2] ^= 1
	for what, now := range map[string][]byte{"shorter": text, "damaged": broken} {
		m := holding(whole)
		got, err := ended(func(yield func(saved, error) bool) {
			for s, err := range reader(t, m).Changesets(background) {
				m.put(1, now)
				if !yield(s, err) {
					return
				}
			}
		})
		var corrupt *journal.CorruptError
		if len(got) == 0 || len(got) == 29 || (what == "shorter") != (err == journal.ErrRewound) || (what == "damaged") != errors.As(err, &corrupt) {
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

func (g *glimpse) Open(name string) (journal.File, error) {
	if g.n--; g.n >= 0 {
		return g.first.Open(name)
	}
	return g.memory.Open(name)
}

// Nor does Verify take it for damage. What two looks find is.
func TestVerifyRewound(t *testing.T) {
	text, _, _ := told(t)
	bad := slices.Clone(text)
	bad[len(bad)-9] ^= 1
	good, err := journal.VerifyOn(holding(text), journal.Anchor{})
	must(t, err)
	got, err := journal.VerifyOn(&glimpse{memory: holding(text), first: holding(bad), n: 1}, journal.Anchor{})
	must(t, err)
	equal(t, got, good)
	var corrupt *journal.CorruptError
	if _, err := journal.VerifyOn(&glimpse{memory: holding(text), first: holding(bad), n: 2}, journal.Anchor{}); !errors.As(err, &corrupt) {
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
	all := collect(t, reader(t, m).Changesets(background))
	want := collect(t, reader(t, m).Events(background, 0))
	names, _ := m.Names()
	r, err := journal.ReaderOn[any](&narrow{memory: m}, journal.Options{PollInterval: 1})
	must(t, err)
	got := collect(t, r.Events(background, 0))
	if len(got) >= len(want) || !slices.EqualFunc(got, want[len(want)-len(got):], func(a, b journal.Event[any]) bool { return a.Hash == b.Hash }) {
		t.Errorf("Events yields %d events, %d are there in %v", len(got), len(want), names)
	}
	_, err = journal.VerifyOn(&narrow{memory: m, lists: 1}, journal.Anchor{})
	must(t, err)
	r, err = journal.ReaderOn[any](&narrow{memory: m}, journal.Options{})
	must(t, err)
	equal(t, collect(t, r.Changesets(background)), all)
	n := 0
	r, err = journal.ReaderOn[any](&narrow{memory: m}, journal.Options{PollInterval: 1})
	must(t, err)
	for e, err := range r.Follow(background, 0) {
		must(t, err)
		if n++; e.Hash == want[len(want)-1].Hash {
			break
		}
	}
	equal(t, n, len(got))

	// The same lists again and again are of a journal that is damaged.
	m.mu.Lock()
	delete(m.files, names[0])
	delete(m.files, names[len(names)-1])
	m.mu.Unlock()
	var corrupt *journal.CorruptError
	for what, events := range map[string]func() error{
		"Events": func() error { _, err := ended(reader(t, m).Events(background, 0)); return err },
		"Follow": func() error {
			r, err := journal.ReaderOn[any](m, journal.Options{PollInterval: 1})
			must(t, err)
			_, err = ended(r.Follow(background, 0))
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
	names, err := n.memory.Names()
	if n.lists++; n.lists == 2 {
		names = names[1 : len(names)-1]
	}
	return names, err
}
