//go:build modelcheck

package interleavings

import (
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/oncecache"
)

type cacheMoment = interleave.Moment[*cacheModel]

// moments adds those of a, of which there is more to know when all is over.
func (a *asking) moments(c *cacheCaller) {
	for i, look := range a.looks {
		look.begins = c.Add(a.begins(c.Real.ways, i, look))
		c.Add(a.ends(i, look))
	}
	if a.as.lease && c.Real.closes {
		c.Add(a.looksAgain(c.Real.ways))
	}
	c.Add(a.returns())
}

// last returns the last look at which the function ran, or the first.
func (a *asking) last() *cacheCreation {
	for i := len(a.looks) - 1; i > 0; i-- {
		if a.looks[i].ran {
			return a.looks[i]
		}
	}
	return a.looks[0]
}

// begins is the moment of a look: before the function is called or, if it is
// not, before the call returns. A caller that left need not have looked. A batch
// has looked for all of its keys before its function is called.
func (a *asking) begins(ways, i int, look *cacheCreation) *cacheMoment {
	return &cacheMoment{Op: "creates", From: look.called,
		Settle: func(m *cacheMoment) bool {
			m.Got, m.To = fmt.Sprint(look.ran), a.returned
			if look.ran && look.began.At < m.To.At {
				m.To = look.began
			}
			if i > 0 {
				m.Follows = a.looks[i-1].begins
			}
			return look.ran || i == 0 && !a.left()
		},
		Ways: ways, Explains: func(s *cacheModel, way int) bool {
			creates, ok := s.begin(look, way)
			closed := oncecache.ErrClosed.Error()
			s.uncalled[look] = a.gone && creates
			caught := a.gone || a.got == closed || slices.Contains(a.others, closed) // by Close, before the function was called
			return ok && (creates == look.ran || creates && caught)
		}}
}

// ends is the moment at which a creation ends. If Set or Delete takes it away
// and the function ends all the same, that is before they did. If it ran on the
// caller's goroutine, and was not followed by another, that is part of what the
// call returns.
func (a *asking) ends(i int, look *cacheCreation) *cacheMoment {
	return &cacheMoment{Op: "ends", Follows: look.begins,
		Settle: func(m *cacheMoment) bool {
			if !look.ran || !a.apart() && look == a.last() {
				return false
			}
			if m.From = look.called; !a.apart() {
				m.To = a.looks[i+1].began
			}
			return true
		},
		Explains: func(s *cacheModel, _ int) bool { s.ends(look); return true }}
}

// looksAgain is the moment of a look that finds another creation than that of
// the function, or nothing.
func (a *asking) looksAgain(ways int) *cacheMoment {
	return &cacheMoment{Op: "looks again",
		Settle: func(m *cacheMoment) bool {
			last := a.last()
			m.From, m.To, m.Follows = last.called, a.returned, last.begins
			return last.ran && !a.left()
		},
		Ways: ways, Explains: func(s *cacheModel, way int) bool { return s.join(a.again, way) }}
}

// returns is the moment of what the call returns.
func (a *asking) returns() *cacheMoment {
	return &cacheMoment{Op: a.as.op,
		Settle: func(m *cacheMoment) bool {
			last := a.last()
			m.Got, m.From, m.To, m.Follows = a.got, last.called, a.returned, last.begins
			if last.ran {
				m.Op += " by " + a.how.String()
			}
			return true
		},
		Explains: func(s *cacheModel, _ int) bool {
			last := a.last()
			if a.gone {
				return s.gone(last)
			}
			own := last.ran && !a.apart()
			if a.left() {
				return a.apart() && s.cancelled[a.as.context]
			}
			if own && a.got != oncecache.ErrClosed.Error() {
				s.ends(last) // or was caught by Close
			}
			switch {
			case own && a.how == inPanic:
				return a.got == interleave.Panics(errInjected)
			case own && a.how == inGoexit:
				return a.got == interleave.Exits
			case last.ran && a.how == inPanic && a.got == interleave.Panics(created(0, last.err)):
				return s.calls[last].Over && s.calls[last].Err == last.err
			}
			return s.gets(last, a.got) || s.gets(a.again, a.got) ||
				slices.ContainsFunc(a.others, func(got string) bool { return s.gets(last, got) || s.gets(a.again, got) })
		}}
}
