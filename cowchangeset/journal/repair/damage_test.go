package repair_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/folder/foldertest"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// damage does to a segment what disks and people do.
func damage(m *memory) string {
	names := m.Segments()
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".journal") })
	one, two := names[rand.IntN(len(names))], names[rand.IntN(len(names))]
	f, g := m.Files[one], m.Files[two]
	header := bytes.IndexByte(f.Data, '\n') + 1
	cut := func(n int) string {
		f.Data = f.Data[:n]
		return fmt.Sprintf("%s cut to %d", one, n)
	}
	switch rand.IntN(8) {
	case 0:
		if len(names) > 1 {
			m.Delete(one)
		}
		return one + " removed"
	case 1:
		return cut(0)
	case 2:
		return cut(rand.IntN(header + 1))
	case 3:
		return cut(rand.IntN(len(f.Data) + 1))
	case 4:
		f.Data, g.Data = g.Data, f.Data
		return one + " and " + two + " swapped"
	case 5:
		f.Data = bytes.Clone(g.Data)
		return two + " copied to " + one
	case 6:
		last := 0
		fmt.Sscanf(lastOf(m), "%d", &last)
		m.Put(last+1, f.Data)
		return one + " copied to the end"
	}
	at := rand.IntN(len(f.Data) + 1)
	if rand.IntN(2) == 0 {
		at = rand.IntN(header + 1)
	}
	if at < len(f.Data) {
		f.Data[at] ^= 1
	}
	return fmt.Sprintf("byte %d of %s flipped", at, one)
}

// unlike returns the name of a file that two folders do not both have with the same bytes.
func unlike(m, want *memory) string {
	for name := range m.Files {
		if want.Files[name] == nil {
			return name + ", which was not there"
		}
	}
	for name, f := range want.Files {
		if is := m.Files[name]; is == nil || !bytes.Equal(is.Data, f.Data) {
			return name
		}
	}
	return ""
}

// lost returns the name of a file that a repair has neither left as it was nor set aside.
func lost(m, bad *memory) string {
	for name, was := range bad.Files {
		is := m.Files[name]
		if moved := movedTo(m, bad, name); moved != nil {
			is = moved
		}
		if is == nil || !bytes.Equal(is.Data, was.Data) {
			return name
		}
	}
	return ""
}

// movedTo returns the file that was a segment before a repair took it out, or nil.
func movedTo(m, bad *memory, segment string) *foldertest.File {
	for name, f := range m.Files {
		if bad.Files[name] == nil && strings.HasPrefix(name, segment+".") {
			return f
		}
	}
	return nil
}

// Whatever several damages have left, one repair after another: Repair fails and changes
// nothing, or all bytes are kept, the journal opens, and nothing that was finished is to be
// done. Undo takes the last repair back, unless something was written since.
func TestDamages(t *testing.T) {
	journals := 1500
	if testing.Short() {
		journals = 150
	}
	for range journals {
		m := &memory{}
		all := random(t, m)
		what := ""
		for attempt := range 3 {
			what += fmt.Sprintf("; round %d", attempt)
			for range 1 + rand.IntN(3) {
				what += ", " + damage(m)
			}
			bad := m.Clone()
			cut, err := repair.RepairOn(m)
			if err != nil {
				if text := err.Error(); !strings.Contains(text, "no repair") {
					t.Fatalf("%s: %v", what, err)
				}
				if name := unlike(m, bad); name != "" {
					t.Fatalf("%s: %v, and it has changed %s", what, err, name)
				}
				break
			}
			if name := lost(m, bad); name != "" {
				t.Fatalf("%s: %s is lost; %v", what, name, cut)
			}
			again, err := repair.RepairOn(m)
			must(t, err)
			equal(t, again, repair.Repaired{})
			line := 0 // the last one that no repair has written
			for _, e := range journaltest.Collect(t, readerOf(t, m).Events(background, 0)) {
				if e.Kind != reader.Lost {
					line = e.Line
				}
			}
			if cut.Damage != nil {
				undone := m.Clone()
				if err := repair.UndoOn(undone); err != nil {
					t.Fatalf("%s: %v; %v", what, err, cut)
				}
				if name := unlike(undone, bad); name != "" {
					t.Fatalf("%s: Undo has not restored %s; %v", what, name, cut)
				}
			}
			j := on(t, m)
			kept, err := journaltest.Everything(j)
			if err != nil {
				t.Fatalf("%s: %v; %v", what, err, cut)
			}
			for _, s := range kept {
				if c := all[s.Ordinal-1]; s.ID != c.id {
					t.Fatalf("%s: %+v, of %+v; %v", what, s, *c, cut)
				} else if !s.Aborted && s.Applied != cowchangeset.AllApplied && c.finished > 0 && c.finished <= line {
					t.Fatalf("%s: %+v is to be done, of %+v; %v", what, s, *c, cut)
				}
			}
			if len(kept) == 0 {
				break
			}
			latest := kept[len(kept)-1].Header
			for _, c := range all {
				if c.finished > line {
					c.finished = 0
				}
			}
			next := &truth{id: fmt.Sprint("next-", attempt), ordinal: latest.Ordinal + 1}
			all = append(all[:latest.Ordinal], next)
			must(t, start(next.id, next.ordinal, latest.ID).Call(j))
			must(t, j.Close())
			if cut.Damage != nil {
				written := m.Clone()
				if err := repair.UndoOn(written); err == nil {
					t.Fatalf("%s: Undo works though something was written since; %v", what, cut)
				}
				if name := unlike(written, m); name != "" {
					t.Fatalf("%s: Undo fails and changes %s", what, name)
				}
			}
		}
	}
}
