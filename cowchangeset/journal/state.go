package journal

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A state is the sum of the lines so far, as far as the rules of later lines need it: no
// entries.
//
// A draft is a state on top of another one, which it does not change: it has copies of
// the changesets that differ, so that a group of calls can be checked one by one before
// any of them is written.
type state struct {
	base *state // nil but for a draft

	byID map[string]*changeset // in a draft: of those that are different; nil if gone
	list []*changeset          // by ordinal; in a draft: those that are started

	first  uint64 // the ordinal of the first changeset that was not pruned
	latest uint64 // the ordinal of the last one that was started; 0 if there is none

	latestID, previousID string // of the latest one, and the one before it

	// These are of the last header, and of the first one that was read.
	journal string
	segment uint64
	begun   uint64 // its segment
	blank   uint64 // the largest ordinal of which it says nothing; 0 if there is none

	// Segments may be missing: holes, which lines of gaps declare later.
	holes []hole
	gaps  []Gap // the segments that were declared to be missing
}

// A hole is a segment that is missing between others.
type hole struct {
	segment uint64
	line    int // the number of the last one before it
}

// lostReason is that of the abort that a gap stands for.
const lostReason = "journal: a segment with lines of it was lost"

// A changeset is one as the state knows it.
type changeset struct {
	id      string
	ordinal uint64
	count   uint64 // entries
	last    uint64 // the Seq of the last one; 0 if there is none
	sealed  bool
	aborted bool
	reason  string
	applied uint64

	from, to place  // its start begins, and its entries end
	touched  uint64 // the segment of the last line about it, if that was read
}

// A place is one between two lines.
type place struct{ segment, offset uint64 }

func (p place) before(q place) bool {
	return cmp.Or(cmp.Compare(p.segment, q.segment), cmp.Compare(p.offset, q.offset)) < 0
}

// finished reports whether nobody needs to do anything with it any more, as it remains.
func (c *changeset) finished() bool { return c.sealed && (c.aborted || c.applied == allApplied) }

// in reports whether entries may be in a segment.
func (c *changeset) in(segment uint64) bool {
	return c.count > 0 && c.from.segment <= segment && segment <= c.to.segment
}

func newState() *state { return &state{byID: map[string]*changeset{}, first: 1} }

// draft returns a state that begins as s is. It is good while s does not change.
func (s *state) draft() *state {
	d := *s
	d.base, d.byID, d.list = s, nil, nil
	return &d
}

// find returns the changeset with an ID, or nil.
func (s *state) find(id string) *changeset {
	c, ok := s.byID[id]
	if !ok && s.base != nil {
		c = s.base.find(id)
	}
	if c == nil || c.ordinal < s.first {
		return nil
	}
	return c
}

// set makes c the changeset with an ID; nil means that there is none.
func (s *state) set(id string, c *changeset) {
	if c == nil && s.base == nil {
		delete(s.byID, id)
		return
	}
	if s.byID == nil {
		s.byID = map[string]*changeset{}
	}
	s.byID[id] = c
}

