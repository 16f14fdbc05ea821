package shardedregistry

// transitions reports whether records have links.
func (rt *root[K]) transitions() bool { return rt.shut != nil }

// oldestUnpublished returns the oldest of rec and what it replaced that is not told, or nil
// if rec is. There are no more of them than calls that have stored and not told.
func (rt *root[K]) oldestUnpublished(rec *record) (oldest *record) {
	for rec != nil {
		l := rt.history(rec)
		if l.published.Load() != 0 {
			break
		}
		oldest, rec = rec, l.prev.Load()
	}
	return oldest
}

// markPublished notes that rec is told, and before that what is older. If rec has no
// prev, then either there is nothing older, or somebody else has noted all of it.
func (rt *root[K]) markPublished(rec *record) {
	l := rt.history(rec)
	if l.published.Load() != 0 {
		return
	}
	if old := l.prev.Load(); old != nil {
		rt.markPublished(old)
	}
	l.published.Store(1)
}

// trim forgets what no stream needs of the chain of rec, which c holds or held,
// unless some stream needs what comes right after version since.
//
// What is older than a record is forgotten only if that is found told, and no
// stream found after that which needs more: every stream that had joined before
// the record took effect is subscribed by then, and one that is subscribed later needs
// nothing older. Before it is told somebody may be about to subscribe one.
func (rt *root[K]) trim(c *cell[K], rec *record, since Version) {
	first := rt.first(c, rec)
	if first <= since {
		return
	}
	for rec != nil && rec.version() > first {
		rec = rt.history(rec).prev.Load()
	}
	if rec == nil {
		return
	}
	l := rt.history(rec)
	if l.prev.Load() != nil && l.published.Load() != 0 && rt.first(c, rec) == rec.version() {
		l.prev.Store(nil)
	}
}

// relax forgets what no stream needs of k any more.
func (rt *root[K]) relax(k hkey[K]) {
	if c := rt.cells.Load(k); c != nil {
		rt.trim(c, c.rec.Load(), 0)
	}
}

// ends returns a copy of d that takes no subscription any more: its cell leaves the
// table.
func (m *cellMeta[K]) ends() *cellMeta[K] {
	next := m.now()
	next.gone = true
	return &next
}

// closeCell makes sure that no subscription is added to c, which is dead and told, before it
// is unlinked, and reports whether it may be. It is retried only when a subscription has
// come or gone. Without Config.Transitions whoever comes late may add one in vain.
func (rt *root[K]) closeCell(c *cell[K], dead *record) bool {
	if !rt.transitions() {
		return true
	}
	for {
		now := c.meta.Load()
		switch {
		case now == nil:
			if c.meta.CompareAndSwap(nil, rt.shut) {
				return true
			}
		case now.gone:
			return true
		case now.needed(dead):
			return false
		case c.meta.CompareAndSwap(now, now.ends()):
			return true
		}
	}
}
