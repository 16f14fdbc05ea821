//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"math"
	"time"
)

// ruled is what a Breaker and its model can do. Time stands still, so what has
// passed has passed before. A call's permit lies in a slot until it reports.
type ruled interface {
	allow(slot int) error
	report(slot int, o Outcome) Verdict
	tripped(slot int, d time.Duration) Verdict
	trip(d time.Duration)
	halfOpen()
	forceOpen()
	disable()
	reset()
	update(Config)
	expire() // an open time; beforehand only
	look() Snapshot
	told() string  // the events; afterwards only
	stats() string // afterwards only
}

// plainly makes counters count in one stripe, so that which stripe it is takes no
// more executions. Nothing depends on it.
func plainly(l *counters) { l.stripes.Store(&[]counterStripe{{}}) }

// actual is a Breaker as ruled.
type actual struct {
	*Breaker
	permits [slots]Permit
	events  string
	last    Event
}

func (b *actual) allow(slot int) (err error) {
	b.permits[slot], err = b.Allow()
	return err
}

func (b *actual) report(slot int, o Outcome) Verdict {
	switch p := b.permits[slot]; o {
	case Success:
		return p.Success()
	case Failure:
		return p.Failure()
	default:
		return p.Cancel()
	}
}

func (b *actual) tripped(slot int, d time.Duration) Verdict { return b.permits[slot].Trip(d) }
func (b *actual) trip(d time.Duration)                      { b.Trip(d) }
func (b *actual) forceOpen()                                { b.ForceOpen() }
func (b *actual) disable()                                  { b.Disable() }
func (b *actual) halfOpen()                                 { b.HalfOpen() }
func (b *actual) reset()                                    { b.Reset() }
func (b *actual) expire()                                   { b.core.word.And(^uint64(untilMask)) }
func (b *actual) look() Snapshot                            { return b.Snapshot() }
func (b *actual) told() string                              { return b.events }
func (b *actual) stats() string                             { return fmt.Sprintf("%+v", b.Stats()) }

func (b *actual) update(c Config) {
	if b.core.set.Load().listens {
		c.OnStateChange = b.hear
	}
	if err := b.Update(c); err != nil {
		panic(err)
	}
}

// hear also notes what is wrong between one event and the next: there is one for
// each generation.
func (b *actual) hear(e Event) {
	if e.From != b.last.To || e.Generation != b.last.Generation+1 {
		b.events += fmt.Sprintf("[generation %d of %v after %d of %v] ", e.Generation, e.From, b.last.Generation, b.last.To)
	}
	b.events += showEvent(e.From, e.To, e.Reason, e.Failures, e.Successes, e.InFlight, e.Streak) + fmt.Sprint(e.OpenFor, " ")
	b.last = e
}

// rule is what a Breaker should do, one operation at a time.
type rule struct {
	settings             Config
	listens              bool
	state                State  // Open also when its time has passed
	calls                []bool // of a closed stay, true for failures, as far as they can matter
	kept                 int    // of how many calls the policy was that counted them; 0: in a row
	long                 bool   // and whether its history was long, which forgets nothing before all
	stay, streak, flying int
	ok, bad              int           // results of probes
	until                time.Duration // math.MaxInt64 is never
	stays                [slots]int    // of the permits, counted from 1
	counted              Stats
	events               string
}

// memory is how many calls a policy looks back upon, and 0 if it only counts
// failures in a row.
func memory(p Policy) (n int) {
	switch p := p.(type) {
	case lasting:
		return memory(p.Policy)
	case kOfN:
		return p.n
	case anyOf:
		in := 0
		for _, each := range p {
			n = max(n, memory(each))
			if c, ok := each.(consecutive); ok {
				in = max(in, int(c))
			}
		}
		if n > 0 {
			n = max(n, in)
		}
	}
	return n
}

// enough reports whether the last call opens a breaker.
func enough(p Policy, calls []bool) bool {
	switch p := p.(type) {
	case lasting:
		return enough(p.Policy, calls)
	case consecutive:
		return row(calls) >= int(p)
	case kOfN:
		return row(calls) > 0 && among(calls, p.n) >= p.k
	case anyOf:
		for _, each := range p {
			if enough(each, calls) {
				return true
			}
		}
	}
	return false
}

func row(calls []bool) (n int) {
	for n < len(calls) && calls[len(calls)-1-n] {
		n++
	}
	return n
}

func among(calls []bool, last int) (n int) {
	for _, failed := range calls[max(0, len(calls)-last):] {
		if failed {
			n++
		}
	}
	return n
}

func (r *rule) failures() int {
	switch {
	case r.state == HalfOpen:
		return r.bad
	case r.long && memory(r.settings.Trip) > 0 && row(r.calls) != among(r.calls, len(r.calls)):
		return among(r.calls, memory(r.settings.Trip))
	case r.kept == 0 || r.long:
		return row(r.calls)
	}
	return among(r.calls, r.kept)
}

// count adds a call.
func (r *rule) count(failed bool) {
	_, long := r.settings.Trip.(lasting)
	if !r.long && (long || r.kept != memory(r.settings.Trip)) {
		r.calls = r.calls[len(r.calls)-row(r.calls):]
	}
	r.kept, r.long = memory(r.settings.Trip), long
	r.calls = append(r.calls[:len(r.calls):len(r.calls)], failed)
	if long && among(r.calls, r.kept) == 0 {
		r.calls = nil
	}
}