// own returns the changeset with an ID, which exists, to be changed.
func (s *state) own(id string) *changeset {
	c := s.find(id)
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
func (s *state) search(ordinal uint64) (i int, ok bool) {
	if n := len(s.list); n == 0 || s.list[n-1].ordinal < ordinal {
		return n, false
	}
	return slices.BinarySearchFunc(s.list, ordinal, func(c *changeset, o uint64) int { return cmp.Compare(c.ordinal, o) })
}

// id returns the ID of the changeset with an ordinal, if it is known: that of the latest
// one and of the one before it always are.
func (s *state) id(ordinal uint64) (id string, known bool) {
	switch ordinal {
	case 0:
		return "", true
	case s.latest:
		return s.latestID, true
	case s.latest - 1:
		return s.previousID, true
	}
	if i, ok := s.search(ordinal); ok {
		return s.list[i].id, true
	}
	if s.base != nil {
		return s.base.id(ordinal)
	}
	return "", false
}

// check says whether a line may come next. It returns known if the state already says
// the same, so that the line should not come, or why it must not come.
func (s *state) check(l *line) (known bool, why string) {
	switch {
	case l.op == opJournal:
		return false, s.checkNext(l)
	case l.op == opPrune:
		return s.checkPrune(l)
	case l.op == opGap:
		return s.checkGap(l)
	case l.id == "":
		return false, "the ID is empty"
	case !utf8.ValidString(l.id):
		return false, "the ID is not UTF-8"
	}
	c := s.find(l.id)
	if l.op == opStart {
		return s.checkStart(l, c)
	}
	if c == nil {
		// A repeated call may be late: the changeset was pruned.
		if s.first > 1 && (l.op == opSeal || l.op == opAbort || l.op == opApplied) {
			return true, ""
		}
		return false, "it was not started, or was pruned"
	}
	switch l.op {
	case opAppend:
		switch {
		case c.count > 0 && l.last <= c.last:
			return true, ""
		case c.sealed:
			return false, "it is sealed"
		case c.count > 0 && l.first <= c.last:
			return false, outOfOrder(l.first, c.last)
		}
	case opSeal:
		if l.count != c.count || l.last != c.last {
			return false, fmt.Sprintf("the manifest says %d entries up to seq %d, and there are %d up to %d", l.count, l.last, c.count, c.last)
		}
		return c.sealed, ""
	case opAbort:
		switch {
		case !c.sealed:
			return false, "it is not sealed"
		case c.aborted && c.reason != l.reason:
			return false, fmt.Sprintf("it was aborted for another reason: %q", c.reason)
		case !c.aborted && c.finished():
			return false, "it is applied"
		}
		return c.aborted, ""
	case opApplied:
		switch {
		case !c.sealed:
			return false, "it is not sealed"
		case l.next > c.applied && c.aborted:
			return false, "it is aborted"
		}
		return l.next <= c.applied, ""
	}
	return false, ""
}

// checkStart is check for a start, where c is the changeset that has the ID already, or
// nil.
func (s *state) checkStart(l *line, c *changeset) (known bool, why string) {
	switch previous, sure := s.id(l.ordinal - 1); {
	case c != nil && c.ordinal == l.ordinal && (!sure || previous == l.previous):
		return true, ""
	case c != nil:
		previous, _ := s.id(c.ordinal - 1)
		return false, fmt.Sprintf("it was started with ordinal %d after %q", c.ordinal, previous)
	case l.ordinal != s.latest+1 && !(l.ordinal == s.latest && s.replaceable()):
		return false, fmt.Sprintf("its ordinal is %d, and the latest changeset's is %d", l.ordinal, s.latest)
	case l.previous != previous:
		return false, fmt.Sprintf("the changeset before it is %q, and not %q", previous, l.previous)
	}
	return false, ""
}

// replaceable reports whether another changeset may have the latest one's ordinal: if
// the Start of that was written and failed nevertheless, nothing has happened to it since.
func (s *state) replaceable() bool {
	c := s.find(s.latestID)
	return c != nil && c.count == 0 && !c.sealed
}

// checkPrune is check for a prune. The latest changeset always stays, and so does any
// changeset that is not sealed.
func (s *state) checkPrune(l *line) (known bool, why string) {
	if l.before <= s.first {
		return true, ""
	}
	if l.before > s.latest {
		return false, fmt.Sprintf("the latest changeset is %d", s.latest)
	}
	if n := s.until(l.before, func(c *changeset) bool { return c.sealed }); n < l.before {
		return false, fmt.Sprintf("changeset %d is not sealed", n)
	}
	return false, ""
}

// until returns the ordinal of the first changeset that is not as wanted, or before if
// all those below that are.
func (s *state) until(before uint64, wanted func(*changeset) bool) uint64 {
	for d := s; d != nil; d = d.base {
		for _, c := range d.list {
			if c.ordinal >= before {
				break
			}
			if now := s.find(c.id); now != nil && now.ordinal == c.ordinal && !wanted(now) {
				before = c.ordinal
			}
		}
	}
	return before
}

// checkGap is check for a gap: a segment before the last one that somebody has taken out.
func (s *state) checkGap(l *line) (known bool, why string) {
	switch {
	case l.segment == 0 || l.segment >= s.segment:
		return false, fmt.Sprintf("segment %d is not before segment %d", l.segment, s.segment)
	case l.ordinal > s.latest:
		return false, fmt.Sprintf("the latest changeset is %d", s.latest)
	}
	return s.declared(l.segment), ""
}

// declared reports whether a gap says that a segment is missing.
func (s *state) declared(segment uint64) bool {
	return slices.ContainsFunc(s.gaps, func(g Gap) bool { return g.Segment == segment })
}

// unknown returns the largest ordinal of a changeset that was not pruned and of which
// nothing is known but, perhaps, its ID; or 0.
func (s *state) unknown() uint64 {
	n := s.latest
	for _, c := range slices.Backward(s.list) {
		if c.ordinal < n {
			break
		}
		n--
	}
	if n < s.first {
		return 0
	}
	return n
}

// needed returns the first segment that has lines of changesets that were not pruned, as
// far as they are known.
func (s *state) needed() uint64 {
	if len(s.list) == 0 {
		return 1
	}
	return s.list[0].from.segment
}

// These bound how many segments can be missing in a row, and the numbers in headers, from
// which others count on: more cannot be.
const (
	maxHole   = 1 << 20
	maxHeader = 1 << 40
)

const notSaid = "its checkpoint is not what the lines before it say"

// checkNext is check for a header that continues the lines before it.
func (s *state) checkNext(l *line) (why string) {
	switch h := s.header(); {
	case l.journal != s.journal:
		return fmt.Sprintf("the segment is of journal %q, and not %q", l.journal, s.journal)
	case l.segment != h.segment:
		return fmt.Sprintf("segment %d comes after segment %d", l.segment, s.segment)
	case l.ordinal != h.ordinal || l.id != h.id || l.previous != h.previous:
		return fmt.Sprintf("it goes on from changeset %d, %q, and the segment before it ends with %d, %q", l.ordinal, l.id, h.ordinal, h.id)
	case l.before != h.before || !slices.Equal(l.gaps, h.gaps) || !slices.Equal(l.changesets, h.changesets):
		return notSaid
	}
	return ""
}

// checkAdopted says why adopt cannot take a header, or nothing.
func (s *state) checkAdopted(l *line) (why string) {
	switch {
	case l.ordinal > maxHeader || l.segment > maxHeader, l.segment == 0 || l.journal == "" || l.before == 0 || l.before > max(1, l.ordinal),
		l.segment == 1 && (l.ordinal > 0 || len(l.gaps) > 0 || len(l.changesets) > 0), l.ordinal > 0 && l.id == "":
		return "no such header can be"
	case s.segment == 0:
	case l.segment <= s.segment || l.segment-s.segment > maxHole:
		return fmt.Sprintf("segment %d comes after segment %d", l.segment, s.segment)
	case l.journal != s.journal:
		return fmt.Sprintf("the segment is of journal %q, and not %q", l.journal, s.journal)
	case l.ordinal < s.latest || l.before < s.first:
		return fmt.Sprintf("it goes on from changeset %d, %q, and there was %d, %q", l.ordinal, l.id, s.latest, s.latestID)
	}
	n, ids := l.before-1, map[string]bool{}
	for i := range l.changesets {
		c := &l.changesets[i]
		known := c.ordinal == l.ordinal && c.id != l.id || c.ordinal+1 == l.ordinal && c.id != l.previous
		if c.ordinal <= n || c.ordinal > l.ordinal || c.id == "" || known || ids[c.id] || c.to.before(c.from) || c.from.segment == 0 || c.to.segment >= l.segment ||
			(c.aborted || c.applied > 0) && !c.sealed || c.count == 0 && c.last > 0 || c.last >= maxSeq {
			return "no such checkpoint can be"
		}
		// Behind a hole, no prev shows whether the segment before that has all of its lines.
		if s.segment > 0 && l.segment > s.segment+1 && c.count > 0 && c.to.segment <= s.segment {
			if k, ok := s.search(c.ordinal); !ok || s.list[k].id != c.id || s.list[k].count != c.count || s.list[k].last != c.last {
				return notSaid
			}
		}
		n, ids[c.id] = c.ordinal, true
	}
	return ""
}

// header returns the header of the next segment. Its checkpoint has the changesets that
// are not finished, and those of which the segment before it says something: all others
// are in those of earlier segments.
func (s *state) header() *line {
	l := &line{op: opJournal, format: format, journal: s.journal, segment: s.segment + 1, ordinal: s.latest, id: s.latestID, previous: s.previousID, before: s.first, gaps: s.gaps}
	for _, c := range s.list {
		if !c.finished() || c.touched == s.segment {
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
func (s *state) adopt(l *line) {
	for n := s.segment + 1; s.begun > 0 && n < l.segment; n++ {
		s.holes = append(s.holes, hole{segment: n})
	}
	var live []*changeset
	if s.begun == 0 {
		s.begun = l.segment
	} else if l.segment > s.segment+1 {
		live = slices.DeleteFunc(slices.Clone(s.list), (*changeset).finished)
	}
	s.prune(l.before)
	for i := range l.changesets {
		s.put(&l.changesets[i])
	}
	for _, c := range live {
		if i, ok := s.search(c.ordinal); ok && s.list[i] == c {
			c.sealed, c.aborted, c.reason, c.touched = true, true, lostReason, 0
		}
	}
	s.latest, s.latestID, s.previousID = l.ordinal, l.id, l.previous
	if s.begun == l.segment {
		s.blank = s.unknown()
	}
	s.journal, s.segment, s.gaps = l.journal, l.segment, l.gaps
}

// put makes c the changeset with its ordinal.
func (s *state) put(c *changeset) {
	i, ok := s.search(c.ordinal)
	if !ok {
		s.list = slices.Insert(s.list, i, c)
	} else {
		if was := s.list[i]; s.byID[was.id] == was {
			s.set(was.id, nil)
		}
		s.list[i] = c
	}
	s.set(c.id, c)
}

// apply adds a line that check has accepted.
func (s *state) apply(l *line) {
	switch l.op {
	case opJournal:
		s.begun = cmp.Or(s.begun, l.segment)
		s.journal, s.segment = l.journal, l.segment
		return
	case opPrune:
		s.prune(l.before)
		return
	case opGap:
		s.lose(l)
		return
	case opStart:
		s.start(l)
		return
	}
	c := s.own(l.id)
	switch l.op {
	case opAppend:
		c.count += l.count
		c.last = l.last
		c.to = place{s.segment, l.end}
	case opSeal:
		c.sealed = true
	case opAbort:
		c.aborted, c.reason = true, l.reason
	case opApplied:
		c.applied = l.next
	}
	c.touched = s.segment
}

// lose does what a gap says: the changesets with entries in the segment that are not
// finished are not to be applied, and nothing is added to them, since entries are
// missing. So are those up to its ordinal: behind a changeset of which nothing is known,
// a tracker begins anew. It does so also if the segment is back.
func (s *state) lose(l *line) {
	s.gaps = append(s.gaps[:len(s.gaps):len(s.gaps)], Gap{l.segment, l.ordinal, l.sum, l.reason})
	for _, c := range s.list {
		if !c.finished() && (c.ordinal <= l.ordinal || c.in(l.segment)) {
			c.sealed, c.aborted, c.reason, c.touched = true, true, lostReason, s.segment
		}
	}
}

// start makes a changeset the latest one, maybe in the place of another one.
func (s *state) start(l *line) {
	at := place{s.segment, l.at}
	if l.ordinal == s.latest {
		s.set(s.latestID, nil) // which the start replaces
	} else {
		s.latest, s.previousID = l.ordinal, s.latestID
	}
	s.latestID = l.id
	s.put(&changeset{id: l.id, ordinal: l.ordinal, from: at, to: at, touched: s.segment})
}

// prune forgets the changesets with an ordinal below first.
func (s *state) prune(first uint64) {
	s.first = first
	if s.base != nil {
		return
	}
	n, _ := s.search(first)
	for _, c := range s.list[:n] {
		if s.byID[c.id] == c {
			delete(s.byID, c.id)
		}
	}
	s.list = slices.Clone(s.list[n:])
}

// kept returns the changesets that were not pruned and follow each other: those behind the
// last one of which nothing is known.
func (s *state) kept() []*changeset {
	n, _ := s.search(s.unknown() + 1)
	return s.list[n:]
}
