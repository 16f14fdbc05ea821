package breaker

import (
	"sync"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// opened are the keys that a hint has opened here and that have not changed since. The
// follower adds them, and the listener of the local group, which is told of all changes of
// a key in their order, removes them. A generation alone would not do: it begins again when
// a key has left the group.
type opened[K ~string] struct {
	mu      sync.Mutex
	keys    map[K]*opening
	sweepAt int // how many keys make open look for those whose time has passed
}

// opening is one of them.
type opening struct {
	until      time.Time // when it ends by itself
	told       bool      // the listener was told of one change
	generation uint64    // that began with that
}

func (o *opened[K]) init() { o.keys, o.sweepAt = make(map[K]*opening), firstSweep }

// expect says that a hint is about to open k until then.
func (o *opened[K]) expect(k K, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.keys) >= o.sweepAt {
		now := time.Now()
		for k, x := range o.keys {
			if !now.Before(x.until) {
				delete(o.keys, k)
			}
		}
		o.sweepAt = max(firstSweep, 2*len(o.keys))
	}
	o.keys[k] = &opening{until: until}
}

// forget says that no hint has opened k.
func (o *opened[K]) forget(k K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.keys, k)
}

// changed notes a change of k, of which the listener is told.
func (o *opened[K]) changed(k K, e atomicbreaker.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch x := o.keys[k]; {
	case x == nil:
	case x.told: // it was opened by the change before, or this one is not of the hint
		delete(o.keys, k)
	default:
		x.told, x.generation = true, e.Generation
	}
}

// generation returns the generation that a hint has begun when it opened k, and whether k
// has not changed since, as far as the listener was told. If that is the generation of k, the
// listener was told of all changes. Then the one that it was told of since expect is that of
// the hint.
func (o *opened[K]) generation(k K) (int, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.keys[k]
	if x == nil || !x.told {
		return 0, false
	}
	return int((x.generation-1)%lastGeneration) + 1, true
}

// lastGeneration is the generation of a Snapshot after which 1 comes. An Event counts on.
const lastGeneration = 1<<20 - 1
