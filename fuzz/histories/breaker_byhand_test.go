//go:build !modelcheck

package histories_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

// commander is what can be done to a breaker by hand, beside Reset.
type commander interface {
	Trip(k string, d time.Duration)
	ForceOpen(k string)
	Disable(k string)
}

// command does something by hand, or ends a call that says for how long.
func (w *breakerClient) command(k int) {
	name, c := breakerKey(k), w.group.(commander)
	e := breakerEvent{now: w.now(), slot: w.ID}
	if e.d = -time.Duration(w.IntN(2)); !w.start.IsZero() {
		e.d = [...]time.Duration{-1, 0, breakerTick, 3 * breakerTick}[w.IntN(4)]
	}
	from := w.Now()
	switch p := w.held[name]; {
	case p != nil && w.IntN(2) == 0:
		w.held[name] = nil
		e.op = "Permit.Trip"
		e.got = p.Trip(e.d)
	case w.IntN(4) == 0:
		e.op = "Reset"
		w.group.Reset(name)
	default:
		switch w.IntN(3) {
		case 0:
			e.op = "Trip"
			c.Trip(name, e.d)
		case 1:
			e.op = "ForceOpen"
			c.ForceOpen(name)
		default:
			e.op = "Disable"
			c.Disable(name)
		}
	}
	w.Add(k, from, e)
}

// realBreaker is a Breaker as a group of one key.
type realBreaker struct{ b *ab.Breaker }

func newRealBreaker(l *breakerLimits) group { return realBreaker{ab.MustNew(l.config())} }

func (r realBreaker) Allow(string) (permit, error)    { return r.b.Allow() }
func (r realBreaker) State(string) ab.State           { return r.b.State() }
func (r realBreaker) Reset(string)                    { r.b.Reset() }
func (r realBreaker) Trip(_ string, d time.Duration)  { r.b.Trip(d) }
func (r realBreaker) ForceOpen(string)                { r.b.ForceOpen() }
func (r realBreaker) Disable(string)                  { r.b.Disable() }
func (r realBreaker) Len() int                        { return 1 }
func (r realBreaker) IsOpen(string) bool              { return r.b.IsOpen() }
func (r realBreaker) RecordSuccess(string) ab.Verdict { return r.b.RecordSuccess() }
func (r realBreaker) RecordFailure(string) ab.Verdict { return r.b.RecordFailure() }

func (r realBreaker) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	return r.b.Do(ctx, fn)
}

func (r realBreaker) All() iter.Seq2[string, ab.Snapshot] {
	return func(yield func(string, ab.Snapshot) bool) { yield(breakerKey(0), r.b.Snapshot()) }
}

func groupTrialByHand(fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
	return groupTrialBy(true, fresh)
}

func timedTrialByHand(fresh func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit] {
	return timedTrialBy(true, 2, fresh)
}

var byHandKinds = []string{
	"Trip <nil>", "ForceOpen <nil>", "Disable <nil>", "Reset <nil>", "Permit.Trip Tripped", "Permit.Trip Late", "Permit.Trip Counted",
	"State ForcedOpen", "State Disabled", "Snapshot ForcedOpen", "Snapshot Disabled", "report Counted", "report Late",
}

func TestGroupHistoriesByHand(t *testing.T) {
	cover := history.Check(t, groupTrialByHand(newGroup),
		append(byHandKinds, "record Late", "record Tripped", "record Recovered", "record Counted")...)
	cover.RequireResizes(t)
}

func TestGroupHistoriesInTimeByHand(t *testing.T) {
	// Probes, beside commands, are too rare to succeed in every run.
	history.Check(t, timedTrialByHand(newGroup), append(byHandKinds, "State HalfOpen")...)
}

func TestBreakerHistoriesInTimeByHand(t *testing.T) {
	history.Check(t, timedTrialBy(true, 1, newRealBreaker), append(byHandKinds, "State HalfOpen")...)
}

func TestBrokenBreakerHistoriesByHand(t *testing.T) {
	reject := func(name string, trial func(func(*breakerLimits) group) func(*rand.Rand) history.Trial[circuit], broken func(realGroup) group) {
		t.Run(name, func(t *testing.T) {
			history.Reject(t, trial(func(l *breakerLimits) group { return broken(newGroup(l).(realGroup)) }))
		})
	}
	reject("a success that resets what was open", groupTrialByHand, func(g realGroup) group { return overrules{g} })
	reject("a failure that trips what was half-open", timedTrialByHand, func(g realGroup) group { return tripsTrying{g} })
	reject("two permits that trip", groupTrialByHand, func(g realGroup) group { return tripsAll{g} })
}

// overrules resets what it has just seen to be open.
type overrules struct{ realGroup }

func (g overrules) RecordSuccess(k string) ab.Verdict {
	if g.State(k) != ab.Open {
		return g.realGroup.RecordSuccess(k)
	}
	runtime.Gosched()
	g.Reset(k)
	return ab.Recovered
}

// tripsTrying trips what it has just seen to be half-open.
type tripsTrying struct{ realGroup }

func (g tripsTrying) RecordFailure(k string) ab.Verdict {
	if g.State(k) != ab.HalfOpen {
		return g.realGroup.RecordFailure(k)
	}
	runtime.Gosched()
	g.Trip(k, 0)
	return ab.Tripped
}

// tripsAll tells everyone who saw the key closed that his call tripped it.
type tripsAll struct{ realGroup }

func (g tripsAll) Allow(k string) (permit, error) {
	p, err := g.realGroup.Allow(k)
	return trippingPermit{p, g, k}, err
}

type trippingPermit struct {
	permit
	group tripsAll
	key   string
}

func (p trippingPermit) Trip(d time.Duration) ab.Verdict {
	closed := p.group.State(p.key) == ab.Closed
	runtime.Gosched()
	if v := p.permit.Trip(d); v != ab.Late || !closed {
		return v
	}
	return ab.Tripped
}
