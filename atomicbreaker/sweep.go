package atomicbreaker

import "time"

// How keys leave that no result removes: idle ones, and those whose failures
// lie in windows until nothing is left of them.

// maybeSweep sweeps if the number of cells has doubled since the last time.
// Every insert pays for at most two cells that are looked at.
func (b *book[K]) maybeSweep(cells int64) {
	at := b.sweepAt.Load()
	if cells < at || !b.lingers() || !b.sweepAt.CompareAndSwap(at, sweeping) {
		return
	}
	b.sweep()
	b.sweepAt.Store(max(firstSweep, 2*b.linked.Load()))
}

// lingers reports whether cells may stay that are healthy.
func (b *book[K]) lingers() bool {
	c := &b.group.config
	return c.IdleTimeout != 0 || c.PerKey != nil || len(b.settings.rules.windows) > 0
}

// sweep removes the cells that are idle and returns their number.
func (b *book[K]) sweep() (n int) {
	idle := b.group.config.IdleTimeout
	now := b.settings.now()
	for _, c := range b.cells.All() {
		was := word(c.word.Load())
		w := was.living()
		switch {
		case w.mode() == tombstone:
			b.remove(c)
		case w.pristine():
			if now-time.Duration(c.touched.Load()) >= idle && b.retire(c, w) {
				n++
			}
		case w == w.flagged() && w.mode() == closed && b.leave(c, was):
			n++
		}
	}
	return n
}

// leave retires a cell without failures but in windows, if there are none
// either. It reports whether it has.
//
// First it marks the word, then it looks into the windows. A caller who counts
// a failure there looks at the word afterwards. So either that is seen here, or
// the mark there, and then it is taken away, or the tombstone, and then the
// failure is counted in the key's next cell. No mark is ever the same as an
// earlier one, so that it was not taken away and made again.
func (b *book[K]) leave(c *cell[K], was word) bool {
	mark := was.living().stay() | leaving<<modeShift | word(b.marks.Add(1)&payloadMask)
	s := c.set.Load()
	if !c.word.CompareAndSwap(uint64(was), uint64(mark)) || !c.quiet(was.living().stay(), s) {
		return false // it may stay marked: all take it for closed
	}
	if b.group.config.IdleTimeout != 0 {
		// It is healthy from now on.
		if c.word.CompareAndSwap(uint64(mark), uint64(mark.living().stay())) {
			b.touch(c)
		}
		return false
	}
	return b.retire(c, mark)
}
