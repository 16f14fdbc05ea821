package shardedregistry

import (
	"errors"
	"iter"
)

// Clear deletes all keys, one after the other, and returns how many. Like a loop over
// All it does not see one moment of the registry: it deletes every key that is
// present throughout, and may miss one that is created meanwhile.
//
// Clear is blocking on the mutex of one hash bucket at a time; with indexes or TTL, and where it helps a transaction, it may block on more, see [Config]. It
// takes effect, for each key, when the key's last record is stored.
func (r *Registry[K, V]) Clear() (deleted int) {
	rt := r.root.Load()
	if rt == nil {
		return 0
	}
	rt.visit(func(k hkey[K], c *cell[K, V], _ *record[K, V]) bool {
		// LP(Clear): the dead record is stored.
		if rt.remove(k, c) != nil {
			deleted++
		}
		return true
	})
	return deleted
}

// Replace makes the registry contain the keys that entries yields, with these values,
// and no others. It first deletes the keys that entries has not yielded, and then
// stores the values, one key after the other. If entries yields a key twice, the last
// value counts.
//
// A key that is present stays as it is if equal, given its value and the one that
// entries has yielded, returns true: it keeps its version, and no loop is told. Without
// equal, if that is nil, every value is stored.
//
// Others see the registry between two keys, and what they change meanwhile may stay. To
// show a whole new state at one instant, make a new registry and store it in an
// [atomic.Pointer]; to change a few keys at one instant, use [Registry.Transact].
//
// If a key is invalid, Replace returns a [*KeyError], and nothing has changed. A key
// whose value is rejected keeps what it held, or stays absent; Replace goes on with the
// others, and returns an error that joins a [*KeyError] for each. A value of a unique
// index is taken as long as another key has it, also if that key gets another value
// later.
//
// Entries and equal run outside every lock, and may use the registry. If entries panics
// or calls runtime.Goexit, nothing has changed; if equal does, the keys that come later
// are as they were.
//
// Replace panics if entries is nil.
//
// Replace is blocking on the mutex of one hash bucket at a time; with indexes or TTL, and where it helps a transaction, it may block on more, see [Config]. It
// takes effect, for each key, when the new record or entry or the key's last record is
// stored, or, if it stays as it is, when its record is read.
func (r *Registry[K, V]) Replace(entries iter.Seq2[K, V], equal func(a, b V) bool) error {
	if entries == nil {
		panic("shardedregistry: Replace called with a nil iterator")
	}
	type entry struct {
		target[K, V]
		value V
	}
	var (
		rt      = r.install()
		wanted  []entry
		numbers = make(map[K]int, rt.len())
	)
	for key, value := range entries {
		var t target[K, V]
		if err := rt.aim(&t, key); err != nil {
			return &KeyError{key, err}
		}
		if i, twice := numbers[t.key.Key]; twice {
			wanted[i].value = value
			continue
		}
		numbers[t.key.Key] = len(wanted)
		wanted = append(wanted, entry{t, value})
	}
	rt.visit(func(k hkey[K], c *cell[K, V], _ *record[K, V]) bool {
		if _, stays := numbers[k.Key]; !stays {
			// LP(Replace), another key: the dead record is stored.
			rt.remove(k, c)
		}
		return true
	})
	var failed []error
	for i := range wanted {
		e := &wanted[i]
		// LP(Replace): that of Compute.
		if _, _, err := compute(&e.target, func(old V, exists bool) (V, ComputeOp, error) {
			if exists && equal != nil && equal(old, e.value) {
				return old, CancelOp, nil
			}
			return e.value, UpdateOp, nil
		}); err != nil {
			failed = append(failed, &KeyError{e.given, err})
		}
	}
	return errors.Join(failed...)
}
