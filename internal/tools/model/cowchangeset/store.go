package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	cc "github.com/latchfree/latchfree/cowchangeset"
)

// Store is a cowchangeset.Store in memory, which fails when it is told to, and
// notes whatever a tracker must not tell it.
type Store struct {
	mu       sync.Mutex
	Sets     []*cc.Saved[int] // by ordinal
	Mistakes []string

	// Fail is the method that fails, Late whether it has done its work then, and
	// Times how often.
	Fail  string
	Late  bool
	Times int
}

// ErrStore is how the store fails.
var ErrStore = errors.New("store fails")

func (s *Store) call(method string, do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fails := s.Times > 0 && s.Fail == method
	if fails {
		s.Times--
	}
	if !fails || s.Late {
		do()
	}
	if fails {
		return ErrStore
	}
	return nil
}

func (s *Store) mistake(format string, args ...any) {
	s.Mistakes = append(s.Mistakes, fmt.Sprintf(format, args...))
}

// Set returns a copy of what the store has of a changeset, or nil.
func (s *Store) Set(id string) *cc.Saved[int] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(id)
}

func (s *Store) set(id string) *cc.Saved[int] {
	for _, c := range s.Sets {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Start replaces the last one, if that has the same ordinal.
func (s *Store) Start(_ context.Context, h cc.Header) error {
	return s.call("Start", func() {
		n := len(s.Sets)
		if n > 0 && s.Sets[n-1].Ordinal == h.Ordinal {
			if len(s.Sets[n-1].Entries) > 0 {
				s.mistake("%+v replaces %+v", h, s.Sets[n-1])
			}
			n--
		}
		if n > 0 && (s.Sets[n-1].Ordinal+1 != h.Ordinal || s.Sets[n-1].ID != h.Previous) || n == 0 && h.Ordinal != 1 {
			s.mistake("%+v after %d others", h, n)
		}
		s.Sets = append(s.Sets[:n], &cc.Saved[int]{Header: h})
	})
}

func (s *Store) Append(_ context.Context, id string, entries []cc.Entry[int]) error {
	return s.call("Append", func() {
		c := s.set(id)
		if c == nil || c.Sealed || len(entries) == 0 {
			s.mistake("%v for %+v", entries, c)
			return
		}
		for _, e := range entries {
			if n := len(c.Entries); n == 0 || e.Seq > c.Entries[n-1].Seq {
				c.Entries = append(c.Entries, e)
			} else if !slices.Contains(c.Entries, e) {
				s.mistake("%v for %+v", entries, c)
			}
		}
	})
}

func (s *Store) Seal(_ context.Context, id string, m cc.Manifest) error {
	return s.call("Seal", func() {
		c := s.set(id)
		last := uint64(0)
		if n := len(c.Entries); n > 0 {
			last = c.Entries[n-1].Seq
		}
		if c.Sealed = true; m != (cc.Manifest{Len: len(c.Entries), Last: last}) {
			s.mistake("%+v for %+v", m, c)
		}
	})
}

func (s *Store) Abort(_ context.Context, id, reason string) error {
	return s.call("Abort", func() {
		c := s.set(id)
		if !c.Sealed || c.Applied == cc.AllApplied {
			s.mistake("Abort of %+v", c)
		}
		c.Aborted, c.Reason = true, reason
	})
}

func (s *Store) Applied(_ context.Context, id string, next uint64) error {
	return s.call("Applied", func() {
		c := s.set(id)
		if !c.Sealed || c.Aborted || next < c.Applied {
			s.mistake("Applied %d of %+v", next, c)
		}
		c.Applied = next
	})
}

// Prune forgets all that it may.
func (s *Store) Prune(_ context.Context, before uint64) error {
	return s.call("Prune", func() {
		for len(s.Sets) > 0 && s.Sets[0].Ordinal < before {
			if !s.Sets[0].Sealed || len(s.Sets) == 1 {
				s.mistake("Prune of %d, which has %+v", before, s.Sets[0])
			}
			s.Sets = s.Sets[1:]
		}
	})
}

func (s *Store) Load(context.Context) iter.Seq2[cc.Saved[int], error] {
	return func(yield func(cc.Saved[int], error) bool) {
		for _, c := range s.Sets {
			if !yield(*c, nil) {
				return
			}
		}
	}
}
