package shardedregistry

// creates reports whether the intent was put into the table with its cell.
func (it *rewriteIntent[K]) creates() bool { return it.old == nil || it.old.dead() }

// each calls f for each key that was changed. It hashes many keys before it calls f for the first,
// so that the processor can wait for many of them at once, as in collector.observe.
func (rw *rewriting[K]) each(f func(k hkey[K], it *rewriteIntent[K])) {
	var (
		its  [lookAhead]*rewriteIntent[K]
		keys [lookAhead]hkey[K]
	)
	for from := 0; from < len(rw.cells); from += lookAhead {
		n := 0
		for i := from; i < min(from+lookAhead, len(rw.cells)); i++ {
			if it := rw.cells[i].won.Load(); it != nil {
				its[n], keys[n].Key = it, it.cell.key
				n++
			}
		}
		for i := range n {
			keys[i] = rw.root.rehashed(keys[i].Key)
		}
		for i := range n {
			f(keys[i], its[i])
		}
	}
	for i := range rw.keys {
		f(rw.to.keys[i].key, rw.keys[i].won.Load())
	}
}

// conclude withdraws the intents of a rewriting that has committed, and does for each key
// what is left to do when its record was stored. It returns how many keys were deleted.
func (rw *rewriting[K]) conclude() (deleted int) {
	rt := rw.root
	rw.each(func(k hkey[K], it *rewriteIntent[K]) {
		k.Key = it.cell.key
		rw.withdraw(it)
		if it.next.dead() {
			deleted++
			rt.shard(k.Hash).live.Add(-1)
			rt.bury(k, it.cell, it.old, it.next)
			return
		}
		rt.changed(k, it.cell, nil, it.next)
		if rt.constraints != nil {
			rt.constraints.unpin(k, it.old.indexKeys(), nil) // all: prepare has pinned the key anew
		}
	})
	return deleted
}
