package atomicbreaker

import (
	"log/slog"
	"math"
	"time"
)

// A view is a word as the clock shows it.
type view struct {
	word     word
	state    State
	left     time.Duration // of the open time of an open word
	settings *settings     // nil for a zero core
}

// read observes the core without changing it. It takes at most two loads of
// the word, so it is wait-free.
func (c *core) read() view {
	w := word(c.word.Load()).living()
	v := view{word: w, settings: c.set.Load(), state: w.state()}
	if w.mode() != open && (w.mode() != halfOpen || v.settings.forgetAfter == 0) {
		// LP(State): such a word is seen by the first load.
		return v
	}
	now := v.settings.now()
	switch forgotten := c.forgotten(w, v.settings, now); {
	case w.mode() == open && w.openPending(v.settings, now):
		// LP(State): an open breaker is seen by the first load; its deadline
		// was still ahead later, when the clock was read.
		v.left = w.openLeft(now)
		return v
	case forgotten:
		w = w.close(v.settings)
	}
	// The time may have passed only after someone had changed the breaker, and the core
	// may have been touched for a later word.
	// LP(State): a second load decides. The same word has been there while the
	// clock was read. Another one was written meanwhile. If it is open and its
	// time has passed too, it was written before the clock was read; if not, that
	// may have been later.
	first := v.word
	v.word = word(c.word.Load()).living()
	v.state = v.word.state()
	switch {
	case v.word == first && w != first:
		v.word, v.state = w, Closed
	case v.word == first, v.state == Open && v.word.openOver(now):
		v.state = HalfOpen
	case v.state == Open:
		v.left = v.word.openLeft(now)
	}
	return v
}

// doing returns the state that users see.
func (v *view) doing() State {
	if v.settings != nil && v.settings.shadow {
		return Shadow
	}
	return v.state
}

// State returns how the breaker would treat a call now: one whose open time has passed is
// half-open, even before its first probe.
//
// State is wait-free. It takes effect by one load.
func (b *Breaker) State() State {
	v := b.core.read()
	return v.doing()
}

// Snapshot returns the state and its details. They are of one moment, except for the counts of
// windows and what Update changes meanwhile.
//
// Snapshot is wait-free; lock-free with a KOfN. It takes effect by
// one load.
func (b *Breaker) Snapshot() Snapshot {
	v := b.core.read()
	return b.core.snapshotOf(&v)
}

// Snapshot shows a breaker at one moment.
type Snapshot struct {
	Name       string        // Config.Name
	State      State         // as State returns it
	Would      State         // State without Config.Shadow
	Failures   int           // while closed: in a row, if a policy needs that, or with a KOfN among the last calls; while half-open: of probes
	Streak     int           // times opened since last closed, ForcedOpen or Disabled, up to 31
	Successes  int           // of probes, while half-open
	InFlight   int           // probes that have a slot, while half-open
	Generation int           // counts changes; after 2^20-1 comes 1
	RetryAfter time.Duration // until a probe may be made, while open; math.MaxInt64 if only Reset helps

	// Window has the counts of the first windows that count failures of calls, and slow
	// calls, while closed. Calls is 0 with only a FailureCount. With two windows it is that of the one
	// with more, so that rates are exact only if both are as long.
	Window Counts `json:",omitzero"`
}

// snapshotOf reads the core again if the word has changed while its key was forgotten, or the
// log read.
func (c *core) snapshotOf(v *view) Snapshot {
	failures := 0
	for v.word.mode() == closed && !v.word.pristine() {
		forgotten := v.settings.forgetAfter != 0 && c.forgotten(v.word, v.settings, v.settings.now())
		failures = c.failures(v.word, v.settings, false)
		if !forgotten && v.word&logged == 0 {
			break
		}
		// LP(Snapshot): this load. While the word is the same, its key is forgotten, or it is
		// what the log says of it.
		if word(c.word.Load()).living() == v.word {
			if forgotten {
				return v.snapshot(0)
			}
			break
		}
		*v, failures = c.read(), 0
	}
	s := v.snapshot(failures)
	s.Window = c.counts(v.word, v.settings)
	return s
}

// snapshot returns what does not depend on windows, with the failures of a closed word.
func (v *view) snapshot(failures int) Snapshot {
	s := Snapshot{State: v.doing(), Would: v.state, Failures: failures, Streak: v.word.streak(), Generation: int(v.word.gen()), RetryAfter: v.left}
	if v.settings != nil {
		s.Name = v.settings.name
	}
	switch v.word.mode() {
	case halfOpen:
		s.Successes, s.Failures, s.InFlight = v.word.ok(), v.word.failed(), v.word.inflight()
	case forcedOpen:
		s.RetryAfter = math.MaxInt64
	}
	return s
}

// LogValue returns the fields that are not zero, and the state, as a group.
func (s Snapshot) LogValue() slog.Value {
	would := s.Would.String()
	if s.Would == s.State {
		would = ""
	}
	return logGroup(
		slog.String("name", s.Name),
		slog.String("state", s.State.String()),
		slog.String("would", would),
		slog.Int("failures", s.Failures),
		slog.Int("successes", s.Successes),
		slog.Int("in_flight", s.InFlight),
		slog.Int("streak", s.Streak),
		slog.Int("generation", s.Generation),
		slog.Int("window_calls", s.Window.Calls),
		slog.Int("window_failures", s.Window.Failures),
		slog.Int("window_slow", s.Window.Slow),
		slog.Duration("retry_after", s.RetryAfter),
	)
}