func (r *rule) enter(to State, why Reason, until time.Duration) {
	streak, openFor := r.streak, time.Duration(0)
	if to == Open {
		streak++
	}
	if to == Open || to == ForcedOpen {
		openFor = until
	}
	successes, flying := 0, 0
	if r.state == HalfOpen {
		successes, flying = r.ok, r.flying
	}
	r.counted.begins(to)
	r.events += showEvent(r.state, to, why, r.failures(), successes, flying, streak) + fmt.Sprint(openFor, " ")
	if to != Open && to != HalfOpen {
		streak = 0
	}
	r.state, r.streak, r.until = to, streak, until
	r.calls, r.kept, r.long, r.ok, r.bad, r.flying = nil, 0, false, 0, 0, 0
	r.stay++
}

func (r *rule) open(why Reason, d time.Duration) {
	most := 10 * r.settings.OpenTimeout
	if r.settings.OpenTimeout == 0 {
		most = 10 * time.Minute
	}
	switch {
	case d == 0:
		d = min(most, most/10<<r.streak)
	case d < 0:
		d = math.MaxInt64
	default:
		d = min(most, d)
	}
	r.enter(Open, why, d)
}

func (r *rule) allow(slot int) error {
	var err error
	switch {
	case r.state == ForcedOpen, r.state == Open && r.until > 0:
		err = ErrOpen
	case r.state == HalfOpen && r.flying == r.settings.Probes:
		err = ErrTooManyProbes
	case r.state == Open:
		r.enter(HalfOpen, ReasonOpenTimeout, 0)
	}
	if r.stays[slot] = 0; err != nil {
		r.counted.Rejected++
		if r.settings.Shadow {
			return nil // and its result is late
		}
		return err
	}
	if r.state == HalfOpen {
		r.flying++
	}
	r.stays[slot] = 1 + r.stay
	return nil
}

func (r *rule) report(slot int, o Outcome) Verdict {
	switch {
	case r.stays[slot] != 1+r.stay:
		return r.late(slot)
	case r.state == Disabled || o == Ignored && r.state == Closed:
		return Counted
	case r.state == Closed:
		if r.count(o == Failure); enough(r.settings.Trip, r.calls) {
			r.open(ReasonThreshold, 0)
			return Tripped
		}
		return Counted
	}
	switch r.flying--; o {
	case Failure:
		r.bad++
	case Success:
		r.ok++
	default:
		return Counted
	}
	switch all, rate := r.ok+r.bad, r.settings.ProbeFailureRate; {
	case rate == 0 && r.bad > 0, rate > 0 && all >= r.settings.CloseAfter && float64(r.bad) >= rate*float64(all):
		r.open(ReasonProbeFailed, 0)
		return Tripped
	case all >= r.settings.CloseAfter:
		r.enter(Closed, ReasonRecovered, 0)
		return Recovered
	}
	return Counted
}

// late counts the report of a permit, if it is one.
func (r *rule) late(slot int) Verdict {
	if r.stays[slot] != 0 {
		r.counted.Late++
	}
	return Late
}

func (r *rule) tripped(slot int, d time.Duration) Verdict {
	if r.stays[slot] != 1+r.stay {
		return r.late(slot)
	} else if r.state == Disabled {
		return Counted
	}
	r.flying = max(0, r.flying-1) // its own result is not late
	r.bad++
	r.open(ReasonTrip, d)
	return Tripped
}

func (r *rule) trip(d time.Duration) {
	as := *r
	if as.open(ReasonTrip, d); r.state != Open || as.until > r.until {
		*r = as
	}
}

func (r *rule) set(to State, why Reason, until time.Duration) {
	if r.state != to {
		r.enter(to, why, until)
	}
}

func (r *rule) halfOpen() {
	if streak := r.streak; r.state != HalfOpen {
		r.enter(HalfOpen, ReasonHalfOpen, 0)
		r.streak = streak
	}
}

func (r *rule) forceOpen() { r.set(ForcedOpen, ReasonForceOpen, math.MaxInt64) }
func (r *rule) disable()   { r.set(Disabled, ReasonDisable, 0) }
func (r *rule) reset()     { r.enter(Closed, ReasonReset, 0) }
func (r *rule) expire()    { r.until = 0 }

func (r *rule) update(c Config) {
	c.Probes, c.CloseAfter = max(c.Probes, 1), max(c.CloseAfter, 1)
	if c.Trip == nil {
		c.Trip = Consecutive(defaultThreshold)
	}
	r.settings = c
}

func (r *rule) look() Snapshot {
	s := Snapshot{
		State: r.state, Failures: r.failures(), Streak: r.streak, Successes: r.ok, InFlight: r.flying,
		Generation: r.stay, RetryAfter: r.until,
	}
	if r.state == Open && r.until == 0 {
		s.State = HalfOpen
	}
	if s.Would = s.State; r.settings.Shadow {
		s.State = Shadow
	}
	return s
}

func (r *rule) stats() string { return fmt.Sprintf("%+v", r.counted) }

// begins counts the beginning of a stay.
func (s *Stats) begins(to State) {
	switch to {
	case Open, ForcedOpen:
		s.Opened++
	case Closed:
		s.Closed++
	}
}

func (r *rule) told() string {
	if !r.listens {
		return ""
	}
	return r.events
}
