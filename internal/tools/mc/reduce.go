//go:build modelcheck

package mc

// This file is the partial-order reduction: it decides which choices cannot
// matter. Step i of an execution happens before step k if i conflicts with k
// and comes earlier, or is of the same thread, or by a chain of such steps.
// Every order of the steps that keeps "happens before" ends alike.

// step is a step that was taken.
type step struct {
	pending
	thread             int   // -1: the body
	before, alsoBefore int32 // the values of its words' gates before it
	last, alsoLast     int32 // the last steps on its words before it, counted from 1; 0: none
	clock              clock // which steps happen before it, itself included
}

// clock says, for each thread, how many steps of the trace one has to take to
// include that thread's last step that happens before.
type clock [maxThreads]int32

// join makes what happens before d happen before c too.
//
//go:norace
func (m *M) join(c, d *clock) {
	for i := range m.threads { // the others have not taken a step
		c[i] = max(c[i], d[i])
	}
}

// includes reports whether step i, taken by thread, happens before.
//
//go:norace
func (c *clock) includes(i, thread int) bool { return c[thread] > int32(i) }

// lastOn returns the last step before s on a word of s, counted from 1.
//
//go:norace
func (s *step) lastOn(a access) int32 {
	if s.on.word == a.word {
		return s.last
	}
	return s.alsoLast
}

// touched is what happened to a word: the reads, the rest, and the last step of
// either, counted from 1.
type touched struct {
	reads, others clock
	last          int32
}

// settle takes the last step into account, whose outcome is known by now: it
// wakes sleeping threads, advances the clocks, and looks for earlier steps
// that it could have overtaken.
//
//go:norace
func (m *M) settle() {
	if m.settled == len(m.trace) {
		return
	}
	k := m.settled
	m.settled++
	s := &m.trace[k]
	if m.cfg.Mode != DPOR || m.free || m.script != nil || s.thread < 0 {
		return
	}
	if m.cfg.flaw != flawOversleep {
		for rest := m.sleep; rest != 0; rest &= rest - 1 {
			if t := first(rest); m.threads[t].next.conflicts(&s.pending) {
				m.sleep &^= 1 << t
			}
		}
	}
	c := &m.clocks[s.thread]
	known := *c // before this step
	s.last = m.after(c, s.on)
	s.alsoLast = m.after(c, s.also)
	c[s.thread] = int32(k + 1)
	m.publish(c, k, s.on)
	m.publish(c, k, s.also)
	s.clock = *c
	if k >= m.fresh && m.cfg.flaw != flawNoRaces {
		m.races(k, &known)
	}
}

// after orders a step after those that it conflicts with on one word. It returns
// the last step on the word, counted from 1.
//
//go:norace
func (m *M) after(c *clock, a access) int32 {
	if a.word == 0 {
		return 0
	}
	for len(m.touched) <= int(a.word) {
		m.touched = append(m.touched, touched{})
	}
	w := &m.touched[a.word]
	if a.mode != Commute {
		m.join(c, &w.others)
	}
	if a.mode != Read && m.cfg.flaw != flawReads {
		m.join(c, &w.reads)
	}
	return w.last
}

//go:norace
func (m *M) publish(c *clock, k int, a access) {
	if a.word == 0 {
		return
	}
	w := &m.touched[a.word]
	w.last = int32(k + 1)
	if a.mode == Read {
		m.join(&w.reads, c)
	} else {
		m.join(&w.others, c)
	}
}

// races finds the steps that k conflicts with and that happen before it for
// no other reason, so that k could have come first: known is what happens before
// k without them. It goes back from k, and only to steps on k's words.
//
// Where k blocks and its gate was shut, it could not have come first; then the
// race is with what shut the gate, further back.
//
//go:norace
func (m *M) races(k int, known *clock) {
	s := &m.trace[k]
	for on, also := s.last, s.alsoLast; on != 0 || also != 0; {
		at := max(on, also)
		i := int(at) - 1
		e := &m.trace[i]
		if on == at {
			on = e.lastOn(s.on)
		}
		if also == at {
			also = e.lastOn(s.also)
		}
		if known.includes(i, e.thread) || !e.conflicts(&s.pending) {
			continue
		}
		if m.cfg.flaw == flawCommute && e.on.mode == s.on.mode {
			continue
		}
		if !m.couldMove(i, k) {
			if m.cfg.flaw == flawBlindGate {
				m.join(known, &e.clock)
			}
			continue
		}
		m.reverse(i, k)
		m.join(known, &e.clock)
	}
}

// couldMove reports whether k would be enabled without i and what depends on
// i: whether a gate of it would be open.
//
//go:norace
func (m *M) couldMove(i, k int) bool {
	s := &m.trace[k]
	return !s.blocks || m.gateWithout(i, k, s.on, s.before) == s.want ||
		s.also.gate != nil && m.cfg.flaw != flawOneGate && m.gateWithout(i, k, s.also, s.alsoBefore) == s.want
}

// gateWithout returns what the gate of a word of k, which is now, would be
// without i and what depends on i: what it was before the first of these that
// is on the word. Those on the word that do not depend on i come before those
// that do, because whatever changes a gate conflicts with everything on its
// word.
//
//go:norace
func (m *M) gateWithout(i, k int, a access, now int32) int32 {
	e := &m.trace[i]
	for j := i; j < k; j++ {
		f := &m.trace[j]
		if f.on.word != a.word && f.also.word != a.word || !f.clock.includes(i, e.thread) {
			continue
		}
		if f.on.word == a.word {
			return f.before
		}
		return f.alsoBefore
	}
	return now
}

// reverse makes sure that k is tried before i. Of the steps after i, those
// that do not depend on i can all be taken without it, and then k. Any thread
// that can begin that sequence will do, and if one of them is to be explored
// at i already, nothing is missing.
//
//go:norace
func (m *M) reverse(i, k int) {
	e := &m.trace[i]
	var begun, starters uint64
	for j := i + 1; j <= k; j++ {
		s := &m.trace[j]
		if j < k && s.clock.includes(i, e.thread) || begun>>s.thread&1 == 1 {
			continue
		}
		begun |= 1 << s.thread
		if m.startsWith(i, j) {
			starters |= 1 << s.thread
		}
	}
	n := &m.stack[i]
	if starters&n.todo != 0 {
		return
	}
	if own := uint64(1) << m.trace[k].thread; starters&own != 0 {
		starters = own
	}
	n.todo |= starters & -starters
}

// startsWith reports whether step j, without i and what depends on i, could
// be the first one after i.
//
//go:norace
func (m *M) startsWith(i, j int) bool {
	e, s := &m.trace[i], &m.trace[j]
	for l := i + 1; l < j; l++ {
		f := &m.trace[l]
		if !f.clock.includes(i, e.thread) && s.clock.includes(l, f.thread) {
			return false
		}
	}
	return true
}

// flaw breaks the reduction on purpose, to test the test that guards it.
type flaw uint8

const (
	flawNone      flaw = iota
	flawNoRaces        // never reverses anything
	flawOversleep      // sleeping threads never wake
	flawBlindGate      // forgets what is behind the step that opened a gate
	flawCommute        // takes stores for commuting
	flawReads          // does not order writes after reads
	flawOneGate        // forgets that a step can have two gates
	flawOrphan         // does not order what a thread does after what started it
	flawElder          // orders what a thread does after everything before it
)
