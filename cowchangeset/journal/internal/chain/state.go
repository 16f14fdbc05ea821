package chain

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/latchfree/latchfree/cowchangeset"
)

// A State is the sum of the lines so far, as far as the rules of later lines need it: no
// entries.
//
// A draft is a state on top of another one, which it does not change: it has copies of
// the changesets that differ, so that a group of calls can be checked one by one before
// any of them is written.
type State struct {
	base *State // nil but for a draft

	byID map[string]*Changeset // in a draft: of those that are different; nil if gone
	List []*Changeset          // by ordinal; in a draft: those that are started

	first  uint64 // the ordinal of the first changeset that was not pruned
	latest uint64 // the ordinal of the last one that was started; 0 if there is none

	latestID, previousID string // of the latest one, and the one before it

	// These are of the last header, and of the first one that was read.
	Journal string
	Segment uint64
	Begun   uint64 // its segment
	blank   uint64 // the largest ordinal of which it says nothing; 0 if there is none

	// Segments may be missing: holes, which lines of gaps declare later.
	Holes []hole
	Gaps  []Gap // the segments that were declared to be missing
}

// A hole is a segment that is missing between others.
type hole struct {
	Segment uint64
	line    int // the number of the last one before it
}

// lostReason is that of the abort that a gap stands for.
const lostReason = "journal: a segment with lines of it was lost"

// A Changeset is one as the state knows it.
type Changeset struct {
	ID      string
	Ordinal uint64
	Count   uint64 // entries
	Last    uint64 // the Seq of the last one; 0 if there is none
	sealed  bool
	aborted bool
	reason  string
	applied uint64

	From, to place  // its start begins, and its entries end
	touched  uint64 // the segment of the last line about it, if that was read
}

// A place is one between two lines.
type place struct{ Segment, offset uint64 }

func (p place) before(q place) bool {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.offset, q.offset)) < 0
}

// Finished reports whether nobody needs to do anything with it any more, as it remains.
func (c *Changeset) Finished() bool {
	return c.sealed && (c.aborted || c.applied == cowchangeset.AllApplied)
}

// in reports whether entries may be in a segment.
func (c *Changeset) in(segment uint64) bool {
	return c.Count > 0 && c.From.Segment <= segment && segment <= c.to.Segment
}

// NewState returns the state before the first line.
func NewState() *State { return &State{byID: map[string]*Changeset{}, first: 1} }

// Draft returns a state that begins as s is. It is good while s does not change.
func (s *State) Draft() *State {
	d := *s
	d.base, d.byID, d.List = s, nil, nil
	return &d
}

// Find returns the changeset with an ID, or nil.
func (s *State) Find(id string) *Changeset {
	c, ok := s.byID[id]
	if !ok && s.base != nil {
		c = s.base.Find(id)
	}
	if c == nil || c.Ordinal < s.first {
		return nil
	}
	return c
}

// set makes c the changeset with an ID; nil means that there is none.
func (s *State) set(id string, c *Changeset) {
	if c == nil && s.base == nil {
		delete(s.byID, id)
		return
	}
	if s.byID == nil {
		s.byID = map[string]*Changeset{}
	}
	s.byID[id] = c
}

// own returns the changeset with an ID, which exists, to be changed.
func (s *State) own(id string) *Changeset {
	c := s.Find(id)
	if s.base == nil {
		return c
	}
	if _, ok := s.byID[id]; !ok {
		copied := *c
		c = &copied
		s.set(id, c)
	}
	return c
}

// search returns where the changeset with an ordinal is in the list, or should be.
func (s *State) search(ordinal uint64) (i int, ok bool) {
	if n := len(s.List); n == 0 || s.List[n-1].Ordinal < ordinal {
		return n, false
	}
	return slices.BinarySearchFunc(s.List, ordinal, func(c *Changeset, o uint64) int { return cmp.Compare(c.Ordinal, o) })
}

// id returns the ID of the changeset with an ordinal, if it is known: that of the latest
// one and of the one before it always are.
func (s *State) id(ordinal uint64) (id string, known bool) {
	switch ordinal {
	case 0:
		return "", true
	case s.latest:
		return s.latestID, true
	case s.latest - 1:
		return s.previousID, true
	}
	if i, ok := s.search(ordinal); ok {
		return s.List[i].ID, true
	}
	if s.base != nil {
		return s.base.id(ordinal)
	}
	return "", false
}

