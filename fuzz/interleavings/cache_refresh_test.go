//go:build modelcheck

package interleavings

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// refreshing is a call of Refresh, which is a creation, of a key that has a value or none.
type refreshing struct {
	*cacheCreation
	how      creationEnding
	old      int // what its function was given
	returned interleave.Mark
	got      string
}

// cacheRefresh runs its function on the caller's goroutine.
func cacheRefresh(key, v int, how creationEnding) cacheOp {
	return cacheOp{Name: fmt.Sprintf("Refresh(%d, %d) by %v", key, v, how), Do: func(c *cacheCaller) {
		r := &refreshing{cacheCreation: &cacheCreation{key: key, called: c.Begin(), value: v, err: how.err(), refreshes: true}, how: how}
		c.Real.creations[c.Thread] = append(c.Real.creations[c.Thread], r.cacheCreation)
		r.moments(c)
		got := any(interleave.Exits)
		defer func() {
			if p := recover(); p != nil {
				got = thrown(p)
			}
			r.got, r.returned = fmt.Sprint(got), c.End()
		}()
		got = created(c.Real.Refresh(context.Background(), key, func(_ context.Context, _, old int, _ bool) (int, error) {
			r.ran, r.began, r.old = true, c.End(), old
			defer func() { r.ended = c.Begin() }()
			switch how {
			case inPanic:
				panic(errInjected)
			case inGoexit:
				runtime.Goexit()
			}
			return v, r.err
		}))
	}}
}

func (r *refreshing) moments(c *cacheCaller) {
	looks := c.Add(&cacheMoment{Op: "looks", From: r.called, Ways: c.Real.ways,
		Settle: func(m *cacheMoment) bool {
			m.To = r.returned
			return !r.ran // else it has begun when it looked
		},
		Explains: func(s *cacheModel, way int) bool { return s.look(r, way) }})
	begins := c.Add(&cacheMoment{Op: "refreshes", From: r.called, Follows: looks, Ways: 2 * c.Real.ways,
		Settle: func(m *cacheMoment) bool { // the function begins, or the call returns
			if m.To = r.returned; r.ran {
				m.To = r.began
			}
			return true
		},
		Explains: func(s *cacheModel, way int) bool {
			if way < c.Real.ways {
				return s.renew(r, way)
			}
			return s.absent[r] && s.join(r.cacheCreation, way-c.Real.ways)
		}})
	c.Add(&cacheMoment{Op: "renews", Follows: begins, Ways: 2,
		Settle: func(m *cacheMoment) bool {
			if m.From, m.To = r.ended, r.returned; r.old == 0 && c.Real.mayHaveEnded(r) {
				m.From = r.called // as asking.ends, as it has created
			}
			return r.ran
		},
		Explains: func(s *cacheModel, way int) bool {
			f := s.calls[r.cacheCreation]
			if way == 1 { // it ends beside a Set, of which it does not know yet
				if !f.Given || !c.Real.overtaken(r) {
					return false
				}
				*f = model.Flight{}
			}
			s.ends(r.cacheCreation)
			return true
		}})
	c.Add(&cacheMoment{Op: "Refresh", From: r.called, Follows: begins,
		Settle: func(m *cacheMoment) bool {
			if m.Got, m.To = r.got, r.returned; r.ran {
				m.Op += " by " + r.how.String()
			}
			return true
		},
		Explains: func(s *cacheModel, _ int) bool { return s.refreshed(r) }})
}

// look is the moment at which a Refresh looks whether there is a value. If there is none, it gets or
// creates one.
func (s *cacheModel) look(r *refreshing, way int) bool {
	m, ok := s.in(r.called.At, way)
	if m != nil {
		_, there := m.Get(r.key)
		s.absent[r] = !there
	}
	return ok
}

// renew is the moment at which a Refresh begins, or joins another creation.
func (s *cacheModel) renew(r *refreshing, way int) bool {
	m, ok := s.in(r.called.At, way)
	if m == nil {
		s.calls[r.cacheCreation] = &model.Flight{Over: true, Err: oncecache.ErrClosed}
		return ok && !r.ran
	}
	old, there := m.Get(r.key)
	f, creates := m.Renew(r.key)
	s.calls[r.cacheCreation] = f
	if creates && !r.ran { // by Close or Set, before the function was called
		return ok && (there || r.got == oncecache.ErrClosed.Error())
	}
	return ok && creates == r.ran && (!r.ran || old == r.old)
}

// mayHaveEnded reports whether an operation comes that may end a creation when the function of r ends.
func (c *sharedCache) mayHaveEnded(r *refreshing) bool {
	return slices.ContainsFunc(slices.Concat(c.ends[:]...), func(by interval) bool {
		return r.ended.At < by.to && by.from < r.returned.At
	})
}

// overtaken reports whether a Set comes when the function of r ends.
func (c *sharedCache) overtaken(r *refreshing) bool {
	return slices.ContainsFunc(slices.Concat(c.overtakers[:]...), func(by overtaker) bool {
		return by.key == r.key && r.ended.At < by.to && by.from < r.returned.At
	})
}

// refreshed reports whether a Refresh may return what it does.
func (s *cacheModel) refreshed(r *refreshing) bool {
	switch {
	case r.ran && r.how == inPanic:
		return r.got == interleave.Panics(errInjected)
	case r.ran && r.how == inGoexit:
		return r.got == interleave.Exits
	}
	return s.gets(r.cacheCreation, r.got)
}
