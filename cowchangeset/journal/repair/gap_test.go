package repair_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// One bad byte in a sealed segment costs that segment: everything else is there, nothing
// that was applied is applied again, and no ordinal is given twice.
func TestOneBadByte(t *testing.T) {
	build := func() *memory {
		m := &memory{}
		j := with(t, m, journal.Options{SegmentSize: 8 << 10})
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})
		must(t, err)
		for range 60 {
			c, err := tracker.Start(background)
			must(t, err)
			for n := range 20 {
				must(t, journaltest.ErrorOf(tracker.Record(fmt.Sprint("some value that is a little bit long, so that segments fill up ", n))))
			}
			must(t, c.Apply(background, func(context.Context, cowchangeset.Final[any]) error { return nil }))
		}
		must(t, tracker.Flush(background))
		must(t, j.Close())
		return m
	}
	sound := build()
	last := len(sound.Segments())
	if last < 20 {
		t.Fatalf("%d segments", last)
	}
	for _, number := range []int{1, 2, last / 2, last - 1} {
		for _, at := range []int{20, 600, len(sound.Segment(number).Data) - 2} {
			m := damaged(sound, number, at)
			if _, err := verify(m, journal.Anchor{}); err == nil {
				t.Fatal("it is sound")
			}
			cut, err := repair.RepairOn(m)
			must(t, err)
			if lines := bytes.Count(sound.Text(), []byte("\n")); len(cut.Lost) != 1 || cut.Kept != lines-bytes.Count(sound.Segment(number).Data, []byte("\n")) {
				t.Errorf("segment %d, byte %d: %v", number, at, cut)
			}
			j := on(t, m)
			tracker, err := cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})
			must(t, err)
			c, open := tracker.Current()
			if open || c.Ordinal() != 60 || len(slices.Collect(tracker.Pending())) > 0 {
				t.Errorf("segment %d, byte %d: current is %d, open %v", number, at, c.Ordinal(), open)
			}
			for c := range maps.Values(maps.Collect(tracker.All())) {
				err := c.Apply(background, func(context.Context, cowchangeset.Final[any]) error { panic("applied again") })
				if !errors.Is(err, cowchangeset.ErrApplied) && !errors.Is(err, cowchangeset.ErrAborted) {
					t.Error(err)
				}
			}
			entries := 0
			for range tracker.Trail().All() { // also those that were applied
				entries++
			}
			if n := tracker.Trail().Len(); n != entries || entries < 55*20 || entries >= 60*20 {
				t.Errorf("segment %d, byte %d: %d entries, and Len is %d", number, at, entries, n)
			}
			must(t, tracker.Trail().Fetch(background))
			next, err := tracker.Start(background)
			must(t, err)
			equal(t, next.Ordinal(), uint64(61))
			must(t, journaltest.ErrorOf(tracker.Record("goes on")))
			must(t, j.Rotate(background))
			known := journaltest.Collect(t, readerOf(t, m).Changesets(background))
			if whole := len(slices.DeleteFunc(known, func(s saved) bool { return len(s.Entries) < 20 })); whole < 55 {
				t.Errorf("segment %d, byte %d: %d whole changesets are known", number, at, whole)
			}
			must(t, j.Prune(background, 61))
			must(t, j.Close())
			report, err := verify(m, journal.Anchor{})
			must(t, err)
			if report.Gaps != nil && report.Segments > 3 {
				t.Errorf("%+v", report)
			}
			equal(t, len(load(t, on(t, m))), 1)
		}
	}
}

// A truth is what was written, wherever it is by now.
type truth struct {
	id       string
	ordinal  uint64
	seqs     []uint64
	sealed   bool
	finished int // the line that finished it; 0: none
}

// random writes a journal of several segments, with lines in any order that is allowed,
// and returns the truth by ordinal.
func random(t *testing.T, m *memory) []*truth {
	j := on(t, m)
	var all []*truth
	previous := ""
	for range 10 + rand.IntN(80) {
		var c *truth
		if len(all) > 0 {
			c = all[max(0, len(all)-1-rand.IntN(4))]
		}
		switch op := rand.IntN(8); {
		case c == nil || op == 0:
			c = &truth{id: fmt.Sprint("id-", len(all)+1), ordinal: uint64(len(all) + 1)}
			must(t, start(c.id, c.ordinal, previous).Call(j))
			all, previous = append(all, c), c.id
		case op < 4 && !c.sealed:
			seq := uint64(rand.IntN(3))
			if n := len(c.seqs); n > 0 {
				seq += c.seqs[n-1] + 1
			}
			must(t, add(c.id, item(seq, c.id)).Call(j))
			c.seqs = append(c.seqs, seq)
		case op == 4 && !c.sealed && len(c.seqs) > 0:
			must(t, seal(c.id, len(c.seqs), c.seqs[len(c.seqs)-1]).Call(j))
			c.sealed = true
		case op == 5 && c.sealed && c.finished == 0:
			must(t, applied(c.id, cowchangeset.AllApplied).Call(j))
			c.finished = j.Hash().Line
		case op == 6 && c.sealed && c.finished == 0:
			must(t, abort(c.id, "why").Call(j))
			c.finished = j.Hash().Line
		case op == 7:
			must(t, j.Rotate(background))
		}
	}
	must(t, j.Close())
	return all
}

