package oncecache

import "time"

// limits says for how long the value of a create function, or of Set, is kept, and what it
// weighs; or, of an error, for how long that is kept.
type limits struct {
	until  time.Duration // when a value expires, see noLimit; until when an error is kept, zero: it is not
	weight int64         // of a value; tooHeavy: it is not kept
}

// limitsOf returns the limits of the value of e, which no key has yet. It runs user code. If
// that does not return, and the value is owned, it is closed.
func (r *root[K]) limitsOf(e *entry[K], owned bool) (l limits) {
	if r.sieve != nil {
		l = r.sieve.limitsOfValue(r, e, owned)
	}
	return l
}

// limitsAfter returns the limits after a create function for e that has returned err. It runs
// user code.
func (r *root[K]) limitsAfter(e *entry[K], err error) (l limits) {
	switch {
	case err == nil:
		return r.limitsOf(e, true)
	case r.kept != nil:
		l.until = r.kept.keptUntil(r, e.key, err)
	}
	return l
}

// limitsOfValue is root.limitsOf.
func (s *sieve[K]) limitsOfValue(r *root[K], e *entry[K], owned bool) (l limits) {
	returned := r.close == nil || !owned
	defer func() {
		if !returned {
			r.own(e.key)
			r.close.closeOneLater(r, r.copied(e)) // no longer e, which shows a failure
		}
	}()
	if l.weight = s.weightOf(e); l.weight != tooHeavy && s.lives != nil {
		l.until = s.lives.lasts(r, e)
	}
	returned = true
	return l
}
