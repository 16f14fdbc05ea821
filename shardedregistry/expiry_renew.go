package shardedregistry

import "time"

// Renew gives what key holds at a version another time to live, from now on: a longer or a
// shorter one than it has left. Zero or less means that it expires at once, and
// [math.MaxInt64] that it does not expire. The version stays, and nobody is told: no watcher
// sees that an owner is alive. If key has another version, the error is a [*ConflictError];
// if it is absent, [ErrNotFound]; if it is invalid, [ErrInvalidKey].
//
// So an owner that has created key, or has changed it, holds it as long as its calls of Renew
// with that version return no error. The next owner has a higher version, for ever. Whoever
// is shown versions by owners, such as a store that they write to, rejects all that are below
// the highest one that it has seen: then an owner that was stopped, and does not know that
// its time is over, does no harm.
//
// Renew panics if the registry is without Config.TTL.
//
// Renew is lock-free; if the new deadline comes before the time at which the timer looks at
// key next, it is blocking on a mutex, see [Config], and where key expires meanwhile, or it
// helps a transaction, on the mutex of a hash bucket. It takes effect when the deadline is
// stored, or, if key was changed or deleted meanwhile or the error is not nil, when the key's
// record is read.
func (r *Registry[K, V]) Renew(key K, version Version, ttl time.Duration) error {
	var t target[K, V]
	if err := r.install().aim(&t, key); err != nil {
		return err
	}
	return renew(&t, version, ttl)
}

// renew runs Renew.
//
// Between reading the record and storing the deadline another operation may replace or delete
// what the key holds. Then this call has taken effect when the record was read: the deadline
// of what has been replaced no longer matters. The record cannot have expired in between,
// because the timer replaces the deadline first.
func renew[K comparable, V any](t *target[K, V], version Version, ttl time.Duration) error {
	x := t.root.expiry
	if x == nil {
		panic("shardedregistry: Renew without Config.TTL")
	}
	until := x.deadline(ttl)
	for { // until no other call of Renew replaces the deadline, or the timer, in between
		// LP(Renew), absent or another version: loadIf reads the record.
		c, rec, err := t.loadIf(version)
		if err != nil {
			return err
		}
		k, l := c.named(t.key.Hash), &rec.ext.lease
		old := l.until.Load()
		if old == expired {
			killExpired(t.root, k, c, rec) // for the timer, which may have stalled
			continue
		}
		// LP(Renew): the deadline is stored.
		if l.until.CompareAndSwap(old, until) {
			x.watch(t.root, k, c, l)
			return nil
		}
	}
}