// Check says whether a line may come next. It returns known if the state already says
// the same, so that the line should not come, or why it must not come.
func (s *State) Check(l *Line) (known bool, why string) {
	switch {
	case l.Op == OpJournal:
		return false, s.checkNext(l)
	case l.Op == OpPrune:
		return s.checkPrune(l)
	case l.Op == OpGap:
		return s.checkGap(l)
	case l.ID == "":
		return false, "the ID is empty"
	case !utf8.ValidString(l.ID):
		return false, "the ID is not UTF-8"
	}
	c := s.Find(l.ID)
	if l.Op == OpStart {
		return s.checkStart(l, c)
	}
	if c == nil {
		// A repeated call may be late: the changeset was pruned.
		if s.first > 1 && (l.Op == OpSeal || l.Op == OpAbort || l.Op == OpApplied) {
			return true, ""
		}
		return false, "it was not started, or was pruned"
	}
	switch l.Op {
	case OpAppend:
		switch {
		case c.Count > 0 && l.Last <= c.Last:
			return true, ""
		case c.sealed:
			return false, "it is sealed"
		case c.Count > 0 && l.First <= c.Last:
			return false, OutOfOrder(l.First, c.Last)
		}
	case OpSeal:
		if l.Count != c.Count || l.Last != c.Last {
			return false, fmt.Sprintf("the manifest says %d entries up to seq %d, and there are %d up to %d", l.Count, l.Last, c.Count, c.Last)
		}
		return c.sealed, ""
	case OpAbort:
		switch {
		case !c.sealed:
			return false, "it is not sealed"
		case c.aborted && c.reason != l.Reason:
			return false, fmt.Sprintf("it was aborted for another reason: %q", c.reason)
		case !c.aborted && c.Finished():
			return false, "it is applied"
		}
		return c.aborted, ""
	case OpApplied:
		switch {
		case !c.sealed:
			return false, "it is not sealed"
		case l.Next > c.applied && c.aborted:
			return false, "it is aborted"
		}
		return l.Next <= c.applied, ""
	}
	return false, ""
}

// checkStart is check for a start, where c is the changeset that has the ID already, or
// nil.
func (s *State) checkStart(l *Line, c *Changeset) (known bool, why string) {
	switch previous, sure := s.id(l.Ordinal - 1); {
	case c != nil && c.Ordinal == l.Ordinal && (!sure || previous == l.Previous):
		return true, ""
	case c != nil:
		previous, _ := s.id(c.Ordinal - 1)
		return false, fmt.Sprintf("it was started with ordinal %d after %q", c.Ordinal, previous)
	case l.Ordinal != s.latest+1 && !(l.Ordinal == s.latest && s.replaceable()):
		return false, fmt.Sprintf("its ordinal is %d, and the latest changeset's is %d", l.Ordinal, s.latest)
	case l.Previous != previous:
		return false, fmt.Sprintf("the changeset before it is %q, and not %q", previous, l.Previous)
	}
	return false, ""
}

// replaceable reports whether another changeset may have the latest one's ordinal: if
// the Start of that was written and failed nevertheless, nothing has happened to it since.
func (s *State) replaceable() bool {
	c := s.Find(s.latestID)
	return c != nil && c.Count == 0 && !c.sealed
}

// checkPrune is check for a prune. The latest changeset always stays, and so does any
// changeset that is not sealed.
func (s *State) checkPrune(l *Line) (known bool, why string) {
	if l.Before <= s.first {
		return true, ""
	}
	if l.Before > s.latest {
		return false, fmt.Sprintf("the latest changeset is %d", s.latest)
	}
	if n := s.until(l.Before, func(c *Changeset) bool { return c.sealed }); n < l.Before {
		return false, fmt.Sprintf("changeset %d is not sealed", n)
	}
	return false, ""
}

// until returns the ordinal of the first changeset that is not as wanted, or before if
// all those below that are.
func (s *State) until(before uint64, wanted func(*Changeset) bool) uint64 {
	for d := s; d != nil; d = d.base {
		for _, c := range d.List {
			if c.Ordinal >= before {
				break
			}
			if now := s.Find(c.ID); now != nil && now.Ordinal == c.Ordinal && !wanted(now) {
				before = c.Ordinal
			}
		}
	}
	return before
}

// UpTo returns the ordinal below which all changesets may be forgotten, and are asked
// to be.
func (s *State) UpTo(before uint64) uint64 {
	return max(s.first, s.until(min(before, s.latest), func(c *Changeset) bool { return c.sealed }))
}

