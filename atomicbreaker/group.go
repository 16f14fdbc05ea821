package atomicbreaker

import (
	"context"
	"iter"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// Group is a breaker for every key. Only keys that fail take memory: an
// absent key is a healthy one, and keys that recover become absent again.
//
// The zero Group has the default settings. A Group must not be copied after
// first use. All methods may be called concurrently.
//
// A key that holds an interface with an uncomparable value makes every method
// panic, as it does with Go's maps. A key that is not equal to itself, a NaN,
// is always healthy, and its failures are Late.
type Group[K comparable] struct {
	_ atomics.NoCopy

	groupRoot

	// queueHash finds the queue of a key; nil without a listener.
	queueHash table.Hash[K]
}

// A groupRoot is the part of a Group that does not depend on the type of its keys.
type groupRoot struct {
	// set is nil in a zero Group until it is needed. From nil to settings, once,
	// and from one to the next by Update.
	set atomics.Pointer[groupSettings]

	// listens says that there has been a listener since NewGroup: none can come
	// later. It never changes.
	listens bool

	// From nil to the first group state when it is needed, and to a fresh one by
	// every ResetAll. Every operation reads it once and stays with it.
	state atomics.Pointer[presence]

	counters counters

	// queues holds those of the keys that have events which were not delivered;
	// nil without a listener.
	queues *table.Table[uint64, keyQueue]
}

// NewGroup returns a Group, or an error that names the setting that is wrong
// and its value.
func NewGroup[K comparable](c GroupConfig[K]) (*Group[K], error) {
	set, err := c.compile()
	if err != nil {
		return nil, err
	}
	g := new(Group[K])
	g.listens = c.OnStateChange != nil
	g.counters.record(set.base.totals)
	g.set.Store(set)
	if g.listens {
		_, g.queueHash = newKeys[K]()
		g.queues = table.New[uint64, keyQueue](func(hash, _ uint64) uint64 { return hash }, 0)
	}
	return g, nil
}

// MustNewGroup is like NewGroup but panics if a setting is wrong.
func MustNewGroup[K comparable](c GroupConfig[K]) *Group[K] {
	return must(NewGroup(c))
}

// Config returns the settings of k: the result of GroupConfig.PerKey, or
// GroupConfig.Default, of the last Update. Fields that are zero stand for the
// defaults.
//
// Config is wait-free outside PerKey. It takes effect when the settings are read.
func (g *Group[K]) Config(k K) Config {
	g.current().hash(k, 0) // panics if k cannot be compared
	// LP(Config): the load of the settings.
	c := configOf[K](g.settings())
	if c.PerKey != nil {
		return c.PerKey(k)
	}
	return c.Default
}

// current returns the group state that the operation works with.
func (g *Group[K]) current() *keyedState[K] {
	if p := g.state.Load(); p != nil {
		return keyedStateOf[K](p)
	}
	return keyedStateOf[K](g.state.Install(&newKeyedState(g).presence))
}

// settings returns those of the group and, in a zero Group, installs the
// defaults.
func (g *Group[K]) settings() *groupSettings {
	if s := g.set.Load(); s != nil {
		return s
	}
	return install(&g.set, GroupConfig[K]{}.compile)
}

// Allow asks whether a call may be made for k now; see Breaker.Allow. For a
// key that is not in the group it stores nothing, and if keys are strings,
// numbers or booleans it allocates nothing; other keys are copied to the heap. With a
// SlowRate, so are all keys but strings of up to 1,022 bytes.
//
// Allow is lock-free, and blocking on a bucket's mutex when it helps to remove
// a key that has recovered, or calls a listener. It takes effect when the key
// is not found, or like Breaker.Allow.
func (g *Group[K]) Allow(k K) (Permit, error) {
	p := g.state.Load()
	if p == nil {
		p = &g.current().presence
	}
	ks := keyedStateOf[K](p)
	// The departure must be that of the moment at which the key was absent, so it is
	// read on both sides of that.
	now, linked, slot := ks.departures.last.Load(), ks.linked.Load(), uint64(0)
	if linked >= biased {
		return ks.allowBiased(k, now)
	}
	if linked != 0 {
		h := ks.keys.Hash(k) // which does not panic, as the group state is not biased
		if !ks.free(h) {
			return ks.allowLinked(k, h, now)
		}
		slot = 1 + filterSlot(h)
	}
	if ks.departures.last.Load() != now {
		return ks.allowLinked(k, ks.hash(k, 0), now)
	}
	// LP(Allow): an absent key admits when there are no cells, or none in its
	// slot.
	if ks.packing == packString {
		return stringPermit(k, now, slot), nil
	}
	return absentPermit(ks.packing, k, now, slot), nil
}

// Do calls fn if Allow(k) admits it; see Breaker.Do.
//
// Do is lock-free outside fn, and blocking on a bucket's mutex when the key
// enters or leaves the group, or a listener is called. It takes effect as Allow
// and Permit.Done do.
func (g *Group[K]) Do(ctx context.Context, k K, fn func(context.Context) error) error {
	return do(ctx, func() (Permit, error) { return g.Allow(k) }, fn)
}

// do is Group.Do without its type parameter: see internal/atomics/inline.go.
func do(ctx context.Context, allow func() (Permit, error), fn func(context.Context) error) error {
	if err := begin(ctx, fn == nil); err != nil {
		return err
	}
	p, err := allow()
	if err != nil {
		return err
	}
	return p.run(ctx, fn)
}

// RecordSuccess reports a success of a call for k that has no permit. It clears the
// failures of a closed key, and closes an open or half-open key, for which the verdict
// is Recovered. It is Late only while the key is ForcedOpen.
//
// RecordSuccess is lock-free, and blocking on a bucket's mutex when the key
// leaves the group, or a listener is called. It takes effect by one CAS, or when the state is read if
// it changes nothing.
func (g *Group[K]) RecordSuccess(k K) Verdict {
	g.counters.total(Success)
	ks := g.current()
	if ks.empty() {
		// LP(RecordSuccess): an absent key stays pristine.
		return Counted
	}
	return ks.record(k, result{outcome: Success})
}

// RecordFailure reports a failure of a call for k that has no permit. It counts
// against a closed key, and opens a key that is half-open or whose open time has
// passed. While the key is open the failure is Late.
//
// RecordFailure is lock-free, and blocking on a bucket's mutex when the key
// enters the group, or a listener is called. It takes effect by one CAS, or when the state is read if
// it is late.
func (g *Group[K]) RecordFailure(k K) Verdict {
	g.counters.total(Failure)
	return g.current().record(k, result{outcome: Failure})
}

// record reports a result that no permit was asked for.
//
// It retries only if a cell has died, or the group state was replaced.
func (ks *keyedState[K]) record(k K, r result) Verdict {
	for h := ks.hash(k, 0); ; {
		var c *cell
		if r.outcome == Success {
			c = ks.lookup(k, h)
		} else if c = ks.obtain(k, h, nil); c == nil {
			return ks.late() // not equal to itself, so nothing to remember
		}
		if c == nil {
			// LP(RecordSuccess): an absent key stays pristine.
			return Counted
		}
		if ks.outdated() {
			ks = ks.group.current()
			h = ks.hash(k, 0)
			continue
		}
		v, owed, died := ks.recordIn(c, &r)
		if !died {
			return v
		}
		if owed != nil {
			return ks.recordAgain(k, r, owed)
		}
	}
}

// recordIn is record for a cell. It reports whether the cell has died, so that the
// caller has to look again with r, and the queue that the caller has to deliver then.
func (gs *groupState) recordIn(c *cell, r *result) (v Verdict, owed *eventQueue, died bool) {
	r.how |= direct
	s := c.settings()
	was := word(c.word.Load())
	v, did := c.apply(was, was.stay(), *r, s)
	if did.to.mode() == tombstone {
		gs.remove(c)
		*r = r.after(did)
		return Late, did.owed, true
	}
	gs.finish(c, did, v)
	return v, nil, false
}

// recordAgain is record for a caller that has to deliver something afterwards, even
// if record does not return.
func (ks *keyedState[K]) recordAgain(k K, r result, owed *eventQueue) Verdict {
	defer owed.deliver()
	return ks.group.current().record(k, r)
}

// IsOpen reports whether a call for k would be rejected outright: whether k is
// Open or ForcedOpen. It is false again as soon as the open time has passed, for
// all callers alike; only Allow limits the number of probes.
//
// IsOpen is wait-free, but lock-free while [Group.Update] replaces the settings. It
// takes effect when the state is read.
func (g *Group[K]) IsOpen(k K) bool {
	ks := g.current()
	if ks.linked.Load() >= biased {
		ks.settings() // the first caller makes them the group state's
	}
	if ks.empty() {
		return false
	}
	c := ks.lookup(k, ks.hash(k, 0))
	if c == nil {
		return false
	}
	v := ks.read(c)
	return v.doing().rejects()
}

// State returns how the group would treat a call for k now; see
// Breaker.State. With GroupConfig.PerKey, a key that is absent is Closed even if
// its settings would make it a Shadow.
//
// State is wait-free, but lock-free while [Group.Update] replaces the settings. It
// takes effect when the state is read.
func (g *Group[K]) State(k K) State {
	v, _ := g.read(k)
	return v.doing()
}

// Snapshot returns the state of k with its details; see Breaker.Snapshot. An
// absent key has none.
//
// Snapshot is wait-free, but with a KOfN of more than 32 calls lock-free while
// any of them has failed. It takes effect when the state is read.
func (g *Group[K]) Snapshot(k K) Snapshot {
	v, c := g.read(k)
	if c == nil {
		return v.snapshot()
	}
	return c.snapshotOf(&v)
}

// read observes the breaker of a key without changing it. A dead cell reads as
// closed, which its key was. It returns the cell, or nil.
func (g *Group[K]) read(k K) (view, *cell) {
	ks := g.current()
	absent := view{}
	if set := ks.settings(); !set.perKey {
		absent.settings = set.shared
	}
	if ks.empty() {
		return absent, nil
	}
	if c := ks.lookup(k, ks.hash(k, 0)); c != nil {
		return ks.read(c), c
	}
	return absent, nil
}

// read observes a cell.
func (gs *groupState) read(c *cell) view {
	gs.cellSettingsWithoutPerKey(&c.core) // renews them
	return c.read()
}

// ResetAll closes the breakers of all keys at once. The results of all calls
// admitted before are late.
//
// With a listener, ResetAll then delivers an event for each key that it has reset.
//
// ResetAll is wait-free without a listener, and with one it is blocking on the
// mutex of one bucket at a time. It takes effect for all keys when it replaces
// the table.
func (g *Group[K]) ResetAll() {
	if g.listens {
		g.resetAllAndNotify()
		return
	}
	// LP(ResetAll): this store. An operation that still works with the old group
	// state takes effect at the moment before it.
	g.state.Store(&newKeyedState(g).presence)
}

// All yields the keys that are in the group, each with its Snapshot of the moment at
// which it was reached. It is weakly consistent: each key at most once, and every
// key that is present throughout. The loop body may use the group.
//
// All is blocking on the mutex of one bucket at a time, not during the loop
// body. It takes effect for each key when that is read.
func (g *Group[K]) All() iter.Seq2[K, Snapshot] {
	return func(yield func(K, Snapshot) bool) {
		ks := g.current()
		for k, c := range ks.cells.All() {
			v := ks.read(&c.cell)
			if v.word.mode() != tombstone && !yield(k, c.snapshotOf(&v)) {
				return
			}
		}
	}
}

// Len returns the number of keys that are in the group. It is exact while
// nobody uses the group.
//
// Len is wait-free. It takes effect for each part of the table when that is
// read.
func (g *Group[K]) Len() int { return g.current().cells.Len() }
