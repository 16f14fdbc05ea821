package atomicbreaker

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// Group is a breaker for every key. An absent key is healthy and takes no memory; keys that
// fail are in the group until they recover.
//
// The zero Group has the default settings. Do not copy a Group after first use. All methods may be
// called concurrently. Methods that are "lock-free or blocking" take the mutex of a hash bucket
// when the key enters or leaves the group, and within it a mutex of the whole group when the key
// that leaves had opened or was reset; and they wait for the listener when the state changes.
// Otherwise they are lock-free. They take effect by one CAS, or by one load if they change nothing.
//
// A key with an uncomparable value makes every method panic, as with Go's maps. A NaN, which is not
// equal to itself, is always healthy, and its failures are Late.
type Group[K comparable] struct {
	_ atomics.NoCopy

	// From nil, in a zero Group, to the group when it is needed, by CAS.
	state atomics.Pointer[group[K]]
}

// A group is a Group in use. An absent key is a pristine one: closed, without failures.
type group[K comparable] struct {
	keys  table.Keys[K]
	hash  table.Hash[K] // panics if a key cannot be compared
	cells *table.Table[K, cell[K]]

	// healthy stands for the cells of all absent keys, in their permits. Nobody
	// changes it.
	healthy cell[K]

	// set has the settings. Update replaces them, under updating, and then those of all
	// cells.
	set atomics.Pointer[groupSettings[K]]

	// filter is nil before the first insert. From nil to an array, by CAS,
	// before linked goes up for the first time.
	filter atomics.Pointer[[filterSize]atomics.Uint32]

	updating atomics.Mutex
	epoch    time.Time // of all its settings
	listens  bool      // whether there has been a listener from the beginning: none can come later
	counters counters
	wrong    atomics.Uint64 // settings from PerKey

	// linked is at least the number of cells in the table, and each slot of filter at
	// least the number of cells with its hashes. They go up before a cell is inserted
	// and down after it was removed.
	linked atomics.Int64

	departures departures
	quota      openQuota

	// marks numbers the marks of cells that are about to be retired.
	marks atomics.Uint64

	// sweepAt is the number of cells at which an insert sweeps. The caller that
	// swaps it for sweeping owns the sweep, and resets it at the end.
	sweepAt atomics.Int64

	// reclaimAt is when a key that cannot open may look again for places of the
	// open quota, since the epoch. By CAS of the caller that then looks.
	reclaimAt atomics.Int64
}

const (
	firstSweep = 64 // with fewer cells a sweep is not worth it
	sweeping   = math.MaxInt64
)

// NewGroup returns a Group, or an error that names the wrong setting and its value.
func NewGroup[K comparable](c GroupConfig[K]) (*Group[K], error) {
	set, err := c.compile()
	if err != nil {
		return nil, err
	}
	g := new(Group[K])
	g.state.Store(newGroup(set))
	return g, nil
}

func newGroup[K comparable](set *groupSettings[K]) *group[K] {
	g := &group[K]{epoch: set.shared.epoch, listens: set.shared.listens}
	g.keys = table.NewKeys[K]()
	g.hash = g.keys.Hasher("atomicbreaker")
	g.cells = table.New[K, cell[K]](g.hash, 0)
	g.healthy.group = g
	g.counters.withTotals(set.shared.totals)
	g.sweepAt.Store(firstSweep)
	g.adopt(set.shared)
	set.hashes = g.mustHash(set.shared)
	g.set.Store(set)
	return g
}

// MustNewGroup is like NewGroup but panics if a setting is wrong.
func MustNewGroup[K comparable](c GroupConfig[K]) *Group[K] { return must(NewGroup(c)) }

// current returns the group and, in a zero Group, makes it first.
func (g *Group[K]) current() *group[K] {
	if st := g.state.Load(); st != nil {
		return st
	}
	set, _ := GroupConfig[K]{}.compile() // the defaults are valid
	return g.state.Install(newGroup(set))
}