// checkGap is check for a gap: a segment before the last one that somebody has taken out.
func (s *State) checkGap(l *Line) (known bool, why string) {
	switch {
	case l.Segment == 0 || l.Segment >= s.Segment:
		return false, fmt.Sprintf("segment %d is not before segment %d", l.Segment, s.Segment)
	case l.Ordinal > s.latest:
		return false, fmt.Sprintf("the latest changeset is %d", s.latest)
	}
	return s.Declared(l.Segment), ""
}

// Declared reports whether a gap says that a segment is missing.
func (s *State) Declared(segment uint64) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.Segment == segment })
}

// Unknown returns the largest ordinal of a changeset that was not pruned and of which
// nothing is known but, perhaps, its ID; or 0.
func (s *State) Unknown() uint64 {
	n := s.latest
	for _, c := range slices.Backward(s.List) {
		if c.Ordinal < n {
			break
		}
		n--
	}
	if n < s.first {
		return 0
	}
	return n
}

// Needed returns the first segment that has lines of changesets that were not pruned, as
// far as they are known.
func (s *State) Needed() uint64 {
	if len(s.List) == 0 {
		return 1
	}
	return s.List[0].From.Segment
}

// These bound how many segments can be missing in a row, and the numbers in headers, from
// which others count on: more cannot be.
const (
	maxHole   = 1 << 20
	maxHeader = 1 << 40
)

const notSaid = "its checkpoint is not what the lines before it say"

// checkNext is check for a header that continues the lines before it.
func (s *State) checkNext(l *Line) (why string) {
	switch h := s.Header(); {
	case l.Journal != s.Journal:
		return fmt.Sprintf("the segment is of journal %q, and not %q", l.Journal, s.Journal)
	case l.Segment != h.Segment:
		return fmt.Sprintf("segment %d comes after segment %d", l.Segment, s.Segment)
	case l.Ordinal != h.Ordinal || l.ID != h.ID || l.Previous != h.Previous:
		return fmt.Sprintf("it goes on from changeset %d, %q, and the segment before it ends with %d, %q", l.Ordinal, l.ID, h.Ordinal, h.ID)
	case l.Before != h.Before || !slices.Equal(l.gaps, h.gaps) || !slices.Equal(l.changesets, h.changesets):
		return notSaid
	}
	return ""
}

// checkAdopted says why adopt cannot take a header, or nothing.
func (s *State) checkAdopted(l *Line) (why string) {
	switch {
	case l.Ordinal > maxHeader || l.Segment > maxHeader, l.Segment == 0 || l.Journal == "" || l.Before == 0 || l.Before > max(1, l.Ordinal),
		l.Segment == 1 && (l.Ordinal > 0 || len(l.gaps) > 0 || len(l.changesets) > 0), l.Ordinal > 0 && l.ID == "":
		return "no such header can be"
	case s.Segment == 0:
	case l.Segment <= s.Segment || l.Segment-s.Segment > maxHole:
		return fmt.Sprintf("segment %d comes after segment %d", l.Segment, s.Segment)
	case l.Journal != s.Journal:
		return fmt.Sprintf("the segment is of journal %q, and not %q", l.Journal, s.Journal)
	case l.Ordinal < s.latest || l.Before < s.first:
		return fmt.Sprintf("it goes on from changeset %d, %q, and there was %d, %q", l.Ordinal, l.ID, s.latest, s.latestID)
	}
	n, ids := l.Before-1, map[string]bool{}
	for i := range l.changesets {
		c := &l.changesets[i]
		contradicts := c.Ordinal == l.Ordinal && c.ID != l.ID || c.Ordinal+1 == l.Ordinal && c.ID != l.Previous
		if c.Ordinal <= n || c.Ordinal > l.Ordinal || c.ID == "" || contradicts || ids[c.ID] || c.to.before(c.From) || c.From.Segment == 0 || c.to.Segment >= l.Segment ||
			(c.aborted || c.applied > 0) && !c.sealed || c.Count == 0 && c.Last > 0 || c.Last >= MaxSeq {
			return "no such checkpoint can be"
		}
		// Behind a hole, no prev shows whether the segment before that has all of its lines.
		if s.Segment > 0 && l.Segment > s.Segment+1 && c.Count > 0 && c.to.Segment <= s.Segment {
			if k, ok := s.search(c.Ordinal); !ok || s.List[k].ID != c.ID || s.List[k].Count != c.Count || s.List[k].Last != c.Last {
				return notSaid
			}
		}
		n, ids[c.ID] = c.Ordinal, true
	}
	return ""
}

