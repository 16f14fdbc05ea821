//go:build modelcheck

package interleavings

import (
	"fmt"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// Codes from here on are what is done by hand.
const (
	firstCommand = 48
	updates      = 6
)

// decodeCommand knows what is done by hand to a key, and results that say for
// how long it is to be open.
func decodeCommand(code interleave.Code, key int) breakerOp {
	switch code.Op % 8 {
	case 0, 1:
		return breakerTrip(key, code.Arg)
	case 2:
		return breakerDoes("ForceOpen", func(b breakers) any { b.ForceOpen(breakerKeyNames[key]); return done },
			func(s *breakerModel, ticks int) any { s.at(key, ticks).ForceOpen(); return done })
	case 3:
		return breakerDoes("Disable", func(b breakers) any { b.Disable(breakerKeyNames[key]); return done },
			func(s *breakerModel, ticks int) any { s.at(key, ticks).Disable(); return done })
	case 4, 5:
		return breakerDoneTrip(code.Arg)
	case updates:
		return breakerUpdate(code.Arg)
	}
	return breakerReset(key)
}

func breakerTrip(key int, arg byte) breakerOp {
	d := adapt.TripTime(arg)
	return breakerDoes("Trip", func(b breakers) any { b.Trip(breakerKeyNames[key], d); return done },
		func(s *breakerModel, ticks int) any { s.at(key, ticks).Trip(d); return done })
}

// breakerDoneTrip ends one of the thread's permits by Trip, if it holds any.
func breakerDoneTrip(arg byte) breakerOp {
	d := adapt.TripTime(arg)
	return breakerOp{Name: fmt.Sprint("Permit.Trip ", arg), Do: func(c *breakerCaller) {
		if p := c.Real.take(c.Thread, arg/6); p != nil {
			breakerOnce(c, "Permit.Trip", func() any { return p.permit.Trip(d) },
				func(s *breakerModel, ticks int) any { return s.at(p.key, ticks).DoneTrip(s.stays[p], d) })
		}
	}}
}

// breakerUpdate gives a Breaker other settings, but for Shadow.
func breakerUpdate(arg byte) breakerOp {
	return breakerOp{Name: fmt.Sprint("Update ", arg), Do: func(c *breakerCaller) {
		settings := interleavedSettings(arg&^3, arg)
		settings.Shadow, settings.Totals = c.Real.setup.settings.Shadow, c.Real.setup.settings.Totals
		config := settings.Config()
		if c.Real.setup.listens {
			config.OnStateChange = func(e ab.Event) { c.Real.hear(breakerKeyNames[0], e) }
		}
		m := &breakerMoment{Op: "Update", From: c.Begin()}
		u := c.Real.updates.begin(settings, m.From.At)
		m.Got = fmt.Sprint(c.Real.Update(config))
		m.To = c.End()
		u.end(m.To.At)
		m.Explains = func(*breakerModel, int) bool { return m.Got == "<nil>" }
		c.Add(m)
	}}
}

// breakerUpdates are those of an execution. An operation goes by the settings
// that it finds first, whatever comes of them before it takes effect.
type breakerUpdates struct {
	n   int
	all [32]update // more than programs have operations
}

type update struct {
	settings model.Settings
	from, to int64 // zero to: it is under way
}

//go:norace
func (u *breakerUpdates) begin(s model.Settings, from int64) *update {
	u.all[u.n] = update{settings: s, from: from}
	u.n++
	return &u.all[u.n-1]
}

//go:norace
func (u *update) end(to int64) { u.to = to }

// since returns what settings a Breaker may have had at some time after from:
// its first ones, and those of all updates so far, but for what was replaced.
//
//go:norace
func (u *breakerUpdates) since(first model.Settings, from int64) (current []model.Settings) {
	all := append([]update{{settings: first, to: -1}}, u.all[:u.n]...)
	for _, a := range all {
		replaced := false
		for _, b := range all[1:] {
			replaced = replaced || a.to != 0 && a.to < b.from && b.to != 0 && b.to < from
		}
		if !replaced {
			current = append(current, a.settings)
		}
	}
	return current
}

// explains is AtSomeTime, with any of the settings that there were.
func (b *sharedBreakers) explains(m *breakerMoment, explains func(s *breakerModel, ticks int) bool) *breakerMoment {
	m.AtSomeTime(explains)
	settings, times, atSomeTime := b.updates.since(b.setup.settings, m.From.At), m.Ways, m.Explains
	m.Ways = times * len(settings)
	m.Explains = func(s *breakerModel, way int) bool {
		for _, key := range s.keys {
			key.Settings = settings[way/times]
		}
		return atSomeTime(s, way%times)
	}
	return m
}

// breakerOnce is Caller.Once by the settings that there are.
func breakerOnce(c *breakerCaller, op string, do func() any, want func(s *breakerModel, ticks int) any) {
	c.Once(op, do, want)
	m := c.Last()
	c.Real.explains(m, func(s *breakerModel, ticks int) bool { return fmt.Sprint(want(s, ticks)) == m.Got })
}

// breakerStats compares the counts, while nobody else is there.
var breakerStats = breakerOp{Name: "Stats", Do: func(c *breakerCaller) {
	breakerOnce(c, "Stats", func() any { return fmt.Sprintf("%+v", c.Real.Stats()) }, func(s *breakerModel, _ int) any {
		var all ab.Stats
		for _, key := range s.keys {
			model.Add(&all, key.Counted())
		}
		return fmt.Sprintf("%+v", all)
	})
}}

// breakerTime lets time pass, which is an operation like others.
func breakerTime(n byte) breakerOp {
	return breakerOp{Name: fmt.Sprint("Tick ", n), Do: func(c *breakerCaller) {
		for range n {
			from := c.Begin()
			c.Tick()
			c.Add(&breakerMoment{Op: "Tick", From: from, To: c.End(),
				Explains: func(s *breakerModel, _ int) bool { s.now++; return true }})
		}
	}}
}