// Config returns the settings of k: those of PerKey or, without that, Default.
//
// Config is wait-free outside PerKey. It takes effect by one load.
func (g *Group[K]) Config(k K) Config {
	st := g.current()
	st.hash(k, 0) // panics if k cannot be compared
	// LP(Config): the load of the settings.
	c := st.set.Load().config
	if c.PerKey != nil {
		return c.PerKey(k)
	}
	return c.Default
}

// Allow is Breaker.Allow for k. It stores and allocates nothing for an absent key.
//
// Allow is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) Allow(k K) (GroupPermit[K], error) {
	st := g.state.Load()
	if st == nil {
		st = g.current()
	}
	// The number of departures must be that of the moment at which the key was absent,
	// so it is read on both sides of that.
	n, slot := st.departures.count.Load(), uint64(0)
	if st.set.Load().hashes {
		return st.allow(k)
	}
	if st.linked.Load() != 0 {
		slot = filterSlot(st.keys.Hash(k))
		if !st.freeSlot(slot) {
			return st.allow(k)
		}
		slot++
	}
	if st.departures.count.Load() != n {
		return st.allow(k)
	}
	// LP(Allow): an absent key admits when there are no cells, or none in its slot.
	return GroupPermit[K]{&st.healthy, k, uint64(absentBits(n)) | slot}, nil
}

// allow is Group.Allow for a key that may have a cell, or must be hashed.
//
// It retries only if a cell has departed, or has died.
func (g *group[K]) allow(k K) (GroupPermit[K], error) {
	for h := g.hash(k, 0); ; {
		n := g.departures.count.Load()
		c := g.find(k, h)
		if c == nil {
			if g.departures.count.Load() != n {
				continue
			}
			// LP(Allow): an absent key admits when it is not found.
			if begun := g.set.Load().shared.callStart(); begun != 0 {
				return GroupPermit[K]{&g.healthy, k, bitsFor(absentBits(n), begun)}, nil
			}
			return GroupPermit[K]{&g.healthy, k, uint64(absentBits(n)) | (1 + filterSlot(h))}, nil
		}
		a, err := c.admit(c.set.Load().rules.slow)
		switch {
		case a.to.mode() == tombstone:
			c.await()
			continue
		case err != nil || a.flags&shadowed != 0:
			return GroupPermit[K]{}, err
		}
		p := GroupPermit[K]{c, k, bitsFor(a.to.stay(), a.at)}
		if a.flags&asNew != 0 {
			c.tidy(a.to)
		}
		if a.owed != nil {
			orElse(a.owed.deliver, func() { p.Cancel() }) // if the listener does not return, nobody gets p
		}
		return p, nil
	}
}

// Do is Breaker.Do for k.
//
// Do is lock-free or blocking outside fn and takes effect as Group says.
func (g *Group[K]) Do(ctx context.Context, k K, fn func(context.Context) error) error {
	if fn == nil {
		panic("atomicbreaker: Group.Do called with a nil function")
	}
	return g.do(ctx, k, fn) // apart: see internal/atomics/inline.go
}

func (g *Group[K]) do(ctx context.Context, k K, fn func(context.Context) error) (err error) {
	if err := checkCall(ctx, false); err != nil {
		return err
	}
	p, err := g.Allow(k)
	if err != nil {
		return err
	}
	err = errNotReturned
	defer func() { p.done(ctx, err) }()
	return fn(ctx)
}

// RecordSuccess is Breaker.RecordSuccess for k.
//
// RecordSuccess is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) RecordSuccess(k K) Verdict {
	st := g.current()
	st.counters.total(Success)
	return st.report(k, 0, result{outcome: Success, how: direct}, nil)
}

// RecordFailure is Breaker.RecordFailure for k.
//
// RecordFailure is lock-free or blocking and takes effect as Group says.
func (g *Group[K]) RecordFailure(k K) Verdict {
	st := g.current()
	st.counters.total(Failure)
	return st.report(k, 0, result{outcome: Failure, how: direct}, nil)
}

// IsOpen is Breaker.IsOpen for k.
//
// IsOpen is wait-free. It takes effect by one load.
func (g *Group[K]) IsOpen(k K) bool {
	st := g.current()
	if st.linked.Load() == 0 && !st.set.Load().hashes {
		return false
	}
	v, _ := st.read(k)
	return v.doing().rejects()
}

