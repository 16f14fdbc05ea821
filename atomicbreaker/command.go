package atomicbreaker

import "time"

// Commands change a breaker by hand. Each is one CAS, from any mode.

// A command is what Reset, Trip, HalfOpen, ForceOpen or Disable do to a word.
type command struct {
	why  Reason
	mode uint64
	open time.Duration // for how long, if mode is open
	all  bool          // whether it is for all keys: one that is healthy, or is forgotten now, stays as it is
}

// next returns the word after the command, which is w if that already obeys it.
func (c command) next(w word, s *settings, now time.Duration) word {
	switch {
	case c.mode == closed:
		return w.close(s)
	case c.mode == open:
		next := w.tripFor(s, c.open, now)
		if w.mode() == open && w.openPending(s, now) && !next.outlasts(w, now) {
			return w
		}
		return next
	case w.mode() == c.mode:
		return w
	case c.mode == halfOpen:
		return w.enter(halfOpen).withStreak(w.streak())
	}
	return w.enter(c.mode)
}

// outlasts reports whether an open word is open for longer than another, which
// is still open.
func (w word) outlasts(other word, now time.Duration) bool {
	switch {
	case other.until() == forever:
		return false
	case w.until() == forever:
		return true
	}
	ahead := func(w word) uint64 { return (w.until() - ticks(now, openTick)) & untilMask }
	return ahead(w) > ahead(other)
}

// command makes the word obey. It returns the word that then was there, and
// whether it was written. A tombstone is returned as it is.
//
// A CAS fails only when another caller's has succeeded.
func (c *core) command(m command) step {
	var gone step // that closed a key that was forgotten
	for forgot := false; ; {
		was := word(c.word.Load())
		w := was.living()
		if w.mode() == tombstone {
			return step{to: w, owed: gone.owed}
		}
		// They come after the word: its deadline may be further ahead than
		// those of settings that Update has replaced.
		s := c.settings()
		if !forgot {
			if owed, _, did := c.forget(was, w, s); did {
				forgot = !c.deliveredUpTo(w)
				if w.mode() != closed {
					gone = step{flags: wrote, owed: either(gone.owed, owed)}
				}
				continue
			}
		}
		if m.all && w.pristine() {
			gone.to = w
			return gone
		}
		x := change{why: m.why}
		var now time.Duration
		if m.mode == open {
			now, x.at = s.clock()
		}
		if x.next = m.next(w, s, now); x.next == w {
			// LP(Trip, HalfOpen, ForceOpen, Disable): so it is when the word is read.
			return step{to: w, owed: gone.owed}
		}
		if x.acquired = s.quota != nil && !w.out() && x.next.out(); x.acquired {
			s.quota.acquireAnyway()
		}
		if x.next.mode() == halfOpen {
			c.begins(was, x.next)
			if c.owner != nil {
				c.touch(s.now(), 0, 0)
			}
		}
		// LP(Reset, Trip, HalfOpen, ForceOpen, Disable): this CAS.
		if owed, ok := c.swap(s, was, w, &x); ok {
			return step{to: x.next, flags: wrote, owed: either(gone.owed, owed)}
		}
	}
}

func toReset() command               { return command{why: ReasonReset, mode: closed} }
func toResetAll() command            { return command{why: ReasonReset, mode: closed, all: true} }
func toTrip(d time.Duration) command { return command{why: ReasonTrip, mode: open, open: d} }
func toHalfOpen() command            { return command{why: ReasonHalfOpen, mode: halfOpen} }
func toForceOpen() command           { return command{why: ReasonForceOpen, mode: forcedOpen} }
func toDisable() command             { return command{why: ReasonDisable, mode: disabled} }

// Reset closes the breaker with no failures, also one that ForceOpen or Disable
// has set. The results of all calls admitted before are late.
//
// Reset is lock-free. It takes effect by the CAS that closes the breaker.
func (b *Breaker) Reset() { b.core.command(toReset()).owed.deliver() }

