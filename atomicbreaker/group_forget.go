package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// Whatever meets a key that nobody has called for ForgetAfter finds it healthy; DESIGN.md
// says how. A closed cell is retired: if its word were cleared in place, it could become the
// same again, and a stopped caller would clear failures that came later.

// stale reports whether the failures of a closed word and its windows no longer
// matter: they are forgotten, or there are only windows that are empty. It reads the
// clock after the word, so it misses nothing that was counted before.
func (c *core) stale(w word, s *settings) bool {
	now := s.now()
	if s.forgetAfter != 0 && c.idle(now) >= s.forgetAfter {
		return true
	}
	return w == w.flagged() && (len(s.rules.windows) == 0 || c.quiet(w.stay(), now))
}

// retireStale retires a closed cell that is stale by the settings, and reports whether it
// has. They are those by which the caller has found it so, or they might disagree for ever.
//
// First it marks the word, unless it is marked. That is when its failures in a row are
// forgotten. Then it looks again, as others may have counted something bad; DESIGN.md says
// why nothing of that is lost.
func (c *cell[K]) retireStale(was word, s *settings) bool {
	w := was.living()
	if !c.stale(w, s) {
		return false
	}
	mark := was // of another caller, who may have stopped
	if was.mode() != leaving {
		mark = w.stay() | leaving<<modeShift | word(c.group.marks.Add(1)&payloadMask)
		if !c.word.CompareAndSwap(uint64(was), uint64(mark)) || !c.stale(w, s) {
			return false // it may stay marked: all take it for closed
		}
	}
	return c.retire(mark)
}

// reclaim sweeps for places of the open quota that belong to forgotten keys, after one
// more key could not open: at most 64 times while a key is being forgotten.
func (g *group[K]) reclaim() {
	const times = 64 // while a key is being forgotten; a sweep looks at all cells
	s := g.set.Load().shared
	if s.forgetAfter == 0 {
		return
	}
	now, at := s.now(), g.reclaimAt.Load()
	next := int64(now + s.forgetAfter/times)
	if int64(now) < at && at <= next { // later than next is of an Update that has made it shorter
		return
	}
	if g.reclaimAt.CompareAndSwap(at, next) {
		g.sweep()
	}
}

// Sweeps remove the keys that no result removes: keys that are forgotten, and keys
// whose failures are in windows, once these are empty.

// sweepGrown sweeps after the number of cells has doubled since the last time, to at, unless
// another caller does. Every insert pays for at most two cells that are looked at.
func (g *group[K]) sweepGrown(at int64) {
	if !g.sweepAt.CompareAndSwap(at, sweeping) {
		return
	}
	defer func() { g.sweepAt.Store(max(firstSweep, 2*g.linked.Load())) }() // also if a listener panics
	g.sweep()
}

// Sweep removes the keys that have nothing left in their windows and those that are past
// ForgetAfter, and returns their number; of two calls at once, both may count a key. The
// listener gets an event for each that was not closed.
//
// Sweep is blocking on one bucket's mutex at a time, within that on the group's, and on the
// listener. It takes effect for each key by one CAS.
func (g *Group[K]) Sweep() int { return g.current().sweep() }

// sweep removes the cells that are of no use and returns their number.
func (g *group[K]) sweep() (n int) {
	forEach(g.stored(), func(c *cell[K]) {
		if c.sweep() {
			n++
		}
	})
	return n
}

// sweep removes a cell that is forgotten, or has nothing left in its windows, and
// reports whether it has. It also removes pristine ones that another caller is about
// to remove. It delivers the event of one that was not closed.
func (c *cell[K]) sweep() bool {
	was, s := word(c.word.Load()), c.set.Load()
	w := was.living()
	switch {
	case w.mode() == tombstone:
		return false
	case w.pristine():
		return c.retire(w)
	case w.mode() == closed:
		return c.retireStale(was, s)
	}
	owed, _, did := c.forget(w, w, s)
	if !did {
		return false
	}
	owed.deliver()
	c.retire(w.close(s))
	return word(c.word.Load()).mode() == tombstone // the caller that delivered may have retired it, or the listener kept it
}

// departures of keys void the permits for absent keys, which have no cell whose generation
// could. A permit has their number from when its key was absent. DESIGN.md has the proof.
type departures struct {
	// count is how many keys have departed. It only goes up, under mu.
	count atomics.Uint64

	// void is the count that the last ResetAll set: all permits from before are void.
	// Written under mu, before count.
	void atomics.Uint64

	mu atomics.Mutex

	// recent has the hashes of the last keys that departed, the n-th at n % keptDepartures.
	// Nil before the first. A hash is stored, under mu, before count says so.
	recent atomics.Pointer[[keptDepartures]atomics.Uint64]
}

// keptDepartures is how many departures a permit for an absent key stays good for. A
// call would have to last while thousands of keys recover for its failure to be dropped.
const keptDepartures = 1 << 12

// add makes a key with this hash depart, and returns the number of its departure.
func (d *departures) add(hash uint64) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	recent := d.recent.Load()
	if recent == nil {
		recent = new([keptDepartures]atomics.Uint64)
		d.recent.Store(recent)
	}
	n := d.count.Load() + 1
	recent[n%keptDepartures].Store(hash)
	d.count.Store(n)
	return n
}

// addAll makes all keys depart, and returns the number of that.
func (d *departures) addAll() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.count.Load() + keptDepartures
	d.void.Store(n)
	d.count.Store(n)
	return n
}

// departed reports whether a key with this hash has departed after since, or may have,
// so long ago that its hash is gone. It looks no further than the last departure
// at its start.
//
// Two keys with the same 64-bit hash are taken for one. Then a failure that
// came with a departure of the other key is dropped.
func (d *departures) departed(since, hash uint64) bool {
	last := d.count.Load()
	if last-since >= keptDepartures {
		return true
	}
	for n := since + 1; n <= last; n++ {
		if d.recent.Load()[n%keptDepartures].Load() == hash {
			return true
		}
	}
	// The hashes were not replaced meanwhile if there is still room.
	return d.count.Load()-since >= keptDepartures
}
