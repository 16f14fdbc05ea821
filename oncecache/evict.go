package oncecache

// evictAll removes entries that are doomed or have expired, all of them before any is
// closed, and returns how many it was that did.
func (r *root[K]) evictAll(out []*sieveNode[K]) (evicted int) {
	var free []*entry[K]
	for _, n := range out {
		removed, closes := r.evict(n.entry)
		if removed {
			evicted++
		}
		if closes {
			free = append(free, n.entry)
		}
	}
	r.later(free)
	return evicted
}

// evict removes an entry that is doomed or has expired, unless another call has, and reports
// whether its value is to be closed then.
func (r *root[K]) evict(e *entry[K]) (removed, closes bool) {
	if !r.remove(e) {
		return false, false
	}
	p := r.leave(e)
	why := whyEvicted
	switch {
	case p.place == nil || e.mark().isExpired(): // it is counted already
	case e.mark().isIdle():
		why = whyIdle
		r.accounting.idled.Add(1)
	default:
		r.accounting.evicted.Add(1)
	}
	return true, r.release(e, p, why)
}

// helpEvict evicts e, which is doomed or has expired, for the call that has said so. It is
// apart from root, so that only New brings evict into a program.
func (*sieve[K]) helpEvict(r *root[K], e *entry[K]) {
	if _, closes := r.evict(e); closes {
		r.close.closeOneLater(r, e)
	}
}

// Sweep removes the values that no caller has used for Config.IdleTimeout, and the
// kept errors whose time is over, and returns their number. It need not be called:
// with an IdleTimeout a timer does this too, and each error that is kept removes up to
// 64 that are over. The values are closed on goroutines of the cache.
//
// Sweep is blocking on the mutex of one bucket at a time, on that of the errors
// and, with an IdleTimeout, on that of the order of the entries and on another
// Sweep. It takes effect for each key when the entry is removed.
func (c *Cache[K, V]) Sweep() int { return c.sweep() }

func (c *core[K]) sweep() int {
	r := c.root.Load()
	if r == nil {
		return 0
	}
	return r.sweep() // LP(Sweep)
}

func (r *root[K]) sweep() (removed int) {
	if r.sieve != nil {
		removed = r.sieve.sweepPlaces(r)
	}
	if r.kept != nil {
		for {
			some, more := r.kept.expireErrors(r)
			removed += some
			if !more {
				break
			}
		}
	}
	return removed
}