// Trip opens the breaker for d, at most Config.MaxOpenTimeout, and adds to the streak
// like a failure that opens it. Zero means the time for which such a failure would
// open it, and a negative d means until Reset. A breaker that is open stays open for
// the longer of the two times.
//
// Trip is lock-free. It takes effect by the CAS that opens the breaker, or when
// the state is read if it is open for longer already.
func (b *Breaker) Trip(d time.Duration) { b.core.command(toTrip(d)).owed.deliver() }

// HalfOpen lets probes through from now on, as if the open time had passed, whatever
// the state of the breaker was. The next results decide. The results of all calls
// admitted before are late. A breaker that is half-open already stays as it is.
//
// HalfOpen is lock-free. It takes effect by the CAS that changes the mode, or
// when the state is read if it is half-open already.
func (b *Breaker) HalfOpen() { b.core.command(toHalfOpen()).owed.deliver() }

// ForceOpen makes the breaker reject all calls until Reset, Trip or HalfOpen. No time
// passes and no probe is let through. The results of all calls admitted before
// are late.
//
// ForceOpen is lock-free. It takes effect by the CAS that opens the breaker, or
// when the state is read if it is ForcedOpen already.
func (b *Breaker) ForceOpen() { b.core.command(toForceOpen()).owed.deliver() }

// Disable makes the breaker let all calls through and count none of them, until
// Reset, Trip, HalfOpen or ForceOpen. The verdict on their results is Counted.
//
// Disable is lock-free. It takes effect by the CAS that disables the breaker,
// or when the state is read if it is Disabled already.
func (b *Breaker) Disable() { b.core.command(toDisable()).owed.deliver() }

// command makes the breaker of k obey. An absent key is inserted for a moment: its
// change and departure make earlier results late.
//
// It retries only if a cell has died.
func (g *Group[K]) command(k K, m command) {
	st := g.current()
	for h := st.hash(k, 0); ; {
		c := st.obtain(k, h, nil)
		if c == nil {
			return // not equal to itself, so there is nothing to command
		}
		if did := c.command(m); did.to.mode() != tombstone {
			c.finish(did, Counted)
			return
		}
		c.await()
	}
}

// Reset closes the breaker of k with no failures; see Breaker.Reset.
//
// Reset is lock-free, and blocking on a bucket's mutex when the key enters or
// leaves the group, or a listener is called. It takes effect by the CAS that
// closes the breaker.
func (g *Group[K]) Reset(k K) { g.command(k, toReset()) }

// Trip opens the breaker of k for d; see Breaker.Trip.
//
// Trip is lock-free, and blocking on a bucket's mutex when the key enters the
// group, or a listener is called. It takes effect like Breaker.Trip.
func (g *Group[K]) Trip(k K, d time.Duration) { g.command(k, toTrip(d)) }

// HalfOpen lets probes of k through from now on; see Breaker.HalfOpen. Then k
// counts as open for GroupConfig.MaxOpen.
//
// HalfOpen is lock-free, and blocking on a bucket's mutex when the key enters
// the group, or a listener is called. It takes effect like Breaker.HalfOpen.
func (g *Group[K]) HalfOpen(k K) { g.command(k, toHalfOpen()) }

// ForceOpen makes the breaker of k reject all calls; see Breaker.ForceOpen.
// ResetAll ends it too.
//
// ForceOpen is lock-free, and blocking on a bucket's mutex when the key enters
// the group, or a listener is called. It takes effect like Breaker.ForceOpen.
func (g *Group[K]) ForceOpen(k K) { g.command(k, toForceOpen()) }

// Disable makes the breaker of k let all calls through; see Breaker.Disable.
// ResetAll ends it too.
//
// Disable is lock-free, and blocking on a bucket's mutex when the key enters
// the group, or a listener is called. It takes effect like Breaker.Disable.
func (g *Group[K]) Disable(k K) { g.command(k, toDisable()) }
