package atomicbreaker

// The events of a Group with a listener. Its keys' queues are found by key,
// and exist only while they have something to deliver, so the order of events
// has to hold from one cell of a key to the next:
//
//   - A cell of the current group state is retired only when all its events have been
//     delivered.
//   - After ResetAll, a cell of the old group state is sealed: its last event, if it
//     has any, is that it was reset, and a queued event says that it is the last.
//     A caller that publishes an event of the key's next cell first seals the one
//     before. No cell of an old group state changes that was not in its table when it
//     was replaced, because an operation with a cell in hand looks at
//     groupRoot.state before it changes it.

// keyQueue is the queue of a key, or of several with the same hash: then one waits
// for the listener of another.
type keyQueue struct {
	eventQueue
	group *groupRoot
	hash  uint64
}

func (q *keyQueue) notify(c *core, e *Event) {
	c.set.Load().owner.(*groupState).keyOps.notify(cellOf(c), *e)
}

func (ks *keyedState[K]) queueHash(c *cell) uint64 { return ks.group.queueHash(ks.keyOf(c), 0) }

func (ks *keyedState[K]) notify(c *cell, e Event) {
	if tell := configOf[K](ks.group.settings()).OnStateChange; tell != nil {
		tell(ks.keyOf(c), e)
	}
}

// notified retires the cell if it was kept for its events only.
func (q *keyQueue) notified(c *core) {
	gs := c.set.Load().owner.(*groupState)
	if w := word(c.word.Load()); w.pristine() {
		gs.retire(cellOf(c), w)
	}
}

func (q *keyQueue) disposable() bool { return true }
func (q *keyQueue) dispose()         { q.group.queues.CompareAndDelete(q.hash, q) }

// push is eventQueue.push on the queue of a cell's key.
//
// It retries only if a queue was dropped.
func (gs *groupState) push(c *cell, gen uint32, e *Event) (owed *eventQueue) {
	g, hash := gs.root, gs.keyOps.queueHash(c)
	for {
		q := g.queues.Load(hash)
		if q == nil {
			q = &keyQueue{group: g, hash: hash}
			q.subscriber = q
			q, _ = g.queues.LoadOrStore(hash, q)
		}
		if owed, ok := q.push(&c.core, gen, e); ok {
			return owed
		}
		q.dispose()
	}
}

// publish makes an event of a cell known; see settings.publish.
func (gs *groupState) publish(of *core, gen uint32, e Event) (owed *eventQueue) {
	c := cellOf(of)
	owed = gs.keyOps.sealBefore(c)
	return either(owed, gs.push(c, gen, &e))
}

// either returns the queue that is not nil: all are of one key, and while one
// is held, no push on it makes anyone its holder.
func either(a, b *eventQueue) *eventQueue {
	if a != nil {
		return a
	}
	return b
}

// outdated reports whether ResetAll has replaced the group state, if that matters to
// events.
func (gs *groupState) outdated() bool { return gs.root.listens && gs.replaced() }

// deliveredUpTo reports whether the events of all stays up to that of w have been
// delivered.
func (c *core) deliveredUpTo(w word) bool { return generation(c.delivered.Load()) == w.gen() }

// waits reports whether the listener is still to be told of the stay of w.
func (c *core) waits(s *settings, w word) bool { return s.listens && !c.deliveredUpTo(w) }

// resetAllAndNotify is ResetAll with a listener.
//
// It retries only if another ResetAll has taken effect.
func (g *Group[K]) resetAllAndNotify() {
	ks := newKeyedState(g)
	for {
		old := g.state.Load()
		ks.before.Store(groupStateOf(old))
		// LP(ResetAll): this CAS. An operation that still works with the old group
		// state takes effect at the moment before it.
		if g.state.CompareAndSwap(old, &ks.presence) {
			break
		}
	}
	ks.sealAllBefore()
}

// sealAllBefore seals all cells of older group states, and delivers the event of each
// before it seals the next. So a listener that takes long for one key delays no other
// key, whose next event seals its old cell itself. If a listener does not return, the
// same goroutine goes on while it unwinds.
func (gs *groupState) sealAllBefore() {
	old := gs.before.Load()
	if old == nil {
		return
	}
	orElse(func() {
		old.sealAllBefore()
		for c := range old.keyOps.all {
			old.seal(c).deliver()
		}
	}, gs.sealAllBefore) // cells that are sealed already have no more events
	gs.before.Store(nil)
}

// sealBefore seals the cells of one key in older group states, the oldest first.
func (ks *keyedState[K]) sealBefore(next *cell) (owed *eventQueue) {
	before := ks.before.Load()
	if before == nil {
		return nil
	}
	owed = before.keyOps.sealBefore(next)
	k, old := ks.keyOf(next), keyedStateOf[K](&before.presence)
	if c := old.lookup(k, old.hash(k, 0)); c != nil {
		owed = either(owed, old.seal(c))
	}
	return owed
}

// seal makes the cell of a group state that is not current a tombstone, however many
// callers try, and makes known which generation is its last.
//
// It retries only if another transition has succeeded, which is one
// of an operation that began before the group state was replaced.
func (gs *groupState) seal(c *cell) (owed *eventQueue) {
	for {
		was := word(c.word.Load())
		w := was.living()
		if w.mode() == tombstone {
			break
		}
		s := gs.cellSettingsWithoutPerKey(&c.core)
		x := change{next: w.enter(tombstone), why: ReasonReset}
		if w.pristine() || w.mode() == closed && c.forgotten(w, s, s.now()) {
			x.next = w.stay().bury() // nothing to reset, no event
		}
		var ok bool
		if owed, ok = c.swap(s, was, w, &x); ok {
			break
		}
	}
	if w := word(c.word.Load()); !c.deliveredUpTo(w) {
		owed = either(owed, gs.push(c, w.gen(), nil))
	}
	return owed
}
