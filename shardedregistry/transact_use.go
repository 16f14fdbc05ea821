package shardedregistry

// use returns what the transaction knows of the key of t. If it has not used the key
// before, it reads the key.
func (tx *transaction[K]) use(t *target[K]) (u *use[K], isNew bool) {
	if u := tx.known(t.key); u != nil {
		return u, false
	}
	n := len(tx.uses)
	if n < fewUses {
		u = &tx.first[n]
	} else {
		u = new(use[K])
	}
	u.tx, u.key = tx, t.key
	u.word, u.of = intentWord, u
	u.read()
	if n == 0 {
		tx.uses = tx.begin[:0]
	}
	tx.uses = append(tx.uses, u)
	if tx.byKey != nil {
		tx.byKey[u.key.Key] = u
	}
	return u, true
}

// manyUses is from how many keys on a transaction finds them by a map.
const manyUses = 16

// known returns what the transaction knows of k, or nil if it has not used k before.
func (tx *transaction[K]) known(k hkey[K]) *use[K] {
	if len(tx.uses) >= manyUses {
		if tx.byKey == nil {
			tx.byKey = make(map[K]*use[K], 2*manyUses)
			for _, u := range tx.uses {
				tx.byKey[u.key.Key] = u
			}
		}
		return tx.byKey[k.Key]
	}
	for _, u := range tx.uses {
		if u.key == k {
			return u
		}
	}
	return nil
}

// read reads what the key holds.
func (u *use[K]) read() {
	if u.look(); u.absent {
		u.floor = u.tx.root.floor(u.key)
		u.look() // for what there is when floor is known
	}
}

func (u *use[K]) look() {
	rt := u.tx.root
	c := rt.cells.Load(u.key)
	if u.old = nil; c != nil {
		u.old = rt.held(c)
	}
	if u.absent = u.old == nil || u.old.dead(); !u.absent {
		u.cell, u.key = c, c.named(u.key.Hash)
	}
}

// floor returns the floor of the shard of k.
func (rt *root[K]) floor(k hkey[K]) Version {
	s := rt.shardAt(k.Hash).Load()
	if s == nil {
		return 0
	}
	return Version(s.floor.Load()) &^ sealedBit
}

// still reports whether there was a moment since the last key was read at which all keys
// held what the transaction has read of them.
//
// A present key has held its record from when that was read until it is found there again.
// An absent key is looked at before: if it is the only one, that is the moment. If there
// are more, each was absent throughout. Otherwise another dead record would be in its cell,
// or the floor would have been raised.
func (tx *transaction[K]) still() bool {
	absent := 0
	for _, u := range tx.uses {
		if u.absent {
			absent++
		}
	}
	for _, u := range tx.uses {
		if u.absent && !u.stillAbsent(absent > 1) {
			return false
		}
	}
	for _, u := range tx.uses {
		if !u.absent && resolved(u.cell.rec.Load()) != u.old {
			return false
		}
	}
	return true
}

// stillAbsent reports whether the key is absent, and, if throughout, was since it was read.
func (u *use[K]) stillAbsent(throughout bool) bool {
	rt := u.tx.root
	var now *record
	if c := rt.cells.Load(u.key); c != nil {
		now = rt.held(c)
	}
	if now != nil && !now.dead() {
		return false
	}
	return !throughout || now == u.old && rt.floor(u.key) == u.floor
}

// keys returns the keys that the transaction uses.
func (tx *transaction[K]) keys() []hkey[K] {
	keys := make([]hkey[K], len(tx.uses))
	for i, u := range tx.uses {
		keys[i] = u.key
	}
	return keys
}
