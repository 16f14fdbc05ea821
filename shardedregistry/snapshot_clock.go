package shardedregistry

import "slices"

// scans says which snapshots are being taken. It is immutable: to change it,
// replace it.
//
// A cut is an instant between the changes that a snapshot contains and those
// that it does not. The clock counts them; cut c is the instant at which the
// clock became c. What is dated t happened before the cuts above t, and after
// the others.
type scans struct {
	clock  uint64   // starts at 1: the date 0 means long ago
	takers int      // snapshots that are being taken
	cuts   []uint64 // of those takers that have made theirs
}

// now returns s, or what nil stands for.
func (s *scans) now() scans {
	if s == nil {
		return scans{clock: 1}
	}
	return *s
}

// idle reports whether no snapshot is being taken.
func (s *scans) idle() bool { return s == nil || s.takers == 0 }

// joined adds a taker.
func (s scans) joined() scans {
	s.takers++
	return s
}

// advanced makes a cut for a taker, in place of its old one (0: none).
func (s scans) advanced(old uint64) scans {
	s.clock++
	s.cuts = append(s.without(old), s.clock)
	return s
}

// left removes a taker and its cut.
func (s scans) left(cut uint64) scans {
	s.takers--
	s.cuts = s.without(cut)
	return s
}

func (s scans) without(cut uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(s.cuts), func(c uint64) bool { return c == cut })
}

// need reports whether a taker needs what was current from date since on, until
// something dated until replaced it.
func (s scans) need(since, until uint64) bool {
	return slices.ContainsFunc(s.cuts, func(c uint64) bool { return since < c && c <= until })
}

// scan replaces scans by change of it, and returns the new state. It is retried
// only when another taker has replaced it meanwhile.
func (o *root[K]) scan(change func(scans) scans) scans {
	for {
		old := o.scans.Load()
		next := change(old.now())
		if o.scans.CompareAndSwap(old, &next) {
			return next
		}
	}
}
