package registry

import "sync"

// maxTombs bounds the deletions that are remembered; half as many always are. A write of a key that was deleted
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
}

// tombs is what the mirror knows of keys that it does not show. The mirror's goroutine
// alone changes it.
type tombs[K ~string] struct {
	mu sync.RWMutex
	// Foreign values, the last deletions, and those before. A key is in one of them.
	foreign, young, old map[K]tomb
}

func (t *tombs[K]) init() { t.foreign, t.young = make(map[K]tomb), make(map[K]tomb) }

func (t *tombs[K]) get(k K) (tomb, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, of := range t.all() {
		if b, ok := of[k]; ok {
			return b, true
		}
	}
	return tomb{}, false
}

func (t *tombs[K]) all() [3]map[K]tomb { return [3]map[K]tomb{t.foreign, t.young, t.old} }

func (t *tombs[K]) set(k K, b tomb) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.all() {
		delete(of, k)
	}
	if b.foreign {
		t.foreign[k] = b
		return
	}
	if len(t.young) >= maxTombs/2 {
		t.young, t.old = make(map[K]tomb), t.young
	}
	t.young[k] = b
}

func (t *tombs[K]) remove(k K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.all() {
		delete(of, k)
	}
}

// len returns how many deletions and foreign values there are.
func (t *tombs[K]) len() (deletions, foreign int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.young) + len(t.old), len(t.foreign)
}

// unlisted makes tombs of keys that the bucket has nothing of those of a deletion without
// a marker, and forgets foreign values.
func (t *tombs[K]) unlisted(listed func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.foreign {
		if !listed(k) {
			delete(t.foreign, k)
		}
	}
	for _, of := range [2]map[K]tomb{t.young, t.old} {
		for k, b := range of {
			if !listed(k) {
				b.expect = 0
				of[k] = b
			}
		}
	}
}
