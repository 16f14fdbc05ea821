package atomicbreaker

import (
	"reflect"
	"strings"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cell is the breaker of one key that is in the table of its group. When it dies, its
// word is a tombstone and never changes again.
type cell[K comparable] struct {
	core
	group *group[K] // never changes
	key   K         // never changes

	// since is, while the cell lives, the number of departures when it was made, or when the last
	// ResetAll that has come to it began. When it has died, and before it leaves the table, it
	// becomes what is left for the permits of its last stay: see I11 in DESIGN.md.
	since atomics.Uint64
}

const (
	// filterSize bounds how many keys may have failures before most healthy ones
	// share their slot with one. With 1000 of 100,000 keys open a healthy call
	// takes 35 ns, and with 1024 slots 50. The slots take 16 KiB, half of an L1
	// cache, and are allocated with the first cell.
	filterSize = 1 << filterBits
	filterBits = 12
)

// filterSlot returns the index of the slot of the cells with a hash.
func filterSlot(hash uint64) uint64 { return hash >> (64 - filterBits) }

// freeSlot reports whether every key with a slot is absent for sure.
func (g *group[K]) freeSlot(slot uint64) bool {
	s := g.filter.Load()
	return s == nil || s[slot].Load() == 0
}

// find returns the cell of a key, or nil. The cell may be dead, now or at any
// time. Its word says so to callers that use it; they wait until it has left, and find
// again.
func (g *group[K]) find(k K, hash uint64) *cell[K] {
	if g.freeSlot(filterSlot(hash)) {
		return nil
	}
	return g.cells.Load(k)
}

// obtain is like find but inserts a pristine cell if there is none, with the
// given settings or, if they are nil or replaced, those of the key. It returns nil for a
// key that is not equal to itself, which could never be found again.
//
// It retries only if Update has come between.
func (g *group[K]) obtain(k K, hash uint64, s *settings) *cell[K] {
	c := g.find(k, hash)
	for c == nil && g.keys.Findable(k) {
		if s == nil {
			s = g.settingsOf(k)
		}
		c, s = g.insert(k, hash, s), nil
	}
	return c
}

// insert returns the cell of a key, which it inserts if there is none, or nil if the
// settings are not those of the group any more.
func (g *group[K]) insert(k K, hash uint64, s *settings) *cell[K] {
	fresh := &cell[K]{group: g, key: k}
	fresh.owner = fresh
	if v := reflect.ValueOf(&fresh.key).Elem(); v.Kind() == reflect.String {
		v.SetString(strings.Clone(v.String())) // it pins nothing that it was cut from
	}
	if s.listens {
		fresh.queue = &eventQueue{core: &fresh.core}
	}
	fresh.set.Store(s)
	filter := g.filter.Load()
	if filter == nil {
		filter = g.filter.Install(new([filterSize]atomics.Uint32))
	}
	filter[filterSlot(hash)].Add(1)
	g.linked.Add(1)
	c := g.cells.Compute(fresh.key, func(now *cell[K]) *cell[K] {
		// Update and ResetAll come to the key under the same mutex, after they have made
		// their change for absent keys. So they find the cell, or it finds their change.
		if now != nil || s.madeFor != g.set.Load().shared {
			return now
		}
		fresh.since.Store(g.departures.count.Load())
		return fresh
	})
	if c != fresh {
		g.unlinked(hash)
	}
	return c
}

// unlinked takes a cell out of the counts, once it is out of the table.
func (g *group[K]) unlinked(hash uint64) {
	g.linked.Add(-1)
	g.filter.Load()[filterSlot(hash)].Add(^uint32(0))
}

// tidy retires the cell if the word is pristine.
func (c *cell[K]) tidy(w word) {
	if w.pristine() {
		c.retire(w)
	}
}

// retire kills a cell that is still pristine, or marked, and takes it out of the table,
// and reports whether it has. It does all of it under the mutex of the cell's bucket, so
// that whoever finds the cell dead waits for no more than that. A cell with events that
// were not delivered stays, so that they come before those of the key's next cell. The
// caller that delivers the last event retires it.
func (c *cell[K]) retire(w word) (dead bool) {
	if !c.deliveredUpTo(w) {
		return false
	}
	g, hash := c.group, c.group.hash(c.key, 0)
	g.cells.Compute(c.key, func(now *cell[K]) *cell[K] {
		if !c.word.CompareAndSwap(uint64(w), uint64(w.living().stay().bury())) {
			return now
		}
		dead = true
		left := g.departures.count.Load()
		if w.gen() != 0 {
			left = g.departures.add(hash)
		}
		if c.since.Load() < g.departures.void.Load() {
			left = 0 // all keys have departed since, by addAll
		}
		c.since.Store(left)
		return nil
	})
	if dead {
		g.unlinked(hash)
	}
	return dead
}

// await returns when a cell that is dead is out of the table.
func (c *cell[K]) await() { c.group.cells.CompareAndDelete(c.key, c) }

// finish ends an operation on a living cell. It counts the verdict first, as a listener
// may panic. Sweeps come last, as they call the listener for other keys: after the TripFuncs,
// if they are to be asked.
func (c *cell[K]) finish(did step, v Verdict) {
	g := c.group
	g.counters.verdict(v)
	if did.flags&wrote != 0 {
		c.tidy(did.to)
	}
	c.relax(did)
	if did.owed != nil {
		did.owed.deliver()
	}
	if did.flags&asks != 0 {
		return
	}
	if at := g.sweepAt.Load(); g.linked.Load() >= at {
		g.sweepGrown(at)
	}
	if did.flags&withheld != 0 {
		g.reclaim()
	}
}

// relax retires a cell that is kept for its windows alone when these are empty.
// It looks into them only when nothing can be left there, so that a success
// need not sum.
func (c *cell[K]) relax(did step) {
	w := did.to
	if w.mode() != closed || !w.watched() || w != w.flagged() {
		return
	}
	if r := c.set.Load().rules; len(r.windows) != 0 && c.idle(did.at) < r.span {
		return
	}
	if was := word(c.word.Load()); was.living() == w {
		c.retireStale(was, c.set.Load())
	}
}

// notify calls the group's listener.
func (c *cell[K]) notify(e *Event) {
	if tell := c.group.set.Load().config.OnStateChange; tell != nil {
		tell(c.key, *e)
	}
}

// notified retires the cell if it was kept for its events only.
func (c *cell[K]) notified() {
	was := word(c.word.Load())
	if c.tidy(was); was.mode() == leaving {
		c.retireStale(was, c.set.Load())
	}
}

// An openQuota counts the keys of a group that are open, for GroupConfig.MaxOpen.
type openQuota struct {
	// held is at least the number of cells that are open or half-open: it goes
	// up before a cell becomes so, and down after it was.
	held atomics.Int64
}

// out reports whether a cell with this word takes a place of the open quota.
func (w word) out() bool { return w.mode() == open || w.mode() == halfOpen }

// acquire takes a place for a cell that is about to open, unless limit places are
// taken; zero is no limit. It reports whether it has.
//
// It may say no because of a cell that is about to open and then does not.
func (q *openQuota) acquire(limit int64) bool {
	if n := q.held.Add(1); limit == 0 || n <= limit {
		return true
	}
	q.held.Add(-1)
	return false
}

// release gives a place back, which was taken for a cell that has closed or
// did not open.
func (q *openQuota) release() { q.held.Add(-1) }
