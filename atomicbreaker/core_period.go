package atomicbreaker

// The notes of a core, for which its word has no room. A caller makes a note before
// the CAS that makes it matter. So a caller that reads the word first and the note
// second finds the note that belongs to the word, or a newer one.
//
// A period is the time for which a breaker is half-open: one stay, and one more
// each time that overdue probes lose their slots. The result of such a probe still
// counts while the period lasts. Otherwise a breaker would never close where healthy
// calls take longer than ProbeTimeout.

// begins notes the period that a caller is about to begin; the caller has read the
// word as was. If the word has changed since, there is nothing to note.
//
// A later period is noted only after the word has changed. So if the word is
// unchanged when it is read here, a later period is noted after that, and makes the
// CAS fail.
//
// It retries only if another caller has noted a period.
func (c *core) begins(was, next word) {
	for {
		noted := c.period.Load()
		if noted == next.gen() || word(c.word.Load()) != was || c.period.CompareAndSwap(noted, next.gen()) {
			return
		}
	}
}

// overdue reports whether the probes of a stay have lost their slots in the period
// of a word. If the note is of a later period, the word is no longer the core's.
func (c *core) overdue(w, stay word) bool {
	if w.mode() != halfOpen || stay.mode() != halfOpen {
		return false
	}
	age := func(gen uint32) uint32 { return (w.gen() + genMask - gen) % genMask }
	return age(stay.gen()) <= age(c.period.Load())
}
