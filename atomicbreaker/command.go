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
		next := w.trip(s, c.open, now)
		if w.mode() == open && w.openPending(s, now) && next.openLeft(now) <= w.openLeft(now) {
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

// command makes the word obey. It returns the word that then was there, and
// whether it was written. A tombstone is returned as it is.
//
// A CAS fails only when another caller's has succeeded.
func (c *core) command(m command) (did step) {
	for forgot := false; ; {
		was := word(c.word.Load())
		w := was.living()
		if w.mode() == tombstone {
			did.to = w
			return did
		}
		s := c.settings() // after the word, as in admit
		if !forgot {
			if owed, _, again := c.forget(was, w, s); again {
				forgot = !c.deliveredUpTo(w)
				did.add(owed, w.mode() != closed)
				continue
			}
		}
		if m.all && w.pristine() {
			did.to = w
			return did
		}
		x := change{why: m.why}
		var now time.Duration
		if m.mode == open {
			now, x.at = s.clock()
		}
		if x.next = m.next(w, s, now); x.next == w {
			if w.mode() == halfOpen && word(c.word.Load()) != was {
				continue // the core may have been touched for a later word, and this was forgotten
			}
			// LP(Trip, HalfOpen, ForceOpen, Disable): so it is when the word is read.
			did.to = w
			return did
		}
		if x.acquired = s.quota != nil && !w.out() && x.next.out(); x.acquired {
			s.quota.acquire(0) // opened by hand, it is not bounded
		}
		if x.next.mode() == halfOpen {
			c.notePeriod(was, x.next)
			if c.owner != nil {
				c.touch(s.now(), 0)
			}
		}
		// LP(Reset, Trip, HalfOpen, ForceOpen, Disable): this CAS.
		owed, ok := c.swap(s, was, w, &x)
		if did.add(owed, ok); ok {
			did.to = x.next
			return did
		}
	}
}

func toReset() command               { return command{why: ReasonReset, mode: closed} }
func toTrip(d time.Duration) command { return command{why: ReasonTrip, mode: open, open: d} }
func toHalfOpen() command            { return command{why: ReasonHalfOpen, mode: halfOpen} }
func toForceOpen() command           { return command{why: ReasonForceOpen, mode: forcedOpen} }
func toDisable() command             { return command{why: ReasonDisable, mode: disabled} }

// Reset closes the breaker, also a ForcedOpen or Disabled one, and clears its failures.
// Results of calls admitted before are Late.
//
// Reset is lock-free. It takes effect by one CAS.
func (b *Breaker) Reset() { b.core.command(toReset()).owed.deliver() }

// Trip opens the breaker for d, at most Config.MaxOpenTimeout, and adds to the streak. Zero
// means as long as a failure would, a negative d until Reset. A breaker that is open for longer
// stays as it is.
//
// Trip is lock-free. It takes effect by one CAS or load.
func (b *Breaker) Trip(d time.Duration) { b.core.command(toTrip(d)).owed.deliver() }

// HalfOpen lets probes through, whatever the state was. Results of calls admitted before
// are Late. A half-open breaker stays as it is.
//
// HalfOpen is lock-free. It takes effect by one CAS or load.
func (b *Breaker) HalfOpen() { b.core.command(toHalfOpen()).owed.deliver() }

// ForceOpen rejects all calls, probes too, until Reset, Trip or HalfOpen. Results of calls
// admitted before are Late.
//
// ForceOpen is lock-free. It takes effect by one CAS or load.
func (b *Breaker) ForceOpen() { b.core.command(toForceOpen()).owed.deliver() }

// Disable lets all calls through and counts none of them, until Reset, Trip, HalfOpen or
// ForceOpen. The verdict on their results is Counted.
//
// Disable is lock-free. It takes effect by one CAS or load.
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

// Reset is Breaker.Reset for k.
//
// Reset is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) Reset(k K) { g.command(k, toReset()) }

// Trip is Breaker.Trip for k.
//
// Trip is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) Trip(k K, d time.Duration) { g.command(k, toTrip(d)) }

// HalfOpen is Breaker.HalfOpen for k.
//
// HalfOpen is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) HalfOpen(k K) { g.command(k, toHalfOpen()) }

// ForceOpen is Breaker.ForceOpen for k, until ResetAll too.
//
// ForceOpen is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) ForceOpen(k K) { g.command(k, toForceOpen()) }

// Disable is Breaker.Disable for k, until ResetAll too.
//
// Disable is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) Disable(k K) { g.command(k, toDisable()) }
