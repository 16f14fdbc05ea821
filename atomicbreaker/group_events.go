package atomicbreaker

import "github.com/latchfree/latchfree/internal/table"

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

// keyFeed is the feed of a key, or of several with the same hash: then one waits
// for the listener of another.
type keyFeed struct {
	feed
	group *root
	hash  uint64
}

// newFeeds returns a table of feeds by hash.
func newFeeds() *table.Table[uint64, keyFeed] {
	return table.New[uint64, keyFeed](func(hash, _ uint64) uint64 { return hash }, 0)
}

func (f *keyFeed) hear(c *core, e *Event) { c.set.Load().owner.(*pages).shelf.tell(cellOf(c), *e) }

func (b *book[K]) feedHash(c *cell) uint64 { return b.group.feedHash(b.keyOf(c), 0) }

func (b *book[K]) tell(c *cell, e Event) {
	if tell := configOf[K](b.group.settings()).OnStateChange; tell != nil {
		tell(b.keyOf(c), e)
	}
}

// heard retires the cell if it was kept for its events only.
func (f *keyFeed) heard(c *core) {
	b := c.set.Load().owner.(*pages)
	if w := word(c.word.Load()); w.pristine() && b.keepsIdle() == 0 {
		b.retire(cellOf(c), w)
	}
}

func (f *keyFeed) drop() bool { return true }
func (f *keyFeed) dropped()   { f.group.feeds.CompareAndDelete(f.hash, f) }

// push publishes n on the feed of a cell's key.
//
// It goes round again only if a feed was dropped.
func (b *pages) push(c *cell, n *notice) (owed *feed) {
	g, hash := b.of, b.shelf.feedHash(c)
	for {
		f := g.feeds.Load(hash)
		if f == nil {
			f = &keyFeed{group: g, hash: hash}
			f.to = f
			f, _ = g.feeds.LoadOrStore(hash, f)
		}
		if owed, ok := f.tryPush(n); ok {
			return owed
		}
		f.dropped()
	}
}

// publish is owner.publish.
func (b *pages) publish(n *notice) (owed *feed) {
	c := cellOf(n.core)
	owed = b.shelf.sealBefore(c)
	return either(owed, b.push(c, n))
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
func (b *pages) outdated() bool { return b.of.hears && b.replaced() }

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
		b.before.Store(pagesOf(old))
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
func (b *pages) tellAllBefore() {
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
	for c := range old.shelf.all {
		old.seal(c).deliver()
	}
	told = true
	b.before.Store(nil)
}

// sealBefore seals the cells of one key in older books, the oldest first.
func (b *book[K]) sealBefore(of *cell) (owed *feed) {
	before := b.before.Load()
	if before == nil {
		return nil
	}
	owed = before.shelf.sealBefore(of)
	k, old := b.keyOf(of), bookOf[K](&before.absence)
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
func (b *pages) seal(c *cell) (owed *feed) {
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
		owed = either(owed, b.push(c, &notice{core: &c.core, gen: w.gen()}))
	}
	return owed
}
