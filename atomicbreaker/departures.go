package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// departures of keys void the permits for absent keys, which have no cell whose generation
// could: a key departs when its cell, which has changed its mode or was reset, leaves the
// table. A permit has the number of departures from when its key was absent. DESIGN.md has
// the proof.
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

// longGone is a number of departures after which every key has departed.
const longGone = 1 << 63

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
