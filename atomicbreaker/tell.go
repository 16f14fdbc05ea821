package atomicbreaker

// What a Group with a listener does on top. Its keys' feeds are found by key,
// and exist only while they have something to deliver, so the order of events
// has to hold from one cell of a key to the next:
//
//   - A cell of the current book is retired only when all its events have been
//     delivered.
//   - After ResetAll, a cell of the old book is sealed: its last event, if it
//     has any, is that it was reset, and a notice says that it is the last.
//     Whoever publishes an event of the key's next cell first seals the one
//     before. No cell of an old book changes that was not in its table when it
//     was replaced, because an operation with a cell in hand looks at
//     Group.book before it changes it.

// keyFeed is the feed of a key.
type keyFeed[K comparable] struct {
	feed
	group *Group[K]
	key   K
}

func (f *keyFeed[K]) hear(e *Event) {
	if tell := f.group.settings().config.OnStateChange; tell != nil {
		tell(f.key, *e)
	}
}

// heard retires the cell if it was kept for its events only.
func (f *keyFeed[K]) heard(c *core) {
	b := c.set.Load().owner.(*book[K])
	if w := word(c.word.Load()); w.pristine() && b.keepsIdle() == 0 {
		b.retire(b.cellOf(c), w)
	}
}

func (f *keyFeed[K]) drop() bool { return true }
func (f *keyFeed[K]) dropped()   { f.group.feeds.CompareAndDelete(f.key, f) }

// push publishes n on the feed of a key.
//
// It goes round again only if a feed was dropped.
func (g *Group[K]) push(k K, n *notice) (owed *feed) {
	for {
		f := g.feeds.Load(k)
		if f == nil {
			f = &keyFeed[K]{group: g, key: k}
			f.to = f
			f, _ = g.feeds.LoadOrStore(k, f)
		}
		if owed, ok := f.tryPush(n); ok {
			return owed
		}
		f.dropped()
	}
}

// publish is owner.publish.
func (b *book[K]) publish(n *notice) (owed *feed) {
	k := b.cellOf(n.core).key
	owed = b.sealBefore(k)
	return either(owed, b.group.push(k, n))
}

// either returns the feed that is not nil: all are of one key, and while one
// is held, no push on it makes anyone its holder.
func either(a, b *feed) *feed {
	if a != nil {
		return a
	}
	return b
}

// outdated reports whether ResetAll has replaced the book, if that matters to
// events.
func (b *book[K]) outdated() bool { return b.group.hears && b.replaced() }

// toldAllUpTo reports whether the events of all stays up to that of w have been
// delivered.
func (c *core) toldAllUpTo(w word) bool { return generation(c.told.Load()) == w.gen() }

// resetAllAndTell is ResetAll with a listener.
//
// It goes round again only if another ResetAll has taken effect.
func (g *Group[K]) resetAllAndTell() {
	b := newBook(g)
	for {
		old := g.book.Load()
		b.before.Store(bookOf[K](old))
		// LP(ResetAll): this CAS. Whoever still works with the old book does so
		// on behalf of the moment before it.
		if g.book.CompareAndSwap(old, &b.absence) {
			break
		}
	}
	b.tellAllBefore()
}

// tellAllBefore seals all cells of older books, and tells of each before it
// seals the next: so a listener that takes long for one key holds up no other,
// whose next event finds that it has to seal the key's old cell itself. If a
// listener does not return, the same goroutine goes on while it unwinds.
func (b *book[K]) tellAllBefore() {
	old := b.before.Load()
	if old == nil {
		return
	}
	told := false
	defer func() {
		if !told {
			b.tellAllBefore() // what is sealed already has nothing to tell
		}
	}()
	old.tellAllBefore()
	for _, c := range old.cells.All() {
		old.seal(c).deliver()
	}
	told = true
	b.before.Store(nil)
}

// sealBefore seals the cells of one key in older books, the oldest first.
func (b *book[K]) sealBefore(k K) (owed *feed) {
	old := b.before.Load()
	if old == nil {
		return nil
	}
	owed = old.sealBefore(k)
	if c := old.lookup(k, old.hash(k, 0)); c != nil {
		owed = either(owed, old.seal(c))
	}
	return owed
}

// seal makes the cell of a book that is not current a tombstone, however many
// callers try, and makes known which generation is its last.
//
// It goes round again only if another transition has succeeded, which is one
// of an operation that began before the book was replaced.
func (b *book[K]) seal(c *cell[K]) (owed *feed) {
	for {
		was := word(c.word.Load())
		w := was.living()
		if w.mode() == tombstone {
			break
		}
		x := change{next: w.enter(tombstone), why: ReasonReset}
		if w.pristine() {
			x.next = w.bury() // nothing to reset, nothing to tell
		}
		var ok bool
		if owed, ok = c.swap(b.settingsHeld(c), was, w, x); ok {
			break
		}
	}
	if w := word(c.word.Load()); !c.toldAllUpTo(w) {
		owed = either(owed, b.group.push(c.key, &notice{core: &c.core, gen: w.gen()}))
	}
	return owed
}
