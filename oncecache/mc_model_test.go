//go:build modelcheck

package oncecache_test

import (
	"fmt"

	"github.com/latchfree/latchfree/oncecache"
)

// sequential is what a cache does for one key, one event at a time.
type sequential struct {
	ready   bool
	value   int
	current *flight          // in flight and not forgotten
	calls   map[*int]*flight // what they take part in
}

// flight is what those who take part in a creation get, once it is over.
type flight struct {
	over bool
	got  string
}

// begin reports whether the call creates.
func (s *sequential) begin(id *int) (creates bool) {
	switch {
	case s.ready:
		s.calls[id] = &flight{true, outcome(s.value, nil)}
		return false
	case s.current == nil:
		s.current, creates = new(flight), true
	}
	s.calls[id] = s.current
	return creates
}

// end returns what the call gets. Within says that the create function of the
// same key makes it.
func (s *sequential) end(id *int, v int, how ending, within bool) string {
	f := s.calls[id]
	if !f.over && how == joined {
		if within {
			return outcome(0, &oncecache.CycleError{Path: []any{key, key}})
		}
		return "must wait"
	}
	if !f.over {
		*f = flight{true, how.shared(v)}
		if s.current == f {
			s.current = nil
			if how == inValue {
				s.ready, s.value = true, v
			}
		}
	}
	switch how {
	case inPanic:
		return fmt.Sprint("panics ", errRefused)
	case inGoexit:
		return "exits"
	}
	return f.got
}

func (s *sequential) get() string { return found(s.value, s.ready) }

func (s *sequential) set(v int) (old int, replaced bool) {
	if s.current != nil {
		*s.current = flight{true, outcome(v, nil)}
	}
	old, replaced = s.remove()
	s.ready, s.value = true, v
	return old, replaced
}

func (s *sequential) setIfAbsent(v int) bool {
	if s.ready || s.current != nil {
		return false
	}
	s.ready, s.value = true, v
	return true
}

func (s *sequential) remove() (old int, deleted bool) {
	old, deleted = s.value, s.ready
	*s = sequential{calls: s.calls}
	return old, deleted
}

func (s *sequential) compareAndDelete(v int) bool {
	if !s.ready || s.value != v {
		return false
	}
	s.remove()
	return true
}
