package shardedregistry

// DeleteFunc deletes the keys for which del returns true, and returns how many it
// has deleted. It deletes a key only if that still holds the value that del was
// given. If another operation has changed the key meanwhile, it asks del again,
// about the new value.
//
// Like a loop over All it does not see one moment of the registry: it asks
// about every key that is present throughout, and may ask about a key that is
// created or deleted meanwhile. If del panics or calls runtime.Goexit, what was
// deleted before is gone and nothing else has changed. To stop early, or to
// decide by versions, loop over Entries and call DeleteIf.
//
// Del runs outside every lock on the caller's goroutine. It must not modify what
// its arguments refer to, and may use the registry. If del changes a key each time
// it is asked about it, DeleteFunc leaves that key alone after a million times.
//
// DeleteFunc panics if del is nil.
//
// DeleteFunc is blocking on the mutex of one hash bucket at a time; with
// indexes or TTL, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the key's last record
// is stored, or, if it stays, when what del was given was read.
func (r *Registry[K, V]) DeleteFunc(del func(K, V) bool) (deleted int) {
	if del == nil {
		panic("shardedregistry: DeleteFunc called with a nil function")
	}
	rt := r.root.Load()
	if rt == nil {
		return 0
	}
	rt.visit(func(k hkey[K], c *cell[K, V], _ *record[K, V]) bool {
		// The error of retry says that del keeps changing k, which then stays.
		_ = retry(0, func() (done bool, _ error) {
			// LP(DeleteFunc), a key that stays: the record is read. If another operation has
			// deleted k since del was asked, what it holds now does not matter.
			rec := rt.live(c.cleared(c.rec.Load()))
			if rec == nil || !del(k.Key, rec.value) {
				return true, nil
			}
			// LP(DeleteFunc): the dead record is stored.
			if !rt.kill(k, c, rec) {
				return false, nil
			}
			deleted++
			return true, nil
		})
		return true
	})
	return deleted
}
