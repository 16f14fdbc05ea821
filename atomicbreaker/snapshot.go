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
	left     time.Duration // of the open time; latched if it never ends
	settings *settings     // nil for a zero core
	core     *core         // nil for an absent key
}

// read observes the core without changing it. It takes at most two loads of
// the word, so it is wait-free.
func (c *core) read() view {
	w := word(c.word.Load()).living()
	v := view{word: w, settings: c.set.Load(), core: c, state: w.state()}
	if w.mode() != open && (w.mode() != halfOpen || v.settings.forgetAfter == 0) {
		// LP(State): such a word is seen by the first load.
		if w.mode() == forcedOpen {
			v.left = latched
		}
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
	case v.state == ForcedOpen:
		v.left = latched
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
	Failures   int           // while closed: in a row, or with a KOfN among the last calls; while half-open: of probes
	Streak     int           // times opened since last closed, up to 31
	Successes  int           // of probes, while half-open
	InFlight   int           // probes that have a slot, while half-open
	Generation int           // counts changes; after 2^20-1 comes 1
	RetryAfter time.Duration // until a probe may be made, while open; math.MaxInt64 if only Reset helps

	// Window has the counts of the first windows that count failures of calls, and slow
	// calls, while closed. Calls is 0 with only a FailureCount.
	Window Counts `json:",omitzero"`
}

func (c *core) snapshotOf(v *view) Snapshot {
	for v.forgets() && c.forgotten(v.word, v.settings, v.settings.now()) {
		// LP(Snapshot): this load. While the word is the same, its key is forgotten.
		if word(c.word.Load()).living() == v.word {
			v.word = v.word.stay()
			return v.snapshot()
		}
		*v = c.read()
	}
	s := v.snapshot()
	s.Window = c.counts(v.word, v.settings)
	return s
}

// forgets reports whether a word is a closed one that may be forgotten.
func (v *view) forgets() bool {
	return v.word.mode() == closed && v.word != v.word.stay() && v.settings.forgetAfter != 0
}

func (v *view) snapshot() Snapshot {
	failures := v.failures() // may read the core again
	s := Snapshot{State: v.doing(), Would: v.state, Generation: int(v.word.gen()), RetryAfter: unending(v.left)}
	if v.settings != nil {
		s.Name = v.settings.name
	}
	switch v.word.mode() {
	case closed:
		s.Failures = failures
	case open:
		s.Streak = v.word.streak()
	case halfOpen:
		s.Streak, s.Successes, s.Failures, s.InFlight = v.word.streak(), v.word.ok(), v.word.failed(), v.word.inflight()
	}
	return s
}

// LogValue returns the fields that are not zero, and the state, as a group.
func (s Snapshot) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 12)
	if s.Name != "" {
		attrs = append(attrs, slog.String("name", s.Name))
	}
	attrs = append(attrs, slog.String("state", s.State.String()))
	if s.Would != s.State {
		attrs = append(attrs, slog.String("would", s.Would.String()))
	}
	attrs = appendCounts(attrs, []count{
		{"failures", s.Failures}, {"successes", s.Successes}, {"in_flight", s.InFlight},
		{"streak", s.Streak}, {"generation", s.Generation},
		{"window_calls", s.Window.Calls}, {"window_failures", s.Window.Failures}, {"window_slow", s.Window.Slow},
	})
	if s.RetryAfter != 0 {
		attrs = append(attrs, slog.Duration("retry_after", s.RetryAfter))
	}
	return slog.GroupValue(attrs...)
}

// unending returns an open time as users see it.
func unending(d time.Duration) time.Duration {
	if d == latched {
		return math.MaxInt64
	}
	return d
}
