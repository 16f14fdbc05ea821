package changeset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset"
)

// state is what the messages of a stream say, up to one of them.
type state struct {
	begin  uint64 // the sequence of the first message that replay has read
	seq    uint64 // of the last message; 0 if there is none
	line   uint64 // of the last message
	token  string // the subject of the last claim's messages; empty if the stream was pruned behind that
	epoch  uint64 // the sequence of the last claim, or 0
	holder string // of the last claim

	first uint64       // the ordinal below which changesets are pruned; 1 at first
	sets  []*changeset // in the order of their ordinals, without gaps
	ids   map[string]*changeset
	parts []*message // of a record that is not complete

	keep bool // whether changesets keep their appends
}

// changeset is what a state knows of a changeset.
type changeset struct {
	cowchangeset.Header
	start           uint64 // the sequence of its start
	entries         int
	last            uint64 // the Seq of the last entry; 0 if there is none
	sealed, aborted bool
	reason          string
	applied         uint64
	appends         []*event // if the state keeps them
}

func newState(keep bool) *state {
	return &state{first: 1, ids: make(map[string]*changeset), keep: keep}
}

// latest returns the latest changeset, or nil.
func (s *state) latest() *changeset {
	if len(s.sets) == 0 {
		return nil
	}
	return s.sets[len(s.sets)-1]
}

// at returns the changeset with an ordinal, or nil.
func (s *state) at(ordinal uint64) *changeset {
	if len(s.sets) == 0 || ordinal < s.sets[0].Ordinal || ordinal > s.latest().Ordinal {
		return nil
	}
	return s.sets[ordinal-s.sets[0].Ordinal]
}

// event is a record that a message has completed.
type event struct {
	record
	body []byte
}

// apply changes the state by the next message. It returns the record that the message
// completes, or nil. If it fails, the state is as before.
func (s *state) apply(m *message) (*event, error) {
	switch {
	case m.Kind == wish:
		s.seq, s.parts = m.seq, nil
		return nil, nil
	case s.line == 0 && m.Line != 1 && (m.Kind != Started || m.Ordinal <= 1):
		return nil, corrupt(m, "the beginning of the trail is lost")
	case s.line != 0 && m.Line != s.line+1:
		return nil, corrupt(m, "line %d follows line %d", m.Line, s.line)
	case m.Kind != Claimed && s.token != "" && m.subject != s.token:
		return nil, corrupt(m, "it is not of the last claim")
	case m.Kind == Claimed && s.token != "" && !strings.HasSuffix(s.token, "."+m.Previous):
		return nil, corrupt(m, "it claims a trail whose last claim is %q", m.Previous)
	}
	e, parts, err := s.join(m)
	if err != nil {
		return nil, err
	}
	if e != nil {
		if err := s.effect(m, e); err != nil {
			return nil, err
		}
	}
	s.seq, s.line, s.parts = m.seq, m.Line, parts
	if s.token == "" {
		s.token = m.subject
	}
	return e, nil
}

// join returns the record that m completes, or nil, and the parts that wait for more.
func (s *state) join(m *message) (*event, []*message, error) {
	if m.Parts == 0 {
		return &event{m.record, m.data}, nil, nil
	}
	parts := []*message{m}
	if m.Part > 1 {
		if len(s.parts) != m.Part-1 || s.parts[0].Kind != m.Kind || s.parts[0].Parts != m.Parts {
			return nil, nil, corrupt(m, "part %d of %d without those before it", m.Part, m.Parts)
		}
		parts = append(s.parts, m)
	}
	if m.Part < m.Parts {
		return nil, parts, nil
	}
	var body []byte
	for _, p := range parts {
		body = append(body, p.data...)
	}
	return &event{m.record, body}, nil, nil
}

// effect changes the changesets by a record.
func (s *state) effect(m *message, e *event) error {
	switch e.Kind {
	case Claimed:
		s.token, s.epoch, s.holder = m.subject, m.seq, e.Holder
		return nil
	case Started:
		return s.start(m, e)
	case Pruned:
		return s.prune(m, e)
	}
	c := s.at(e.Ordinal)
	if c == nil && e.Ordinal > 0 && (len(s.sets) > 0 && e.Ordinal < s.sets[0].Ordinal) {
		return nil // of a changeset that is pruned
	}
	if c == nil || c.ID != e.ID {
		return corrupt(m, "there is no changeset %q with ordinal %d", e.ID, e.Ordinal)
	}
	switch e.Kind {
	case Appended:
		if c.sealed || e.Len == 0 || e.First > e.Last || c.entries > 0 && e.First <= c.last {
			return corrupt(m, "its entries do not follow the ones before")
		}
		c.entries, c.last = c.entries+e.Len, e.Last
		if s.keep {
			c.appends = append(c.appends, e)
		}
	case Sealed:
		if e.Len != c.entries || e.Last != c.last {
			return corrupt(m, "changeset %q has %d entries up to seq %d, and is sealed with %d up to %d", e.ID, c.entries, c.last, e.Len, e.Last)
		}
		c.sealed = true
	case Aborted:
		c.aborted, c.reason = true, string(e.body)
	case Applied:
		c.applied = max(c.applied, e.Next)
	default:
		return corrupt(m, "unknown kind %q: a later version has written it", e.Kind)
	}
	return nil
}

func (s *state) start(m *message, e *event) error {
	latest := s.latest()
	switch {
	case latest == nil:
	case e.Ordinal == latest.Ordinal && !latest.sealed && latest.entries == 0:
		s.sets = s.sets[:len(s.sets)-1]
		delete(s.ids, latest.ID)
	case e.Ordinal != latest.Ordinal+1:
		return corrupt(m, "ordinal %d follows %d", e.Ordinal, latest.Ordinal)
	}
	c := &changeset{Header: cowchangeset.Header{ID: e.ID, Ordinal: e.Ordinal, Previous: e.Previous}, start: m.seq}
	s.sets = append(s.sets, c)
	s.ids[c.ID] = c
	return nil
}

func (s *state) prune(m *message, e *event) error {
	if len(s.sets) == 0 || e.Next > s.latest().Ordinal {
		return corrupt(m, "it prunes changesets that there are not")
	}
	s.first = max(s.first, e.Next)
	n := 0
	for s.sets[n].Ordinal < s.first {
		delete(s.ids, s.sets[n].ID)
		n++
	}
	s.sets = slices.Delete(s.sets, 0, n)
	return nil
}

// whole returns an error if the beginning of the trail is missing, as far as s knows:
// the record of the prune that has purged it may follow.
func (s *state) whole() error {
	if len(s.sets) > 0 && s.sets[0].Ordinal > s.first {
		return fmt.Errorf("%w: the trail begins with changeset number %d, and should with %d", ErrCorrupt, s.sets[0].Ordinal, s.first)
	}
	return nil
}

// corrupt returns an ErrCorrupt about a message.
func corrupt(m *message, format string, args ...any) error {
	return fmt.Errorf("%w: message %d: %s", ErrCorrupt, m.seq, fmt.Sprintf(format, args...))
}
