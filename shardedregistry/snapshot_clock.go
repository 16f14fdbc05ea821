package shardedregistry

import "slices"

// snapshotClock says which snapshots are being taken. It is immutable: to change it,
// replace it.
//
// A cut is an instant between the changes that a snapshot contains and those
// that it does not. The clock counts them; cut c is the instant at which the
// clock became c. What is dated t happened before the cuts above t, and after
// the others.
type snapshotClock struct {
	time       uint64   // starts at 1: the date 0 means long ago
	collectors int      // snapshots that are being taken
	cuts       []uint64 // of those collectors that have made theirs
}

// now returns s, or what nil stands for.
func (sc *snapshotClock) now() snapshotClock {
	if sc == nil {
		return snapshotClock{time: 1}
	}
	return *sc
}

// idle reports whether no snapshot is being taken.
func (sc *snapshotClock) idle() bool { return sc == nil || sc.collectors == 0 }

// joined adds a collector.
func (sc snapshotClock) joined() snapshotClock {
	sc.collectors++
	return sc
}

// advanced makes a cut for a collector, in place of its old one (0: none).
func (sc snapshotClock) advanced(old uint64) snapshotClock {
	sc.time++
	sc.cuts = append(sc.without(old), sc.time)
	return sc
}

// left removes a collector and its cut.
func (sc snapshotClock) left(cut uint64) snapshotClock {
	sc.collectors--
	sc.cuts = sc.without(cut)
	return sc
}

func (sc snapshotClock) without(cut uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(sc.cuts), func(c uint64) bool { return c == cut })
}

// need reports whether a collector needs what was current from date since on, until
// something dated until replaced it.
func (sc snapshotClock) need(since, until uint64) bool {
	return slices.ContainsFunc(sc.cuts, func(c uint64) bool { return since < c && c <= until })
}

// updateClock replaces the clock by change of it, and returns the new state. It is retried
// only when another collector has replaced it meanwhile.
func (rt *root[K]) updateClock(change func(snapshotClock) snapshotClock) snapshotClock {
	for {
		old := rt.clock.Load()
		next := change(old.now())
		if rt.clock.CompareAndSwap(old, &next) {
			return next
		}
	}
}