// State is Breaker.State for k. With PerKey an absent key is Closed, never a Shadow.
//
// State is wait-free. It takes effect by one load.
func (g *Group[K]) State(k K) State {
	v, _ := g.current().read(k)
	return v.doing()
}

// Snapshot is Breaker.Snapshot for k. With PerKey that of an absent key has no Name.
//
// Snapshot is wait-free; lock-free with a KOfN. It takes effect by
// one load.
func (g *Group[K]) Snapshot(k K) Snapshot {
	v, c := g.current().read(k)
	if c == nil {
		return v.snapshot(0)
	}
	return c.snapshotOf(&v)
}

// read observes the breaker of a key without changing it. A dead cell is none: its key was
// closed. It returns the cell, or nil.
func (g *group[K]) read(k K) (view, *cell[K]) {
	if c := g.find(k, g.hash(k, 0)); c != nil {
		if v := c.read(); v.word.mode() != tombstone {
			return v, c
		}
	}
	absent := view{}
	if set := g.set.Load(); set.config.PerKey == nil {
		absent.settings = set.shared
	}
	return absent, nil
}

// ResetAll closes the breakers of all keys, one by one. When it returns, the results of all calls
// admitted before it began are Late; those of calls admitted while it runs may be. It skips only
// healthy keys whose events are being delivered. The listener gets the events at the end.
//
// ResetAll is blocking on a mutex of the group, on one bucket's at a time, and on the listener. It takes
// effect for absent keys when it begins, and for others by one CAS each.
func (g *Group[K]) ResetAll() {
	st := g.state.Load()
	if st == nil {
		return // it is unused
	}
	begun := st.departures.addAll() // LP(ResetAll): for absent keys
	var finish []func()
	for _, c := range st.stored() {
		if did, lives := c.resetAll(); lives {
			c.resetSince(begun)
			finish = append(finish, func() { c.finish(did, Counted) })
		}
	}
	forEach(finish, func(f func()) { f() })
}

// stored returns the cells that are in the table.
func (g *group[K]) stored() (cells []*cell[K]) {
	for _, c := range g.cells.All() {
		cells = append(cells, c)
	}
	return cells
}

// resetAll is ResetAll for a cell, and reports whether that lives. A healthy one is
// retired, so that the results of its calls are late, unless it waits for its listener.
//
// It retries only if another caller has changed the cell.
func (c *cell[K]) resetAll() (did step, lives bool) {
	for {
		switch w := word(c.word.Load()); {
		case w.mode() == tombstone:
			return did, false // ResetAll has made its permits void
		case !w.pristine():
			// LP(ResetAll): for this key, in command.
			if did = c.command(command{why: ReasonReset, mode: closed, all: true}); did.flags != 0 {
				return did, true
			}
		case !c.deliveredUpTo(w) && word(c.word.Load()) == w: // or a later event was delivered
			return step{to: w}, true
		case c.retire(w):
			return did, false
		}
	}
}

// resetSince notes the departures at which a ResetAll began that has come to the cell, unless a
// later one has noted more, or the cell has died, with as many. It retries only for these.
func (c *cell[K]) resetSince(begun uint64) {
	for since := c.since.Load(); since < begun && !c.since.CompareAndSwap(since, begun); {
		since = c.since.Load()
	}
}

// All yields the keys in the group with their Snapshots: each key at most once, and every
// key that is present throughout. The loop body may use the group.
//
// All is blocking on one bucket's mutex at a time, not during the loop body. It takes
// effect for each key when that is read.
func (g *Group[K]) All() iter.Seq2[K, Snapshot] {
	return func(yield func(K, Snapshot) bool) {
		for k, c := range g.current().cells.All() {
			v := c.read()
			if v.word.mode() != tombstone && !yield(k, c.snapshotOf(&v)) {
				return
			}
		}
	}
}

// Len returns the number of keys in the group, exact while nobody uses it.
//
// Len is wait-free. It takes effect for each part of the table.
func (g *Group[K]) Len() int { return g.current().cells.Len() }
