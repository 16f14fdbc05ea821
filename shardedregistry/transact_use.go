package shardedregistry

// using returns what the transaction knows of key for one of the methods of Tx. If that is
// to show what the key holds, and the key is new, all that was read before must still be
// there.
func (tx *transaction[K, V]) using(method string, key K, shows bool) (u *use[K, V], err error) {
	if tx == nil || tx.root == nil || tx.has(isOver) {
		panic("shardedregistry: Tx." + method + " called outside of the function of its Transact")
	}
	if tx.root.open { // otherwise key need not be how it is stored, or cannot be compared
		u = tx.known(key)
	}
	if u == nil {
		if u, err = tx.use(key, shows); err != nil {
			return nil, err
		}
	}
	if tx.has(isConflicted) {
		panic(&conflict{tx})
	}
	return u, nil
}

// use is using for a key that need not be known.
func (tx *transaction[K, V]) use(key K, shows bool) (*use[K, V], error) {
	var k hkey[K]
	if rt := tx.root; rt.open && key == key { //nolint:staticcheck // false for NaN
		k = hkey[K]{Hash: rt.keys.Hash(key), Key: key}
	} else {
		var err error
		if k, err = rt.hashed(key); err != nil {
			return nil, err
		}
		if u := tx.known(k.Key); u != nil {
			return u, nil
		}
	}
	u := tx.add(k)
	if shows && tx.n() > 1 && !tx.still() {
		tx.flags |= isConflicted
	}
	return u, nil
}

// add reads a key that the transaction has not used before.
func (tx *transaction[K, V]) add(k hkey[K]) *use[K, V] {
	if tx.few >= fewUses {
		return tx.addMore(k)
	}
	u := &tx.first[tx.few]
	tx.read(u, k)
	tx.few++
	return u
}

// addMore is add where first is full.
func (tx *transaction[K, V]) addMore(k hkey[K]) *use[K, V] {
	rare := tx.rarely()
	if rare.all == nil {
		for i := range tx.first {
			rare.all = append(rare.all, &tx.first[i])
		}
	}
	u := new(use[K, V])
	tx.read(u, k)
	rare.all = append(rare.all, u)
	if rare.byKey != nil {
		rare.byKey[u.cell.key] = u
	}
	return u
}

// manyUses is from how many keys on a transaction finds them by a map.
const manyUses = 16

// known returns what the transaction knows of a key as it is stored, or nil if it has not
// used the key before.
func (tx *transaction[K, V]) known(key K) *use[K, V] {
	n := tx.n()
	if n >= manyUses {
		return tx.rare.known(key)
	}
	for i := n - 1; i >= 0; i-- { // the last one first, as a function often stores what it has just read
		if u := tx.at(i); u.cell.key == key {
			return u
		}
	}
	return nil
}

func (m *rareParts[K, V]) known(key K) *use[K, V] {
	if m.byKey == nil {
		m.byKey = make(map[K]*use[K, V], 2*len(m.all))
		for _, u := range m.all {
			m.byKey[u.cell.key] = u
		}
	}
	return m.byKey[key]
}

// read lets u be that of k, and reads what the key holds.
func (tx *transaction[K, V]) read(u *use[K, V], k hkey[K]) {
	u.word, u.tx = word(k.Hash)&orderBits|intentBits, tx
	u.ext, u.parts.use = &u.parts, u
	if tx.look(u, k) {
		return
	}
	floor := tx.root.floor(k.Hash)
	if tx.look(u, k) { // for what there is when floor is known
		return
	}
	u.cell = &cell[K, V]{key: k.Key}
	u.word |= absentBit
	tx.rarely().floors += floor
	tx.absent = min(tx.absent+1, 2)
}

// look reads what the key holds, and reports whether it is present.
func (tx *transaction[K, V]) look(u *use[K, V], k hkey[K]) bool {
	rt := tx.root
	if u.cell, u.old = rt.cells.Load(k), nil; u.cell == nil {
		return false
	}
	u.old = rt.held(u.cell)
	return u.old != nil && !u.old.dead()
}

// floor returns the floor of the shard of a hash.
func (rt *root[K, V]) floor(hash uint64) Version {
	s := rt.shardAt(hash).Load()
	if s == nil {
		return 0
	}
	return Version(s.floor.Load())
}

// still reports whether there was a moment since the last key was read at which all keys
// held what the transaction has read of them.
//
// A present key has held its record from when that was read until it is found there again.
// An absent key is looked at before: if it is the only one, that is the moment. If there
// are more, each was absent throughout. Otherwise another dead record would be in its cell,
// or the floor would have been raised.
//
// Floors only grow: if their sum is as it was, each is.
func (tx *transaction[K, V]) still() bool {
	if tx.absent > 0 && !tx.stillAbsent(tx.absent > 1) {
		return false
	}
	for i := range tx.n() {
		u := tx.at(i)
		if !u.absent() && !tx.stillPresent(u) {
			return false
		}
	}
	return true
}

// stillPresent reports whether the key, which was present, has what was read.
func (tx *transaction[K, V]) stillPresent(u *use[K, V]) bool {
	rec := u.cell.rec.Load()
	return rec == u.old || tx.root.resolved(rec) == u.old
}

// stillAbsent reports whether the keys that were absent are, and, if throughout, were since
// they were read.
func (tx *transaction[K, V]) stillAbsent(throughout bool) bool {
	rt, floors := tx.root, Version(0)
	for i := range tx.n() {
		u := tx.at(i)
		if !u.absent() {
			continue
		}
		var now *record[K, V]
		if c := rt.cells.Load(tx.key(u)); c != nil {
			now = rt.held(c)
		}
		if now != nil && !now.dead() {
			return false
		}
		if throughout {
			if now != u.old {
				return false
			}
			floors += rt.floor(u.order())
		}
	}
	return !throughout || floors == tx.rare.floors
}

// shown returns the record of the key that the function sees, or nil if that is absent.
func (u *use[K, V]) shown() *record[K, V] {
	switch {
	case u.written():
		return u.next
	case u.absent():
		return nil
	}
	return u.old
}

// spell notes how the key of u, which was absent, is spelled in the call that stores it.
func (tx *transaction[K, V]) spell(u *use[K, V], given K) {
	if tx.root.normalize == nil {
		return
	}
	var meta *cellMeta[K, V]
	if s := tx.root.spelling(tx.key(u), given); s != nil {
		meta = &cellMeta[K, V]{spelled: s}
	}
	u.cell.meta.Store(meta)
}
