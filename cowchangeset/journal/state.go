package journal

import (
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
	list []*changeset          // those with ordinals from `from` on
	from uint64

	first  uint64 // the ordinal of the first changeset that was not pruned
	latest uint64 // the ordinal of the last one that was started; 0 if there is none

	// Segments before the one that the lines begin with were dropped, if there
	// were any. The last changeset that was started in them, or 0:
	dropped   uint64
	droppedID string
	beforeID  string // the ID of the one before that

	// These are of the last header, and of the first one that was read.
	journal string
	segment uint64
	begun   uint64 // its segment
	started uint64 // its ordinal

	// Segments may be missing: holes, which lines of gaps declare later.
	holes []hole
	hole  uint64          // the segment whose header is behind the last one
	gaps  map[uint64]*Gap // the segments that were declared to be missing
	old   []*changeset    // those before the last hole; list has those behind it
}

// A hole is a segment that is missing between others.
type hole struct {
	segment uint64
	line    int    // the number of the last one before it
	ordinal uint64 // of the latest changeset, as the header behind it says
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

	torn     bool   // lines of it may be missing
	previous string // the ID of the one before it, if that is not there
}

// finished reports whether nobody needs to do anything with it any more.
func (c *changeset) finished() bool { return c.sealed && (c.aborted || c.applied == allApplied) }

func newState() *state { return &state{byID: map[string]*changeset{}, first: 1, from: 1} }

