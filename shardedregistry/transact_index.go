package shardedregistry

// decide is transaction.decide under the constraints. It pins what is to be stored before,
// and holds the locks of the unique values that keys gain. If it leaves the transaction
// undecided, no intent was stored; an error says that a value is taken.
func (cs *constraints[K, V]) decide(tx *transaction[K, V]) (status uint32, err error) {
	var (
		held  valueLockSet
		wants = make([][]indexKey, tx.n()) // of next, which its owner must not read while it is being decided
	)
	for i := range tx.n() {
		u := tx.at(i)
		wants[i] = u.next.indexKeys()
		held |= cs.locksOf(wants[i], u.before().indexKeys())
	}
	cs.lockAll(held)
	for i := range tx.n() {
		by, known := cs.rivalOf(tx, i, wants)
		if by == nil {
			continue
		}
		if known || tx.still() && tx.root.holder(by.key, by.indexKey) != nil {
			err = by.taken()
		}
		cs.unlock(held)
		return undecided, err
	}
	for i := range tx.n() {
		u := tx.at(i)
		cs.pin(tx.key(u), wants[i], u.before().indexKeys())
	}
	status = tx.decide()
	cs.unlock(held)
	if status != committed {
		for i := range tx.n() {
			u := tx.at(i)
			cs.unpin(tx.key(u), wants[i], u.before().indexKeys())
		}
	}
	return status, nil
}

// rivalOf returns a key that has a unique value which use i of the transaction gains, or
// nil, and whether that is another one that gains it in the transaction.
//
// A key that has the value and loses it in the transaction is a rival, too. Otherwise
// LookupBy could find that it has lost the value, and overlook that the other has it.
func (cs *constraints[K, V]) rivalOf(tx *transaction[K, V], i int, wants [][]indexKey) (by *rival[K, V], known bool) {
	u := tx.at(i)
	missing(wants[i], u.before().indexKeys(), func(t indexKey) {
		if !cs.indexes[t.index].unique {
			return
		}
		for j := range i {
			other := tx.at(j)
			missing(wants[j], other.before().indexKeys(), func(s indexKey) {
				if s == t {
					by, known = &rival[K, V]{cs.indexes[t.index].name, t, tx.key(other)}, true
				}
			})
		}
	})
	if by == nil {
		by = cs.rival(tx.root, wants[i], u.before().indexKeys())
	}
	return by, known
}