// Header returns the header of the next segment. Its checkpoint has the changesets that
// are not finished, and those of which the segment before it says something: all others
// are in those of earlier segments.
func (s *State) Header() *Line {
	l := &Line{Op: OpJournal, Format: Format, Journal: s.Journal, Segment: s.Segment + 1, Ordinal: s.latest, ID: s.latestID, Previous: s.previousID, Before: s.first, gaps: s.Gaps}
	for _, c := range s.List {
		if !c.Finished() || c.touched == s.Segment {
			copied := *c
			copied.touched = 0
			l.changesets = append(l.changesets, copied)
		}
	}
	return l
}

// adopt makes the state what a header says, as not all lines before it were read. Of what
// is missing between two segments, nobody knows how it has finished changesets that the
// header does not have.
func (s *State) adopt(l *Line) {
	for n := s.Segment + 1; s.Begun > 0 && n < l.Segment; n++ {
		s.Holes = append(s.Holes, hole{Segment: n})
	}
	var live []*Changeset
	if s.Begun == 0 {
		s.Begun = l.Segment
	} else if l.Segment > s.Segment+1 {
		live = slices.DeleteFunc(slices.Clone(s.List), (*Changeset).Finished)
	}
	s.prune(l.Before)
	for i := range l.changesets {
		s.put(&l.changesets[i])
	}
	for _, c := range live {
		if i, ok := s.search(c.Ordinal); ok && s.List[i] == c {
			c.sealed, c.aborted, c.reason, c.touched = true, true, lostReason, 0
		}
	}
	s.latest, s.latestID, s.previousID = l.Ordinal, l.ID, l.Previous
	if s.Begun == l.Segment {
		s.blank = s.Unknown()
	}
	s.Journal, s.Segment, s.Gaps = l.Journal, l.Segment, l.gaps
}

// put makes c the changeset with its ordinal.
func (s *State) put(c *Changeset) {
	i, ok := s.search(c.Ordinal)
	if !ok {
		s.List = slices.Insert(s.List, i, c)
	} else {
		if was := s.List[i]; s.byID[was.ID] == was {
			s.set(was.ID, nil)
		}
		s.List[i] = c
	}
	s.set(c.ID, c)
}

// Apply adds a line that check has accepted.
func (s *State) Apply(l *Line) {
	switch l.Op {
	case OpJournal:
		s.Begun = cmp.Or(s.Begun, l.Segment)
		s.Journal, s.Segment = l.Journal, l.Segment
		return
	case OpPrune:
		s.prune(l.Before)
		return
	case OpGap:
		s.lose(l)
		return
	case OpStart:
		s.start(l)
		return
	}
	c := s.own(l.ID)
	switch l.Op {
	case OpAppend:
		c.Count += l.Count
		c.Last = l.Last
		c.to = place{s.Segment, l.End}
	case OpSeal:
		c.sealed = true
	case OpAbort:
		c.aborted, c.reason = true, l.Reason
	case OpApplied:
		c.applied = l.Next
	}
	c.touched = s.Segment
}

// lose does what a gap says: the changesets with entries in the segment that are not
// finished are not to be applied, and nothing is added to them, since entries are
// missing. So are those up to its ordinal: behind a changeset of which nothing is known,
// a tracker begins anew. It does so also if the segment is back.
func (s *State) lose(l *Line) {
	s.Gaps = append(s.Gaps[:len(s.Gaps):len(s.Gaps)], Gap{l.Segment, l.Ordinal, l.Sum, l.Reason})
	for _, c := range s.List {
		if !c.Finished() && (c.Ordinal <= l.Ordinal || c.in(l.Segment)) {
			c.sealed, c.aborted, c.reason, c.touched = true, true, lostReason, s.Segment
		}
	}
}

// start makes a changeset the latest one, maybe in the place of another one.
func (s *State) start(l *Line) {
	at := place{s.Segment, l.At}
	if l.Ordinal == s.latest {
		s.set(s.latestID, nil) // which the start replaces
	} else {
		s.latest, s.previousID = l.Ordinal, s.latestID
	}
	s.latestID = l.ID
	s.put(&Changeset{ID: l.ID, Ordinal: l.Ordinal, From: at, to: at, touched: s.Segment})
}

// prune forgets the changesets with an ordinal below first.
func (s *State) prune(first uint64) {
	s.first = first
	if s.base != nil {
		return
	}
	n, _ := s.search(first)
	for _, c := range s.List[:n] {
		if s.byID[c.ID] == c {
			delete(s.byID, c.ID)
		}
	}
	s.List = slices.Clone(s.List[n:])
}

// Kept returns the changesets that were not pruned and follow each other: those behind the
// last one of which nothing is known.
func (s *State) Kept() []*Changeset {
	n, _ := s.search(s.Unknown() + 1)
	return s.List[n:]
}