// draft returns a state that begins as s is. It is good while s does not change.
func (s *state) draft() *state {
	d := *s
	d.base, d.byID, d.list, d.from = s, nil, nil, s.latest+1
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

// set makes c the changeset with an ID; nil means that there is none, in a draft.
func (s *state) set(id string, c *changeset) {
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

// at returns the changeset with an ordinal, not all of which may be as in s, or
// nil if the state does not know it.
func (s *state) at(ordinal uint64) *changeset {
	switch i := ordinal - s.from; {
	case ordinal >= s.from && i < uint64(len(s.list)):
		return s.list[i]
	case ordinal < s.from && s.base != nil:
		return s.base.at(ordinal)
	}
	return nil
}

// id returns the ID of the changeset with an ordinal, as far as it is known: that
// of the latest one and the one before it always are.
func (s *state) id(ordinal uint64) string {
	if c := s.at(ordinal); c != nil {
		return c.id
	}
	switch {
	case ordinal == 0:
		return ""
	case ordinal == s.dropped:
		return s.droppedID
	case ordinal+1 == s.dropped:
		return s.beforeID
	}
	return ""
}

// check says whether a line may come next. It returns known if the state already says
// the same, so that the line should not come, or why it must not come.
func (s *state) check(l *line) (known bool, why string) {
	switch {
	case l.op == opJournal:
		return false, s.checkHeader(l)
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
		if (l.count != c.count || l.last != c.last) && !(c.torn && l.count >= c.count && l.last >= c.last) {
			return false, fmt.Sprintf("the manifest says %d entries up to seq %d, and there are %d up to %d", l.count, l.last, c.count, c.last)
		}
		return c.sealed, ""
	case opAbort:
		switch {
		case !c.sealed && !c.torn:
			return false, "it is not sealed"
		case c.aborted && c.reason != l.reason:
			return false, fmt.Sprintf("it was aborted for another reason: %q", c.reason)
		}
		return c.aborted, ""
	case opApplied:
		if !c.sealed && !c.torn {
			return false, "it is not sealed"
		}
		return l.next <= c.applied, ""
	}
	return false, ""
}

// unknown reports whether a line is about a changeset that the state does not have.
func (s *state) unknown(l *line) bool {
	switch l.op {
	case opAppend, opSeal, opAbort, opApplied:
		return l.id != "" && s.find(l.id) == nil
	}
	return false
}

// checkStart is check for a start, where c is the changeset that has the ID already, or
// nil.
func (s *state) checkStart(l *line, c *changeset) (known bool, why string) {
	switch {
	case c != nil && c.ordinal == l.ordinal && s.id(c.ordinal-1) == l.previous:
		return true, ""
	case c != nil:
		return false, fmt.Sprintf("it was started with ordinal %d after %q", c.ordinal, s.id(c.ordinal-1))
	case l.ordinal == s.latest+1:
	case l.ordinal == s.latest && l.ordinal > 0 && s.replaceable(l.ordinal):
	default:
		return false, fmt.Sprintf("its ordinal is %d, and the latest changeset's is %d", l.ordinal, s.latest)
	}
	if previous := s.id(l.ordinal - 1); l.previous != previous {
		return false, fmt.Sprintf("the changeset before it is %q, and not %q", previous, l.previous)
	}
	return false, ""
}

// replaceable reports whether another changeset may have the latest one's ordinal: if
// the Start of that was written and failed nevertheless, nothing has happened to it
// since. If it was started in a segment that was dropped, nobody can tell.
func (s *state) replaceable(ordinal uint64) bool {
	c := s.at(ordinal)
	if c == nil {
		return true
	}
	c = s.find(c.id)
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
	for n := max(s.first, s.oldest()); n < l.before; n++ {
		if c := s.at(n); c != nil && !s.find(c.id).sealed {
			return false, fmt.Sprintf("changeset %d is not sealed", n)
		}
	}
	return false, ""
}

// checkGap is check for a gap: a segment before the last one that somebody has taken out.
func (s *state) checkGap(l *line) (known bool, why string) {
	switch {
	case l.segment == 0 || l.segment >= s.segment:
		return false, fmt.Sprintf("segment %d is not before segment %d", l.segment, s.segment)
	case l.ordinal > s.latest:
		return false, fmt.Sprintf("the latest changeset is %d", s.latest)
	}
	return s.gaps[l.segment] != nil, ""
}

// undeclared returns the first hole that no gap has declared, or nil.
func (s *state) undeclared() *hole {
	for i := range s.holes {
		if s.gaps[s.holes[i].segment] == nil {
			return &s.holes[i]
		}
	}
	return nil
}

// oldest returns the ordinal of the first changeset that the state knows, if it knows
// any.
func (s *state) oldest() uint64 {
	if s.base != nil {
		return min(s.from, s.base.oldest())
	}
	return s.from
}

// maxHole bounds how many segments can be missing in a row.
const maxHole = 1 << 20

// maxHeader bounds the numbers in headers, from which others count on: more cannot be.
const maxHeader = 1 << 40

// checkHeader is check for a header: it continues the lines before it, or is the first
// line that is read.
func (s *state) checkHeader(l *line) (why string) {
	switch {
	case l.ordinal > maxHeader || l.segment > maxHeader:
		return "no such header can be"
	case s.segment == 0:
		if l.segment == 0 || l.journal == "" || l.segment == 1 && l.ordinal > 0 {
			return "no such header can be"
		}
	case l.segment <= s.segment:
		return fmt.Sprintf("segment %d comes after segment %d", l.segment, s.segment)
	case l.journal != s.journal:
		return fmt.Sprintf("the segment is of journal %q, and not %q", l.journal, s.journal)
	case l.segment > s.segment+1 && l.ordinal >= s.latest && l.segment-s.segment <= maxHole:
		return "" // some are missing
	case l.ordinal != s.latest || l.id != s.id(s.latest) || l.ordinal > 0 && l.previous != s.id(s.latest-1):
		return fmt.Sprintf("it goes on from changeset %d, %q, and the segment before it ends with %d, %q", l.ordinal, l.id, s.latest, s.id(s.latest))
	}
	return ""
}

// header returns the header of the next segment.
func (s *state) header() *line {
	l := &line{op: opJournal, format: format, journal: s.journal, segment: s.segment + 1, ordinal: s.latest, id: s.id(s.latest)}
	if s.latest > 0 {
		l.previous = s.id(s.latest - 1)
	}
	return l
}

// apply adds a line that check has accepted. It returns the ordinal of the changeset
// that the line is about, or 0.
func (s *state) apply(l *line) (about uint64) {
	switch l.op {
	case opJournal:
		s.applyHeader(l)
		return 0
	case opPrune:
		s.prune(l.before)
		return 0
	case opGap:
		s.closeTorn(l)
		return 0
	case opStart:
		c := &changeset{id: l.id, ordinal: l.ordinal}
		if s.at(l.ordinal-1) == nil {
			c.previous = l.previous
		}
		s.start(c)
		return l.ordinal
	}
	c := s.own(l.id)
	switch l.op {
	case opAppend:
		c.count += l.count
		c.last = l.last
	case opSeal:
		c.sealed = true
	case opAbort:
		c.sealed, c.aborted, c.reason = true, true, l.reason
	case opApplied:
		c.sealed, c.applied = true, l.next
	}
	return c.ordinal
}

// jump begins anew at a header behind a hole. The lines that are missing may have said
// anything about the changesets that were not finished, and started others.
func (s *state) jump(l *line) {
	for n := s.segment + 1; n < l.segment; n++ {
		s.holes = append(s.holes, hole{segment: n, ordinal: l.ordinal})
	}
	for _, c := range s.list {
		c.torn = c.torn || !c.finished()
		if c.ordinal >= s.first {
			s.old = append(s.old, c)
		}
	}
	s.hole, s.list = l.segment, nil
	s.dropped, s.droppedID, s.beforeID = l.ordinal, l.id, l.previous
	s.latest, s.from = l.ordinal, l.ordinal+1
}

// closeTorn does what a gap says: the changesets up to its ordinal that are not finished
// are not to be applied, and nothing is added to them, since nobody knows what happened
// to them in the segment that is missing. It does so also if the segment is back.
func (s *state) closeTorn(l *line) {
	if s.gaps == nil {
		s.gaps = map[uint64]*Gap{}
	}
	s.gaps[l.segment] = &Gap{l.segment, l.ordinal, l.sum, l.reason}
	if l.ordinal > 0 && l.ordinal+1 == s.from && l.ordinal == s.dropped && s.droppedID != "" {
		c := s.byID[s.droppedID]
		if c == nil { // its start is missing too
			c = &changeset{id: s.droppedID, ordinal: l.ordinal}
			s.byID[c.id] = c
		}
		c.previous = s.beforeID
		s.old = slices.DeleteFunc(s.old, func(o *changeset) bool { return o == c })
		s.from, s.list = l.ordinal, slices.Insert(s.list, 0, c)
	}
	for _, all := range [][]*changeset{s.old, s.list} {
		for _, c := range all {
			if c.ordinal <= l.ordinal && !c.finished() {
				c.sealed, c.aborted, c.reason = true, true, lostReason
			}
		}
	}
}

func (s *state) applyHeader(l *line) {
	switch {
	case s.segment == 0:
		s.begun, s.started = l.segment, l.ordinal
	case l.segment > s.segment+1:
		s.jump(l)
	}
	if s.segment == 0 && l.ordinal > 0 {
		s.dropped, s.droppedID, s.beforeID = l.ordinal, l.id, l.previous
		s.latest, s.from = l.ordinal, l.ordinal+1
	}
	s.journal, s.segment = l.journal, l.segment
}

// start makes c the latest changeset, maybe in the place of another one.
func (s *state) start(c *changeset) {
	if c.ordinal == s.latest {
		if was := s.at(c.ordinal); was != nil {
			if s.base != nil {
				s.set(was.id, nil)
			} else {
				delete(s.byID, was.id)
			}
		}
	}
	if c.ordinal < s.from { // and is there, in the base or in what was dropped
		s.from, s.list = c.ordinal, nil
	}
	if s.base == nil && len(s.old) > 0 && s.old[len(s.old)-1].ordinal == c.ordinal {
		delete(s.byID, s.old[len(s.old)-1].id)
		s.old = s.old[:len(s.old)-1]
	}
	s.list = append(s.list[:c.ordinal-s.from], c)
	s.set(c.id, c)
	s.latest = c.ordinal
}

// prune forgets the changesets with an ordinal below first.
func (s *state) prune(first uint64) {
	s.first = first
	if s.base != nil {
		return
	}
	for len(s.old) > 0 && s.old[0].ordinal < first {
		delete(s.byID, s.old[0].id)
		s.old = s.old[1:]
	}
	if first <= s.from {
		return
	}
	s.dropped, s.droppedID, s.beforeID = max(s.dropped, first-1), s.id(first-1), s.id(first-2)
	for _, c := range s.list[:first-s.from] {
		delete(s.byID, c.id)
	}
	s.list = append([]*changeset(nil), s.list[first-s.from:]...)
	s.from = first
}

// kept returns the changesets that were not pruned, without gaps: those from the last gap
// on. The state is no draft.
func (s *state) kept() []*changeset {
	if s.first < s.from {
		return s.list
	}
	return s.list[s.first-s.from:]
}

// all returns all changesets that are known and were not pruned.
func (s *state) all() []*changeset {
	return slices.Concat(s.old, s.kept())
}