// Whatever a segment had: after a repair the journal opens, says what is true, takes no
// finished changeset for one to be applied, and gives no ordinal and no Seq again.
func TestGapsOfAnything(t *testing.T) {
	journals := 400
	if testing.Short() {
		journals = 100
	}
	for range journals {
		m := &memory{}
		all := random(t, m)
		sound := m.Clone()
		segments := len(m.Segments())
		for range 1 + rand.IntN(2) {
			name := journaltest.SegmentName(1 + rand.IntN(segments))
			switch f := m.Files[name]; {
			case f == nil:
			case rand.IntN(4) == 0 && name != journaltest.SegmentName(segments):
				m.Delete(name)
			case len(f.Data) > 1:
				f.Data[rand.IntN(len(f.Data)-1)] ^= 1
			}
		}
		bad := m.Clone()
		cut, err := repair.RepairOn(m)
		if err != nil {
			if !strings.Contains(err.Error(), "no repair") {
				t.Fatal(err)
			}
			continue
		}
		opened := m.Clone()
		j := on(t, opened)
		kept := load(t, j)
		whole := lastOf(opened) == lastOf(sound) && bytes.HasPrefix(opened.Files[lastOf(opened)].Data, sound.Files[lastOf(sound)].Data) // the end is, at least
		check := func(what string, s saved) {
			c := all[s.Ordinal-1]
			if s.ID != c.id || s.Ordinal > 1 && s.Previous != "" && s.Previous != all[s.Ordinal-2].id {
				t.Fatalf("%s: %+v, of %+v; %v", what, s, *c, cut)
			}
			for _, e := range s.Entries {
				if !slices.Contains(c.seqs, e.Seq) || e.Value != c.id {
					t.Fatalf("%s: %+v, of %+v", what, s, *c)
				}
			}
			lost := len(cut.Lost) > 0 && s.Ordinal <= cut.Lost[len(cut.Lost)-1].Ordinal
			complete := len(s.Entries) == len(c.seqs)
			if pending := !s.Aborted && s.Applied != cowchangeset.AllApplied; lost && pending || whole && pending && (c.finished > 0 || !complete) {
				t.Fatalf("%s: %+v is pending, of %+v; %v", what, s, *c, cut)
			}
			if !complete && cut.Damage == nil {
				t.Fatalf("%s: %+v is not complete, of %+v", what, s, *c)
			}
		}
		for i, s := range kept {
			check("Load", s)
			if i > 0 && s.Ordinal != kept[i-1].Ordinal+1 {
				t.Fatalf("%d comes after %d", s.Ordinal, kept[i-1].Ordinal)
			}
		}
		for _, s := range journaltest.Collect(t, readerOf(t, opened).Changesets(background)) {
			check("Changesets", s)
		}
		if len(kept) > 0 {
			latest := kept[len(kept)-1]
			if latest.Sealed {
				must(t, start("next", latest.Ordinal+1, latest.ID).Call(j))
			}
			if n := uint64(len(all)); latest.Ordinal < n && whole {
				t.Fatalf("ordinal %d is given again: there were %d; %v", latest.Ordinal+1, n, cut)
			}
		}
		must(t, j.Close())
		must(t, on(t, opened).Close())
		if cut.Damage != nil {
			must(t, repair.UndoOn(m))
			if name := unlike(m, bad); name != "" {
				t.Fatalf("%s is not back", name)
			}
			for n := range segments { // the damaged ones come back from a backup
				name := journaltest.SegmentName(n + 1)
				m.PutFile(name, bytes.Clone(sound.Files[name].Data))
			}
			equal(t, load(t, on(t, m)), load(t, on(t, sound)))
		}
	}
}

// A Reader that follows goes on behind a segment that was taken out, and yields that; and
// nobody takes one out unnoticed.
func TestFollowBesideAGap(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 2, 50)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	events := journaltest.Collect(t, readerOf(t, m).Events(background, 0))
	last := events[len(events)-1]
	if last.Kind != reader.Lost || last.Segment != 2 || last.Ordinal != 0 || last.Reason == "" || last.Kind.String() != "lost" {
		t.Errorf("%+v", last)
	}
	m.Files[journaltest.SegmentName(3)].Data = whole.Segment(3).Data // without the line
	var corrupt *journal.CorruptError
	for what, err := range map[string]error{
		"Events":     journaltest.ErrorOf(journaltest.CollectAll(readerOf(t, m).Events(background, 0))),
		"Changesets": journaltest.ErrorOf(journaltest.CollectAll(readerOf(t, m).Changesets(background))),
		"Verify":     journaltest.ErrorOf(verify(m, journal.Anchor{})),
		"Open":       journaltest.ErrorOf(journaltest.Open[any](m, journal.Options{})),
	} {
		if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(2) || corrupt.Reason != "the segment is missing" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Undo takes back what nothing was written behind.
func TestUndoRefuses(t *testing.T) {
	whole, _ := three(t)
	if err := repair.UndoOn(whole.Clone()); err == nil || !strings.Contains(err.Error(), "nothing to undo") {
		t.Error(err)
	}
	m := damaged(whole, 2, 50)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	j := on(t, m)
	must(t, start("E", 5, "D").Call(j))
	must(t, j.Close())
	before := m.Text()
	if err := repair.UndoOn(m); err == nil || !bytes.Equal(m.Text(), before) {
		t.Error(err)
	}
}

// A segment that was taken out is counted until it is back.
func TestStatsOfQuarantine(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 2, 50)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	for want := 1; want >= 0; want-- {
		j := on(t, m)
		if s := j.Stats(); s.Quarantined != want || s.Segments != 3-want {
			t.Errorf("%+v", s)
		}
		must(t, j.Close())
		m.Put(2, whole.Segment(2).Data) // from a backup
	}
}
