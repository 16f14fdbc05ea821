package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// What the tests must know to reach the rare paths.
var (
	Patience = patience()
	Proofs   = proofs()
)

// SetHash makes an empty registry hash with f.
func SetHash[K comparable, V any](r *Registry[K, V], f func(K) uint64) { r.install().hash = f }

// Shards returns the number of shards.
func Shards[K comparable, V any](r *Registry[K, V]) int { return len(r.install().shards) }

// DefaultShards returns the default number of shards for procs processors.
func DefaultShards(procs int) int { return defaultShards(procs) }

// Linked returns the number of cells in the tables, dead or alive.
func Linked[K comparable, V any](r *Registry[K, V]) (n int) {
	for i := range r.install().shards {
		if t := r.root.Load().shards[i].table.Load(); t != nil {
			n += t.Len()
		}
	}
	return n
}

// Suspects returns the number of calls that are listed as suspects.
func Suspects[K comparable, V any](r *Registry[K, V]) (n int) {
	for i := range r.install().shards {
		for p := r.root.Load().shards[i].suspects.Load(); p != nil; p = p.next {
			n++
		}
	}
	return n
}

// Kill does the first half of Delete, up to the instant at which it takes
// effect, and returns the second half.
func Kill[K comparable, V any](r *Registry[K, V], key K) (rest func()) {
	o, k, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	s := o.shard(k.hash)
	c, old := s.loadLive(k)
	dead := &record[V]{mark: old.deleted()}
	c.rec.Store(dead)
	s.live.Add(-1)
	return func() { s.unlink(k, c, dead) }
}

// Listed calls f while a suspect for key is listed, as change.prove does.
func Listed[K comparable, V any](r *Registry[K, V], key K, f func(own *bool)) {
	o, k, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	o.shard(k.hash).listed(k, f)
}

// SuspectList is a list of suspects by itself.
type SuspectList struct{ p atomics.Pointer[suspect[int]] }

// Push lists a suspect, and returns a function that reports whether it is
// listed and one that drops it.
func (l *SuspectList) Push() (listed func() bool, remove func()) {
	own := new(bool)
	push(&l.p, &suspect[int]{own: own})
	listed = func() bool {
		for p := l.p.Load(); p != nil; p = p.next {
			if p.own == own {
				return true
			}
		}
		return false
	}
	return listed, func() { drop(&l.p, own) }
}
