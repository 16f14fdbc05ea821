package shardedregistry

// transitions reports whether records have links.
func (o *root[K]) transitions() bool { return o.shut != nil }

// untold returns the oldest of rec and what it replaced that is not told, or nil
// if rec is. There are no more of them than calls that have stored and not told.
func (o *root[K]) untold(rec *record) (oldest *record) {
	for rec != nil {
		l := o.links(rec)
		if l.told.Load() != 0 {
			break
		}
		oldest, rec = rec, l.prev.Load()
	}
	return oldest
}

// hasTold notes that rec is told, and before that what is older. If rec has no
// prev, then either there is nothing older, or somebody else has noted all of it.
func (o *root[K]) hasTold(rec *record) {
	l := o.links(rec)
	if l.told.Load() != 0 {
		return
	}
	if old := l.prev.Load(); old != nil {
		o.hasTold(old)
	}
	l.told.Store(1)
}

// trim forgets what no stream needs of the chain of rec, which c holds or held,
// unless some stream needs what comes right after version since.
//
// What is older than a record is forgotten only if that is found told, and no
// stream found after that which needs more: every stream that had joined before
// the record took effect is seated by then, and one that is seated later needs
// nothing older. Before it is told somebody may be about to seat one.
func (o *root[K]) trim(c *cell[K], rec *record, since Version) {
	first := o.first(c, rec)
	if first <= since {
		return
	}
	for rec != nil && rec.version() > first {
		rec = o.links(rec).prev.Load()
	}
	if rec == nil {
		return
	}
	l := o.links(rec)
	if l.prev.Load() != nil && l.told.Load() != 0 && o.first(c, rec) == rec.version() {
		l.prev.Store(nil)
	}
}

// relax forgets what no stream needs of k any more.
func (o *root[K]) relax(k hkey[K]) {
	if c := o.cells.Load(k); c != nil {
		o.trim(c, c.rec.Load(), 0)
	}
}

// ends returns a copy of d that takes no seat any more: its cell leaves the
// table.
func (d *side[K]) ends() *side[K] {
	next := d.now()
	next.gone = true
	return &next
}

// part makes sure that no seat is added to c, which is dead and told, before it
// is unlinked, and reports whether it may be. It is retried only when a seat has
// come or gone. Without Config.Transitions whoever comes late may add one in vain.
func (o *root[K]) part(c *cell[K], dead *record) bool {
	if !o.transitions() {
		return true
	}
	for {
		now := c.side.Load()
		switch {
		case now == nil:
			if c.side.CompareAndSwap(nil, o.shut) {
				return true
			}
		case now.gone:
			return true
		case now.needed(dead):
			return false
		case c.side.CompareAndSwap(now, now.ends()):
			return true
		}
	}
}
