package registry

import "sync"

// maxTombs bounds the deletions that are remembered. A write of a key that was deleted
// before needs one request more, and an event of a loop that comes to it later has no
// version.
const maxTombs = 1 << 14

// tomb is what the mirror knows of a key that it does not show.
type tomb struct {
	revision uint64 // from this one on the key is absent
	expect   uint64 // the revision that a write must expect: 0 if the bucket has nothing of the key
	stamp    int64
	expired  bool // deleted because its time to live was over
	foreign  bool // not deleted: its value cannot be decoded
	slot     int  // where the ring has it, unless it is foreign
}

// tombs is what the mirror knows of keys that it does not show. The mirror's goroutine
// alone changes it.
type tombs[K ~string] struct {
	mu   sync.RWMutex
	of   map[K]tomb
	ring []K // the keys of deletions, in the order in which they came, with repetitions
	next int
}

func (t *tombs[K]) init() { t.of = make(map[K]tomb) }

func (t *tombs[K]) get(k K) (tomb, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	b, ok := t.of[k]
	return b, ok
}

func (t *tombs[K]) set(k K, b tomb) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, had := t.of[k]
	switch {
	case b.foreign:
	case had && !was.foreign:
		b.slot = was.slot
	case len(t.ring) < maxTombs:
		b.slot = len(t.ring)
		t.ring = append(t.ring, k)
	default:
		b.slot = t.next
		old := t.ring[t.next]
		if o, ok := t.of[old]; ok && !o.foreign && o.slot == t.next { // and was not deleted again later
			delete(t.of, old)
		}
		t.ring[t.next] = k
		t.next = (t.next + 1) % maxTombs
	}
	t.of[k] = b
}

func (t *tombs[K]) remove(k K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, k)
}

func (t *tombs[K]) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.of)
}

// foreigners returns how many keys have a value that cannot be decoded.
func (t *tombs[K]) foreigners() (n int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, b := range t.of {
		if b.foreign {
			n++
		}
	}
	return n
}

// unlisted makes tombs of keys that the bucket has nothing of those of a deletion without
// a marker, and forgets foreign values.
func (t *tombs[K]) unlisted(listed func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, b := range t.of {
		switch {
		case listed(k):
		case b.foreign: // the ring does not have it
			delete(t.of, k)
		default:
			b.expect = 0
			t.of[k] = b
		}
	}
}
