package shardedregistry

// commit stores what the function has stored, all or nothing. It reports whether the
// transaction is done; if not, another operation has changed one of its keys. An error is
// that of the constraints.
//
// It runs functions of the user's, and only before the first intent and the first lock,
// or when all is done.
func (tx *transaction[K, V]) commit() (done bool, err error) {
	if !tx.stores() {
		return true, nil // LP(Transact), nothing to store: the last key was read
	}
	if err := tx.prepare(); err != nil {
		return true, err
	}
	tx.sort()
	var status uint32
	tx.count(1)
	if tx.root.constraints == nil {
		status = tx.decide()
	} else {
		status, err = tx.root.constraints.decide(tx)
	}
	if status != committed {
		tx.count(-1)
	}
	if status == undecided {
		return err != nil, err
	}
	for i := range tx.n() {
		tx.withdraw(tx.at(i))
	}
	if status == committed {
		tx.tell()
	}
	return status == committed, nil
}

// stores reports whether the transaction changes a key if it commits.
func (tx *transaction[K, V]) stores() bool {
	for i := range tx.n() {
		if tx.at(i).stores() {
			return true
		}
	}
	return false
}

// stores reports whether a transaction that commits changes the key.
func (u *use[K, V]) stores() bool { return u.written() && (u.next != nil || !u.absent()) }

// creates reports whether a transaction that commits creates the key.
func (u *use[K, V]) creates() bool { return u.absent() && u.next != nil }

// before returns what the key held that the transaction replaces, or nil if it was absent.
func (u *use[K, V]) before() *record[K, V] {
	if u.absent() {
		return nil // and old is set by those that help
	}
	return u.old
}

// prepare completes what is to be stored, and the cells for the keys that were absent.
//
// Whether a snapshot is being taken is asked once, after all keys were read: as in kill, a
// plain record deletes only what was there before any collector joined that might miss it.
func (tx *transaction[K, V]) prepare() error {
	rt := tx.root
	if rt.snapshotting() {
		tx.flags |= isDated
	}
	dated := tx.has(isDated)
	for i := range tx.n() {
		u := tx.at(i)
		var (
			before = u.before()
			m      word
		)
		if u.absent() {
			u.cell.rec.Store(&u.record)
		} else if u.written() {
			rt.recall(tx.key(u), u.cell, u.old)
			m = u.old.changed()
			if u.next == nil {
				u.next = rt.tombstone(dated, u.old)
				continue
			}
		}
		if u.next == nil {
			continue
		}
		if dated {
			u.next = extend[K, V](true, u.next.value)
		}
		if rt.isPlain(u.next) {
			u.next.word = m
		} else if err := rt.prepare(tx.key(u), u.next, before, m); err != nil {
			return err
		}
	}
	return nil
}

// count adds n to the counter of live cells for each key that is created.
func (tx *transaction[K, V]) count(n int64) {
	if tx.absent == 0 {
		return
	}
	for i := range tx.n() {
		u := tx.at(i)
		if u.creates() {
			tx.root.installShard(u.order()).live.Add(n)
		}
	}
}

// tell does what is left to do for each key when the transaction has committed and no
// intent of it is in a cell: what others do when they have stored one record.
func (tx *transaction[K, V]) tell() {
	rt := tx.root
	if tx.replaces() && rt.subscribers.Load() == nil {
		return // as in replace
	}
	for i := range tx.n() {
		u := tx.at(i)
		switch {
		case u.next == nil:
		case u.next.dead():
			rt.shard(u.order()).live.Add(-1)
			rt.bury(tx.key(u), u.cell, u.before(), u.next)
		default:
			rt.changed(tx.key(u), u.cell, u.before(), u.next)
		}
	}
}

// replaces reports whether the transaction has stored nothing but plain records in place of
// others.
func (tx *transaction[K, V]) replaces() bool {
	if !tx.root.plain || tx.has(isDated) || tx.absent > 0 {
		return false
	}
	for i := range tx.n() {
		if next := tx.at(i).next; next != nil && next.dead() {
			return false
		}
	}
	return true
}
