//go:build modelcheck

package fuzz

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// renewal is a creation of Refresh for a key that has a value.
type renewal struct {
	key, base int // the value that was there when its function began, or 0
	call      *refreshing
	flight    *model.Flight
}

// refreshing is a call of Refresh. It looks, and is then a creation or takes
// part in a renewal.
type refreshing struct {
	*cacheCreation
	how      creationEnding
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
		got = created(c.Real.Refresh(context.Background(), key, func(context.Context, int) (int, error) {
			r.ran, r.began = true, c.End()
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
	until := func(m *cacheMoment) bool { // the function begins, or the call returns
		if m.To = r.returned; r.ran {
			m.To = r.began
		}
		return true
	}
	looks := c.Add(&cacheMoment{Op: "looks", From: r.called, Ways: c.Real.ways, Settle: until,
		Explains: func(s *cacheModel, way int) bool { return s.look(r, way) }})
	begins := c.Add(&cacheMoment{Op: "refreshes", From: r.called, Follows: looks, Ways: 2 * c.Real.ways, Settle: until,
		Explains: func(s *cacheModel, way int) bool {
			if s.looked[r] && way < c.Real.ways {
				return s.renew(r, way, c.Real.overtaken)
			}
			if way >= c.Real.ways { // what it has found has gone
				if way -= c.Real.ways; !s.looked[r] {
					return false // as good as another way
				}
				s.looked[r] = false
			}
			creates, ok := s.begin(r.cacheCreation, way)
			return ok && (creates == r.ran || creates && s.renewing(r.key))
		}})
	c.Add(&cacheMoment{Op: "renews", Follows: begins,
		Settle: func(m *cacheMoment) bool {
			m.From, m.To = r.ended, r.returned
			return r.ran
		},
		Ways: 3, Explains: func(s *cacheModel, way int) bool {
			if s.looked[r] {
				s.renewed(r, way)
			}
			return way == keeps || s.closed || s.looked[r] && c.Real.overtaken(r)
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

// look is the moment at which a Refresh looks whether there is a value.
func (s *cacheModel) look(r *refreshing, way int) bool {
	m, ok := s.in(r.called.At, way)
	if m != nil {
		_, s.looked[r] = m.Get(r.key)
	}
	return ok
}

// renew is the moment at which a renewal begins, or is joined.
func (s *cacheModel) renew(r *refreshing, way int, overtaken func(*refreshing) bool) bool {
	m, ok := s.in(r.called.At, way)
	if m == nil || !r.ran {
		return ok && !r.ran
	}
	base, there := m.Get(r.key)
	if !there {
		return false // there is nothing to refresh
	}
	for _, other := range s.renewals {
		if other.key == r.key && !other.flight.Over && !overtaken(other.call) && other.base == base {
			return false
		}
	}
	s.calls[r.cacheCreation] = &model.Flight{}
	s.renewals = append(s.renewals, &renewal{r.key, base, r, s.calls[r.cacheCreation]})
	return ok
}

// overtaken reports whether a Set or a Delete comes while the function of r runs,
// or just before or after.
func (c *sharedCache) overtaken(r *refreshing) bool {
	return slices.ContainsFunc(slices.Concat(c.overtakers[:]...), func(by overtaker) bool {
		return by.key == r.key && r.called.At < by.to && by.from < r.returned.At
	})
}

// renewing reports whether a Refresh of a key is under way for which a creation
// waits.
func (s *cacheModel) renewing(key int) bool {
	return slices.ContainsFunc(s.renewals, func(r *renewal) bool { return r.key == key && !r.flight.Over })
}

// What becomes of what a renewal makes.
const (
	keeps        = iota
	returnsOther // if there is another one, which may be the old one
	returnsOwn   // which is not kept
)

// renewed is the moment at which the value of a renewal takes the place of the
// one that was there when it began, or of a creation that has waited for it, or
// finds that gone. A Close that ends the renewal keeps it from that, even if the
// old value is still there, and so does a Set or a Delete that is about to take
// effect.
func (s *cacheModel) renewed(r *refreshing, how int) {
	f := s.calls[r.cacheCreation]
	*f = model.Flight{Over: true, Err: r.err}
	if r.err != nil {
		return
	}
	f.Value = r.value
	for _, own := range s.renewals {
		now, ok := s.open.Get(r.key)
		switch {
		case own.call != r || how == returnsOwn:
		case how == keeps && (ok && now == own.base || s.open.Creates(r.key)):
			s.open.Set(r.key, r.value)
		case ok:
			f.Value = now
		}
	}
}

// refreshed reports whether a Refresh may return what it does.
func (s *cacheModel) refreshed(r *refreshing) bool {
	if r.got == oncecache.ErrClosed.Error() && s.looked[r] {
		return s.closed
	}
	switch {
	case !s.looked[r]:
		if r.ran && r.got != oncecache.ErrClosed.Error() {
			s.ends(r.cacheCreation)
		}
	case !r.ran:
		for _, other := range s.renewals {
			f := other.flight
			if other.key == r.key && f.Over && r.called.At < other.call.returned.At && r.got == fmt.Sprint(created(f.Value, f.Err)) {
				return true
			}
		}
		return false
	}
	f := s.calls[r.cacheCreation]
	switch {
	case f == nil || !f.Over:
		return s.gets(r.cacheCreation, r.got)
	case r.ran && r.how == inPanic:
		return r.got == interleave.Panics(errInjected)
	case r.ran && r.how == inGoexit:
		return r.got == interleave.Exits
	}
	return s.gets(r.cacheCreation, r.got)
}
