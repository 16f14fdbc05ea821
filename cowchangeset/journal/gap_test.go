package journal_test

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
				must(t, second(tracker.Record(fmt.Sprint("some value that is a little bit long, so that segments fill up ", n))))
			}
			must(t, c.Apply(background, func(context.Context, cowchangeset.Final[any]) error { return nil }))
		}
		must(t, tracker.Flush(background))
		must(t, j.Close())
		return m
	}
	sound := build()
	last := len(sound.files)
	if last < 20 {
		t.Fatalf("%d segments", last)
	}
	for _, number := range []int{1, 2, last / 2, last - 1} {
		for _, at := range []int{20, 600, len(sound.segment(number).data) - 2} {
			m := damaged(sound, number, at)
			if _, err := journal.VerifyOn(m, journal.Anchor{}); err == nil {
				t.Fatal("it is sound")
			}
			cut, err := journal.RepairOn(m)
			must(t, err)
			if lines := bytes.Count(sound.bytes(), []byte("\n")); len(cut.Lost) != 1 || cut.Lines != bytes.Count(sound.segment(number).data, []byte("\n")) || cut.Kept != lines-cut.Lines {
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
			next, err := tracker.Start(background)
			must(t, err)
			equal(t, next.Ordinal(), uint64(61))
			must(t, second(tracker.Record("goes on")))
			must(t, j.Rotate(background))
			known := collect(t, reader(t, m).Changesets(background))
			if whole := len(slices.DeleteFunc(known, func(s saved) bool { return len(s.Entries) < 20 })); whole < 55 {
				t.Errorf("segment %d, byte %d: %d whole changesets are known", number, at, whole)
			}
			must(t, j.Prune(background, 61))
			must(t, j.Close())
			report, err := journal.VerifyOn(m, journal.Anchor{})
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
			must(t, start(c.id, c.ordinal, previous).call(j))
			all, previous = append(all, c), c.id
		case op < 4 && !c.sealed:
			seq := uint64(rand.IntN(3))
			if n := len(c.seqs); n > 0 {
				seq += c.seqs[n-1] + 1
			}
			must(t, add(c.id, item(seq, c.id)).call(j))
			c.seqs = append(c.seqs, seq)
		case op == 4 && !c.sealed && len(c.seqs) > 0:
			must(t, seal(c.id, len(c.seqs), c.seqs[len(c.seqs)-1]).call(j))
			c.sealed = true
		case op == 5 && c.sealed && c.finished == 0:
			must(t, applied(c.id, cowchangeset.AllApplied).call(j))
			c.finished = j.Hash().Line
		case op == 6 && c.sealed && c.finished == 0:
			must(t, abort(c.id, "why").call(j))
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
	for range 400 {
		m := &memory{}
		all := random(t, m)
		sound := m.clone()
		segments := len(m.files)
		for range 1 + rand.IntN(2) {
			name := journal.SegmentName(1 + rand.IntN(segments))
			switch f := m.files[name]; {
			case f == nil:
			case rand.IntN(4) == 0 && name != journal.SegmentName(segments):
				delete(m.files, name)
			case len(f.data) > 1:
				f.data[rand.IntN(len(f.data)-1)] ^= 1
			}
		}
		bad := m.clone()
		cut, err := journal.RepairOn(m)
		if err != nil {
			if !strings.Contains(err.Error(), "no repair") {
				t.Fatal(err)
			}
			continue
		}
		opened := m.clone()
		j := on(t, opened)
		kept := load(t, j)
		whole := cut.File == "" && lastOf(opened) == lastOf(sound) // the end is, at least
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
		for _, s := range collect(t, reader(t, opened).Changesets(background)) {
			check("Changesets", s)
		}
		if len(kept) > 0 {
			latest := kept[len(kept)-1]
			if latest.Sealed {
				must(t, start("next", latest.Ordinal+1, latest.ID).call(j))
			}
			if n := uint64(len(all)); latest.Ordinal < n && whole {
				t.Fatalf("ordinal %d is given again: there were %d; %v", latest.Ordinal+1, n, cut)
			}
		}
		must(t, j.Close())
		must(t, on(t, opened).Close())
		if cut.Damage != nil {
			must(t, journal.UndoOn(m))
			for name, f := range bad.files {
				if name != lastOf(bad) && !bytes.Equal(m.files[name].data, f.data) {
					t.Fatalf("%s is not back", name)
				}
			}
			for n := range segments { // the damaged ones come back from a backup
				name := journal.SegmentName(n + 1)
				m.files[name] = &memoryFile{of: m, data: bytes.Clone(sound.files[name].data)}
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
	must(t, second(journal.RepairOn(m)))
	events := collect(t, reader(t, m).Events(background, 0))
	last := events[len(events)-1]
	if last.Kind != journal.Lost || last.Segment != 2 || last.Ordinal != 0 || last.Reason == "" || last.Kind.String() != "lost" {
		t.Errorf("%+v", last)
	}
	m.files[journal.SegmentName(3)].data = whole.segment(3).data // without the line
	var corrupt *journal.CorruptError
	for what, err := range map[string]error{
		"Events":     second(ended(reader(t, m).Events(background, 0))),
		"Changesets": second(ended(reader(t, m).Changesets(background))),
		"Verify":     second(journal.VerifyOn(m, journal.Anchor{})),
		"Open":       second(journal.OpenOn[any](m, journal.Options{})),
	} {
		if !errors.As(err, &corrupt) || corrupt.File != journal.SegmentName(2) || corrupt.Reason != "the segment is missing" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Undo takes back what nothing was written behind.
func TestUndoRefuses(t *testing.T) {
	whole, _ := three(t)
	if err := journal.UndoOn(whole.clone()); err == nil || !strings.Contains(err.Error(), "nothing to undo") {
		t.Error(err)
	}
	m := damaged(whole, 2, 50)
	must(t, second(journal.RepairOn(m)))
	j := on(t, m)
	must(t, start("E", 5, "D").call(j))
	must(t, j.Close())
	before := m.bytes()
	if err := journal.UndoOn(m); err == nil || !bytes.Equal(m.bytes(), before) {
		t.Error(err)
	}
}
