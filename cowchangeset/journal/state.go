package journal

import (
	"fmt"
	"unicode/utf8"
)

// A state is what the lines so far add up to, as far as the rules of later
// lines need it: no entries.
type state struct {
	byID map[string]*changeset
	list []*changeset // by ordinal; the first has 1
}

// A changeset is what the state knows of one.
type changeset struct {
	id      string
	ordinal uint64
	count   int    // entries
	last    uint64 // the Seq of the last one; 0 if there is none
	sealed  bool
	aborted bool
	reason  string
	applied uint64
}

func newState() *state { return &state{byID: map[string]*changeset{}} }

// badID returns why a changeset cannot have an ID, if it cannot.
func badID(id string) (why string) {
	switch {
	case id == "":
		return "the ID is empty"
	case !utf8.ValidString(id):
		return "the ID is not UTF-8"
	}
	return ""
}

// check says whether a line may come next: known if the state says already what
// it says, so that it should not, and why it must not if it may not.
func (s *state) check(l *line) (known bool, why string) {
	if why := badID(l.id); why != "" {
		return false, why
	}
	c := s.byID[l.id]
	if l.op == opStart {
		return s.checkStart(l, c)
	}
	if c == nil {
		return false, "it was not started"
	}
	switch l.op {
	case opAppend:
		switch {
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
		}
		return c.aborted, ""
	case opApplied:
		if !c.sealed {
			return false, "it is not sealed"
		}
		return l.next <= c.applied, ""
	}
	return false, ""
}

// checkStart is check for a start, where c is what has the ID already, or nil.
func (s *state) checkStart(l *line, c *changeset) (known bool, why string) {
	n := uint64(len(s.list))
	switch {
	case c != nil && c.ordinal == l.ordinal && s.before(c.ordinal) == l.previous:
		return true, ""
	case c != nil:
		return false, fmt.Sprintf("it was started with ordinal %d after %q", c.ordinal, s.before(c.ordinal))
	case l.ordinal == n+1:
	case l.ordinal == n && n > 0 && s.list[n-1].replaceable():
	default:
		return false, fmt.Sprintf("its ordinal is %d, and there are %d changesets", l.ordinal, n)
	}
	if previous := s.before(l.ordinal); l.previous != previous {
		return false, fmt.Sprintf("the changeset before it is %q, and not %q", previous, l.previous)
	}
	return false, ""
}

// before returns the ID of the changeset before the one with an ordinal.
func (s *state) before(ordinal uint64) string {
	if ordinal == 1 {
		return ""
	}
	return s.list[ordinal-2].id
}

// replaceable reports whether another changeset may get the ordinal: if its
// Start was written and failed nevertheless, nothing has happened to it since.
func (c *changeset) replaceable() bool { return c.count == 0 && !c.sealed }

// apply takes over what a line says that check had nothing against.
func (s *state) apply(l *line) {
	c := s.byID[l.id]
	switch l.op {
	case opStart:
		if n := l.ordinal - 1; n < uint64(len(s.list)) {
			delete(s.byID, s.list[n].id)
			s.list = s.list[:n]
		}
		c = &changeset{id: l.id, ordinal: l.ordinal}
		s.byID[l.id] = c
		s.list = append(s.list, c)
	case opAppend:
		c.count += l.count
		c.last = l.last
	case opSeal:
		c.sealed = true
	case opAbort:
		c.aborted, c.reason = true, l.reason
	case opApplied:
		c.applied = l.next
	}
}
