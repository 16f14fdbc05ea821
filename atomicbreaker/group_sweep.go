package atomicbreaker

import "time"

// How keys leave that no result removes: idle ones, and those whose failures
// lie in windows until nothing is left of them.

// maybeSweep sweeps if the number of cells has doubled since the last time.
// Every insert pays for at most two cells that are looked at.
func (b *pages) maybeSweep() {
	at := b.sweepAt.Load()
	if b.count() < at || !b.sweepAt.CompareAndSwap(at, sweeping) {
		return
	}
	defer func() { b.sweepAt.Store(max(firstSweep, 2*b.count())) }() // also if a listener panics
	b.sweep()
}

// sweep removes the cells that are of no use and returns their number. If a
// listener does not return, the same goroutine goes on while it unwinds.
func (b *pages) sweep() (n int) {
	swept := false
	defer func() {
		if !swept {
			b.sweep()
		}
	}()
	now := b.now()
	for c := range b.shelf.all {
		if b.sweepCell(c, now) {
			n++
		}
	}
	swept = true
	return n
}

// sweepCell removes a cell that is idle, forgotten, or has nothing left in its
// windows, and reports whether it has.
func (b *pages) sweepCell(c *cell, now time.Duration) bool {
	was := word(c.word.Load())
	w := was.living()
	switch {
	case w.mode() == tombstone:
		b.remove(c)
	case w.pristine():
		return c.idle(now) >= b.keepsIdle() && b.retire(c, w)
	case w.mode() == closed:
		return b.leave(c, was)
	default:
		s := b.settingsHeld(c)
		return c.forgotten(w, s, s.now()) && b.forget(c, w, s)
	}
	return false
}
