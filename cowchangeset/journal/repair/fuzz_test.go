package repair_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// FuzzReader reads bytes as two or three segments, as they are and as lines whose
// numbers and hashes are right: nothing panics or hangs; Changesets, Events and
// Repair agree with Open and Load.
func FuzzReader(f *testing.F) {
	whole, _ := three(f)
	pruned, _ := prunedStory(f)
	only, _ := onlyPrune(f)
	for _, m := range []*memory{whole, pruned, only} {
		text := m.Text()
		number := 1
		for m.Segment(number) == nil {
			number++
		}
		one, two, from := uint16(len(m.Segment(number).Data)), uint16(0), byte(number-1)
		if s := m.Segment(number + 1); s != nil {
			two = uint16(len(s.Data))
		}
		f.Add(text, one, two, from)
		f.Add(text[:len(text)-1], one, two, from)
		f.Add(text[:len(text)-9], one, two, from)
		f.Add(text, one-1, two, from)
		f.Add(text, one, two+9, from+1)
		// The same without numbers and hashes. Segments then end with lines.
		var inner []string
		for line := range bytes.Lines(text) {
			_, rest, _ := bytes.Cut(line, []byte(`,`))
			if n := bytes.LastIndex(rest, []byte(`,"prev":`)); n > 0 {
				inner = append(inner, string(rest[:n]))
			}
		}
		f.Add([]byte(strings.Join(inner, "\n")), uint16(7), uint16(6), from)
		f.Add([]byte(strings.Join(inner, "\n")), uint16(bytes.Count(text[:one], []byte("\n"))), uint16(bytes.Count(text[one:one+two], []byte("\n"))), from)
	}
	f.Fuzz(func(t *testing.T, text []byte, one, two uint16, from byte) {
		n := min(int(one), len(text))
		k := min(n+int(two), len(text))
		tryRead(t, from, text[:n], text[n:k], text[k:])
		lines := bytes.SplitAfter(numbered(text), []byte("\n"))
		n = min(int(one), len(lines))
		k = min(n+int(two), len(lines))
		tryRead(t, from, slices.Concat(lines[:n]...), slices.Concat(lines[n:k]...), slices.Concat(lines[k:]...))
	})
}

// numbered makes lines of what has neither numbers nor hashes.
func numbered(text []byte) []byte {
	var bodies []string
	prev := strings.Repeat("0", 64)
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		bodies = append(bodies, fmt.Sprintf(`{"line":%d,%s,"prev":"%s"`, len(bodies)+1, line, prev))
		prev = fmt.Sprintf("%x", sha256.Sum256([]byte(bodies[len(bodies)-1])))
	}
	return chain(bodies...)
}

// tryRead reads segments of which the first has the number 1 or one more or two.
func tryRead(t *testing.T, from byte, texts ...[]byte) {
	m := &memory{}
	for i, text := range texts {
		if i < 2 || len(text) > 0 {
			m.Put(1+int(from%16)+i, text)
		}
	}
	r, err := journaltest.Reader[any](m, reader.Options{PollInterval: 1})
	must(t, err)
	changesets, err := journaltest.CollectAll(r.Changesets(background))
	events, failed := journaltest.CollectAll(r.Events(background, 0))
	opened := m.Clone()
	j, refused := journaltest.Open[any](opened, journal.Options{})
	var corrupt *journal.CorruptError
	if refused != nil {
		if !errors.As(refused, &corrupt) {
			t.Fatal(refused)
		}
		equal(t, err, refused)
		equal(t, failed, refused)
		if corrupt = refused.(*journal.CorruptError); !strings.Contains(corrupt.Reason, "newline") { // which may come
			got, err := follow(t, r, len(events)+1)
			var same *journal.CorruptError
			want := min(len(events), bytes.Count(m.Text(), []byte("\n"))) // Follow waits for newlines
			if !errors.As(err, &same) || same.Line != corrupt.Line || len(got) < want {
				t.Fatalf("Follow: %d, %v, Open: %v", len(got), err, refused)
			}
		}
		tryRepair(t, m)
		return
	}
	if failed != nil { // by what Open leaves to Verify: all but the header of a segment that has a successor
		if !errors.As(failed, &corrupt) || corrupt.File == slices.Max(m.Segments()) {
			t.Fatalf("%v, which Open has not refused", failed)
		}
		must(t, j.Close())
		tryRepair(t, m)
		return
	}
	must(t, err)
	equal(t, changesets, load(t, j))
	agree(t, changesets, events)
	if bytes.HasSuffix(m.Text(), []byte("\n")) {
		got, err := follow(t, r, len(events))
		must(t, err)
		equal(t, got, events)
	}
	for _, s := range changesets {
		got, err := r.Changeset(background, s.ID)
		must(t, err)
		equal(t, got, s)
	}
	cut, err := repair.RepairOn(m)
	must(t, err)
	equal(t, cut, repair.Repaired{})
	must(t, j.Close())
}

