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
