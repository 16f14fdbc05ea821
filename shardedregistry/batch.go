package shardedregistry

import (
	"errors"
	"fmt"
	"iter"
)

// KeyError is one failure of a CreateMany other than an [*ExistsError]. It says
// which key failed.
type KeyError struct {
	Key any   // as it was given
	Err error // of Create: matches ErrInvalidKey or ErrNotUnique, or is the error of Config.Check
}

// Error shows the key and why it was not created.
func (e *KeyError) Error() string { return fmt.Sprintf("%v: %v", e.Err, e.Key) }

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// CreateMany creates each key that entries yields, as Create does, and goes on
// with the next if a key cannot be created. It returns how many keys it has
// created. If there were failures, err joins one error for each, in their
// order: an [*ExistsError] for a key that is present, also if entries has
// yielded it before, and a [*KeyError] for a key that is invalid or whose value
// is rejected.
//
// Each creation is atomic; all of them together are not. Others may see some of
// the keys and not yet the rest. What was created stays if other keys fail, or
// if entries panics or calls runtime.Goexit. No lock is held while entries
// runs; it may use the registry.
//
// CreateMany panics if entries is nil.
//
// CreateMany is blocking on the mutex of one hash bucket at a time; with
// indexes or TTL, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the table stores the
// new entry, or, if the key is present, when its record is read, or, if a
// unique value is taken, when the record that has it is read.
func (r *further[K, V]) CreateMany(entries iter.Seq2[K, V]) (created int, err error) {
	return createMany(r.locate, entries)
}

// createMany runs CreateMany. Locate returns the target for a key.
func createMany[K, W comparable, V any](locate func(K) (target[W], error), entries iter.Seq2[K, V]) (created int, err error) {
	if entries == nil {
		panic("shardedregistry: CreateMany called with a nil iterator")
	}
	var failed []error
	for key, value := range entries {
		var i insertion
		t, err := locate(key)
		if err == nil {
			i = insert(&t, value) // LP(CreateMany): that of Create
			err = i.err
		}
		switch {
		case err != nil:
			failed = append(failed, &KeyError{key, err})
		case i.exists != nil:
			failed = append(failed, i.exists)
		default:
			created++
		}
	}
	return created, errors.Join(failed...)
}

// DeleteMatching deletes the keys for whose entries match returns true, and
// returns how many it has deleted. It deletes a key only if the key still holds
// the entry that match was given. If another operation has changed the key
// meanwhile, it asks match again about the new entry.
//
// Like a loop over All it does not see one moment of the registry: it asks
// about every key that is present throughout, and may ask about a key that
// comes or goes meanwhile. If match panics or calls runtime.Goexit, what was
// deleted before is gone and nothing else has changed. [Registry.DeleteFunc] is
// the form that can stop before it has asked about all keys.
//
// Match runs outside every lock on the caller's goroutine. It must not modify
// its argument, and may use the registry. If match changes a key each time it
// is asked about it, DeleteMatching leaves that key alone after some tens of
// times.
//
// DeleteMatching panics if match is nil.
//
// DeleteMatching is blocking on the mutex of one hash bucket at a time; with
// indexes or TTL, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the key's last record
// is stored, or, if it stays, when what match was given was read.
func (r *further[K, V]) DeleteMatching(match func(Entry[K, V]) bool) int {
	if match == nil {
		panic("shardedregistry: DeleteMatching called with a nil function")
	}
	rt := r.root.Load()
	if rt == nil {
		return 0
	}
	deleted, _ := rt.killMatching(func(k hkey[K], rec *record) (bool, error) { return match(entryOf[V](rt, k, rec)), nil })
	return deleted
}

// DeleteFunc is [Registry.DeleteMatching] with a function that can end it. When
// match returns an error, DeleteFunc keeps the entry that match was given,
// returns the error as it is, and asks about no further key. What was deleted
// before is gone, and counts. So match may return context.Cause(ctx) when a
// context is done, or an error of its own when enough was deleted.
//
// DeleteFunc panics if match is nil.
//
// DeleteFunc is blocking on the mutex of one hash bucket at a time; with
// indexes or TTL, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the key's last record
// is stored, or, if it stays, when what match was given was read.
func (r *further[K, V]) DeleteFunc(match func(Entry[K, V]) (bool, error)) (deleted int, err error) {
	if match == nil {
		panic("shardedregistry: DeleteFunc called with a nil function")
	}
	rt := r.root.Load()
	if rt == nil {
		return 0, nil
	}
	return rt.killMatching(func(k hkey[K], rec *record) (bool, error) { return match(entryOf[V](rt, k, rec)) })
}

// killMatching runs DeleteFunc.
func (rt *root[K]) killMatching(match func(hkey[K], *record) (bool, error)) (deleted int, err error) {
	rt.visit(func(k hkey[K], c *cell[K], _ *record) bool {
		// The error of persist says that match keeps changing k, which then stays.
		_ = rt.persist(k, 0, func() (done bool, _ error) {
			killed := false
			if done, killed, err = rt.killIf(k, c, match); killed {
				deleted++
			}
			return done, nil
		})
		return err == nil
	})
	return deleted, err
}

// killIf deletes k, whose cell is c, if its entry matches. It is done unless
// another operation has changed k in between. If that has deleted k, what k
// holds now is no matter: it was absent meanwhile. An error is that of match.
func (rt *root[K]) killIf(k hkey[K], c *cell[K], match func(hkey[K], *record) (bool, error)) (done, killed bool, err error) {
	// LP(DeleteMatching), a key that stays: the record is read.
	// LP(DeleteFunc), a key that stays: likewise.
	rec := rt.live(c.cleared(c.rec.Load()))
	if rec == nil {
		return true, false, nil
	}
	if matches, err := match(k, rec); !matches || err != nil {
		return true, false, err
	}
	// LP(DeleteMatching): the dead record is stored.
	// LP(DeleteFunc): likewise.
	killed = rt.kill(k, c, rec)
	return killed, killed, nil
}
