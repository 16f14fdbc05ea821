package repair

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
)

// Repaired says what Repair has taken out of a journal, or would. The zero Repaired means
// that the journal is sound.
type Repaired struct {
	Damage *journal.CorruptError // the first

	// Lost are the segments that were taken out, or were missing.
	Lost []journal.Gap

	// Kept is how many lines are left. Cutting is how many would be left if everything
	// from the damage on were cut.
	Kept    int
	Cutting int

	// Aside are the names of segments that were moved aside, as nothing behind them can be
	// read: no line says that they are missing.
	Aside []string

	// File has all bytes of the last segment from its damage on, as they were. It is empty
	// if that has none.
	File string

	// These are of everything that was taken out.
	Bytes int64
	Lines int // as many as there are newlines

	// Some lines may be sound in themselves: their hashes are those of their bytes. The
	// following fields count these.
	Sound      int
	Entries    int
	Changesets []LostChangeset // in the order in which they come
	Before     uint64          // the largest ordinal that a prune has named; 0 if there is none
}

// LostChangeset is a changeset that appears in lines of a Repaired.
type LostChangeset struct {
	ID      string
	Lines   int
	Entries int
	Started bool // one of the lines is its start: nothing of it was left in the journal
	Sealed  bool // one of the lines is its seal
}

// String returns all of it, in some lines of text.
func (c Repaired) String() string {
	if c.Damage == nil {
		return "the journal is sound: nothing was cut"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v", c.Damage)
	for _, g := range c.Lost {
		fmt.Fprintf(&b, "\nsegment %d is taken out", g.Segment)
		if g.Ordinal > 0 {
			fmt.Fprintf(&b, ": changesets up to ordinal %d may be lost with it", g.Ordinal)
		}
	}
	if len(c.Lost) > 0 {
		fmt.Fprintf(&b, "\n%d lines are kept; cutting at the first damage would keep %d", c.Kept, c.Cutting)
	}
	for _, name := range c.Aside {
		fmt.Fprintf(&b, "\n%s is moved aside: nothing behind it can be read", name)
	}
	if c.File != "" {
		fmt.Fprintf(&b, "\nthe end of the last segment is cut to %s", c.File)
	}
	if c.Lines > 0 {
		fmt.Fprintf(&b, "\nwhat goes has %d bytes: %d lines, of which %d are sound in themselves, with %d entries", c.Bytes, c.Lines, c.Sound, c.Entries)
	}
	for _, s := range c.Changesets {
		fmt.Fprintf(&b, "\nchangeset %q: %d lines, %d entries", s.ID, s.Lines, s.Entries)
		if s.Started {
			b.WriteString(", its start")
		}
		if s.Sealed {
			b.WriteString(", its seal")
		}
	}
	if c.Before > 0 {
		fmt.Fprintf(&b, "\nit had pruned the changesets below ordinal %d", c.Before)
	}
	return b.String()
}

// read counts what is in r.
func (c *Repaired) read(r io.Reader) error {
	text := bufio.NewReader(r)
	var p chain.Parser
	for {
		line, err := text.ReadBytes('\n')
		if err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) { // as of a damaged compressed file
				err = nil
			}
			return err
		}
		c.Lines++
		is := chain.Checked{}
		if is.Body, _, is.Why = chain.CutHash(line[:len(line)-1]); is.Why != "" {
			continue
		}
		c.Sound++
		number, prev := chain.Beginning(is.Body)
		p.Values = p.Values[:0]
		if p.Parse(&is.Line, is.Body, number, prev) == "" {
			c.count(&is.Line)
		}
	}
}

func (c *Repaired) count(l *chain.Line) {
	if l.Op == chain.OpJournal {
		return
	}
	if l.Op == chain.OpPrune {
		c.Before = max(c.Before, l.Before)
		return
	}
	i := slices.IndexFunc(c.Changesets, func(s LostChangeset) bool { return s.ID == l.ID })
	if i < 0 {
		i = len(c.Changesets)
		c.Changesets = append(c.Changesets, LostChangeset{ID: l.ID})
	}
	s, n := &c.Changesets[i], len(l.Values)
	s.Lines++
	s.Entries += n
	c.Entries += n
	s.Started = s.Started || l.Op == chain.OpStart
	s.Sealed = s.Sealed || l.Op == chain.OpSeal
}