// follow returns the first n events that Follow yields, and its error.
func follow(t *testing.T, r *reader.Reader[any], n int) (events []reader.Event[any], err error) {
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	for e, err := range r.Follow(ctx, 0) {
		if err != nil {
			return events, err
		}
		if events = append(events, e); len(events) == n {
			break
		}
	}
	return events, nil
}

// agree compares what the lines say with what they add up to.
func agree(t *testing.T, changesets []saved, events []reader.Event[any]) {
	all := map[uint64]*saved{}
	first, latest := uint64(1), uint64(0)
	for _, e := range events {
		s := all[e.Ordinal]
		switch {
		case e.Kind == reader.Pruned:
			first = e.Before
			continue
		case e.Kind == reader.Started:
			all[e.Ordinal] = &saved{Header: header{ID: e.ChangesetID, Ordinal: e.Ordinal, Previous: e.Previous}}
			latest = e.Ordinal
			continue
		case e.Kind == reader.Rotated || e.Ordinal == 0:
			continue
		case s == nil || s.ID != e.ChangesetID:
			t.Fatalf("%+v, of %+v", e, s)
		}
		switch e.Kind {
		case reader.Appended:
			s.Entries = append(s.Entries, e.Entries...)
		case reader.Sealed:
			s.Sealed = true
			last := cowchangeset.Manifest{Len: len(s.Entries)}
			if last.Len > 0 {
				last.Last = s.Entries[last.Len-1].Seq
			}
			equal(t, e.Manifest, last)
		case reader.Aborted:
			s.Aborted, s.Reason = true, e.Reason
		case reader.Applied:
			s.Applied = e.Next
		}
	}
	var want []saved
	for n := first; n <= latest; n++ {
		if s := all[n]; s != nil {
			want = append(want, *s)
		}
	}
	equal(t, changesets, want)
}

// tryRepair repairs what Open has refused.
func tryRepair(t *testing.T, m *memory) {
	bad := m.Clone()
	cut, err := repair.RepairOn(m)
	var corrupt *journal.CorruptError
	if errors.As(err, &corrupt) {
		if !bytes.Equal(m.Text(), bad.Text()) {
			t.Fatalf("%v, and it has changed something", err)
		}
		return
	}
	must(t, err)
	if cut.Damage == nil {
		t.Fatal("Repair finds no damage")
	}
	undone := m.Clone()
	if err := repair.UndoOn(undone); err != nil {
		t.Fatal(err)
	}
	if name := lost(m, bad); name != "" {
		t.Fatalf("%s is lost", name)
	}
	if name := unlike(undone, bad); name != "" {
		t.Fatalf("Undo has not restored %s", name)
	}
	must(t, on(t, m).Close())
	if again, err := repair.RepairOn(m); err != nil || again.Damage != nil {
		t.Fatal(again, err)
	}
}

// lastOf returns the name of the last segment.
func lastOf(m *memory) (last string) {
	for name := range m.Files {
		if strings.HasSuffix(name, ".journal") {
			last = max(last, name)
		}
	}
	return last
}
