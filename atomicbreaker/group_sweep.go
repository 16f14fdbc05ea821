package atomicbreaker

// Sweeps remove the keys that no result removes: keys that are forgotten, and keys
// whose failures are in windows, once these are empty.

// maybeSweep sweeps if the number of cells has doubled since the last time.
// Every insert pays for at most two cells that are looked at.
func (gs *groupState) maybeSweep() {
	at := gs.sweepAt.Load()
	if gs.count() < at || !gs.sweepAt.CompareAndSwap(at, sweeping) {
		return
	}
	defer func() { gs.sweepAt.Store(max(firstSweep, 2*gs.count())) }() // also if a listener panics
	gs.sweep()
}

// sweep removes the cells that are of no use and returns their number. If a
// listener does not return, the same goroutine goes on while it unwinds.
func (gs *groupState) sweep() (n int) {
	orElse(func() {
		for c := range gs.keyOps.all {
			if gs.sweepCell(c) {
				n++
			}
		}
	}, func() { gs.sweep() })
	return n
}

// sweepCell removes a cell that is forgotten, or has nothing left in its windows, and
// reports whether it has. It also removes pristine ones that another caller is about
// to remove.
func (gs *groupState) sweepCell(c *cell) bool {
	was := word(c.word.Load())
	w := was.living()
	switch {
	case w.mode() == tombstone:
		gs.remove(c)
	case w.pristine():
		return gs.retire(c, w)
	case w.mode() == closed:
		return gs.markLeaving(c, was, gs.cellSettingsWithoutPerKey(&c.core))
	default:
		return gs.sweepForgotten(c, w)
	}
	return false
}

// Sweep removes two kinds of keys, and returns their number: keys that have nothing
// left in their windows, and keys that nobody has called for GroupConfig.ForgetAfter.
// The listener gets an event for each of them that was not closed. Other keys stay.
//
// Sweep is blocking on the mutex of one bucket at a time, and on the listener. It
// takes effect for each key by the CAS that closes or retires it.
func (g *Group[K]) Sweep() int { return g.current().sweep() }
