package shardedregistry

// prepare runs Check, the index functions and TTL for what the registry is to contain, and
// pins the index keys. It returns the locks of the unique values, which it holds. An error
// says which key failed, and then nothing is pinned or held.
func (to *contentsToBe[K]) prepare(rt *root[K]) (held valueLockSet, err error) {
	cs := constraintsOf(rt)
	if cs == nil && rt.expiry == nil {
		return 0, nil
	}
	for i := range to.keys {
		k, rec := &to.keys[i], to.draft(i, false)
		if cs != nil {
			if k.indexKeys, err = rt.constraints.indexKeys(k.key.Key, rec, nil); err != nil {
				return 0, &KeyError{k.given, err}
			}
		}
		if rt.expiry != nil {
			k.ttl = rt.expiry.lifetime(k.key.Key, rec)
		}
	}
	if cs == nil {
		return 0, nil
	}
	return constrained[K]{cs}.claim(rt, to)
}

// claim pins all that a registry is to contain, and locks its unique values.
//
// A key that has a unique value and loses it to another is a rival, as in a transaction.
func (cs constrained[K]) claim(rt *root[K], to *contentsToBe[K]) (held valueLockSet, err error) {
	gains := map[indexKey]int{}
	for i := range to.keys {
		for _, t := range to.keys[i].indexKeys {
			if !cs.indexes[t.index].unique {
				continue
			}
			if other, taken := gains[t]; taken {
				by := rival[K]{cs.indexes[t.index].name, t, to.keys[other].key}
				return 0, to.rejected(i, &by)
			}
			gains[t] = i
		}
		held |= cs.locksOf(to.keys[i].indexKeys, nil)
	}
	cs.lockAll(held)
	for i := range to.keys {
		// LP(Replace), a unique value is taken: the record that has it is read.
		if by := cs.rivalOfKey(rt, &to.keys[i]); by != nil {
			cs.unlock(held)
			return 0, to.rejected(i, by)
		}
	}
	for i := range to.keys {
		cs.pin(to.keys[i].key, to.keys[i].indexKeys, nil)
	}
	return held, nil
}

// rejected returns the error for key i, which wants the value of by.
func (to *contentsToBe[K]) rejected(i int, by *rival[K]) error {
	k := &to.keys[i]
	return &KeyError{k.given, by.taken()}
}

// rivalOfKey returns a key that has a unique value of k, or nil.
func (cs constrained[K]) rivalOfKey(rt *root[K], k *keyToBe[K]) (found *rival[K]) {
	for _, t := range k.indexKeys {
		x := &cs.indexes[t.index]
		if !x.unique {
			continue
		}
		x.on(t.value).all(func(one posting[K]) bool {
			if one.key == k.key {
				return true
			}
			if c := rt.holder(one.key, t); c != nil {
				found = &rival[K]{x.name, t, c.named(one.key.Hash)}
			}
			return found == nil
		})
		if found != nil {
			break
		}
	}
	return found
}
