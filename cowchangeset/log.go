package cowchangeset

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// log is an append-only sequence of entries that many goroutines write, that
// can be cut anywhere and sealed once. A writer reserves slots by one addition
// to the reservation word, fills them, and publishes them by CAS. A cut at n
// decides every slot below n: it waits a moment for writers in between, and
// then kills their slots, which sends them to later ones.
//
// No user code runs between reservation and publication. Init makes it usable.
type log[E any] struct {
	// closed goes from false to true once the log is sealed, by any goroutine that has
	// seen the seal bit. It may lag: the reservation word is the truth. It spares
	// writers of a sealed log their reservations.
	closed atomics.Bool

	// tail is a recent chunk. Whoever walks past its end moves it on, towards
	// a slot that is reserved: so a slot that is reserved after a load of tail
	// is never before the chunk loaded.
	tail atomics.Pointer[chunk[E]]

	watch atomics.Waker // for Follow loops that wait for an entry or the seal

	// Cuts and loops read the following fields, in the second cache line.

	// decided goes from nil to a cut, and to cuts that come further, by the CAS of
	// whoever made them; at last to the final cut.
	decided atomics.Pointer[cut[E]]

	// head has no slots. The chunks follow it, and are allocations of their own: a
	// Final keeps them alive, and not the changeset.
	head chunk[E]

	// over goes from nil to the event of the seal, once, by a call of Sealed.
	over atomics.Pointer[atomics.Event]
	_    [atomics.CacheLineSize - 56]byte

	// reserved counts the slots given away, by additions of writers, and has the sealed
	// bit, set by Seal and Start. Additions that return the bit reserve nothing, so
	// once sealed it may count too many. A Record into an open changeset needs nothing
	// else in this cache line.
	reserved atomics.Uint64
}

// chunk is an array of slots, from index base on.
type chunk[E any] struct {
	base  uint64
	slots []slot[E]
	next  atomics.Pointer[chunk[E]] // nil, then for ever, by CAS of any: the next one or, if the log ends here, c itself
}

// Chunks double from firstChunk to maxChunk slots: little changesets are cheap,
// and no more than half of a large one's slots, or maxChunk, lie idle. With
// 1,024 for maxChunk, changesets of 1,000 entries took half as much memory
// again and a tenth more time; those of 100,000 differed by a tenth either way.
func firstChunk() int { return atomics.Limit(16, 1) }

func maxChunk() int { return atomics.Limit(256, 4) }

// newChunk returns a chunk of n slots, and of as many more as the allocator would
// leave idle behind them: 39 behind 256 slots of 32 bytes with a pointer.
func newChunk[E any](base uint64, n int) *chunk[E] {
	slots := slices.Grow([]slot[E](nil), n)
	return &chunk[E]{base: base, slots: slots[:cap(slots)]}
}

// slot holds one entry. The writer that reserved the slot writes the value, before the
// slot is published or after it was killed. Others read it only once it is published.
type slot[E any] struct {
	state atomics.Uint64 // a slotState, which its writer and cuts change by CAS
	value E
}

func (s *slot[E]) load() slotState { return slotState(s.state.Load()) }

func (s *slot[E]) cas(old, new slotState) bool {
	return s.state.CompareAndSwap(uint64(old), uint64(new))
}

func (l *log[E]) init() {
	l.tail.Store(&l.head)
}

// append adds e and returns its index, or false if the log is sealed.
func (l *log[E]) append(e E) (uint64, bool) {
	for {
		c, i, ok := l.reserve(1)
		if !ok {
			return 0, l.afterSeal(c)
		}
		s := c.at(i)
		if s == nil {
			s = l.slot(c, i)
		}
		if s != nil && s.put(e) {
			if i == c.late() {
				c.prepare()
			}
			l.watch.Wake()
			return i, true
		}
		// A cut took the slot, and is done or has others to decide.
	}
}

// appendBatch adds es at consecutive indices and returns the first one, or
// false if the log is sealed. Every cut has all of them or none. Es is not
// empty.
func (l *log[E]) appendBatch(es []E) (uint64, bool) {
	for {
		c, i, ok := l.reserve(len(es))
		if !ok {
			return 0, l.afterSeal(c)
		}
		if l.putAll(c, i, es) {
			l.watch.Wake()
			return i, true
		}
		// A cut took the slots, as above.
	}
}

// reserve gives the caller k consecutive slots and returns the index of the
// first and a chunk that is not after it. It fails if the log is sealed; with a chunk
// if something may be left to do that follows from that, and with nil if not.
func (l *log[E]) reserve(k int) (*chunk[E], uint64, bool) {
	// The reservation word is not loaded beforehand: under contention that
	// would fetch its cache line twice.
	if l.closed.Load() {
		return nil, 0, false
	}
	c := l.tail.Load() // before the addition: see tail
	n := l.reserved.Add(uint64(k))
	if n&sealed != 0 {
		return c, 0, false
	}
	return c, n - uint64(k), true
}

// afterSeal returns false after a reserve that failed with c. Everything that follows
// from the seal has been done then.
func (l *log[E]) afterSeal(c *chunk[E]) bool {
	if c != nil {
		l.publishSeal()
	}
	return false
}

// put publishes e in a slot that the caller reserved, unless the slot was
// killed.
func (s *slot[E]) put(e E) bool {
	s.value = e
	if s.cas(vacant, spanning(published, 1)) {
		return true
	}
	var zero E
	s.value = zero // still ours: nobody reads dead slots
	return false
}

// putAll publishes es in slots that the caller reserved, starting with i,
// unless they were killed. The first slot's state is that of all.
func (l *log[E]) putAll(c *chunk[E], i uint64, es []E) bool {
	k := uint64(len(es))
	head := l.slot(c, i)
	if head == nil || !head.cas(vacant, spanning(pending, k)) {
		return false
	}
	if l.fill(c, i, es) && head.cas(spanning(pending, k), spanning(published, k)) {
		return true
	}
	l.wipe(c, i, len(es))
	return false
}

// fill writes es into slots that the caller reserved, starting with i. It fails
// if the log ended before the last of them.
func (l *log[E]) fill(c *chunk[E], i uint64, es []E) bool {
	for len(es) > 0 {
		if c = l.find(c, i, true); c == nil {
			return false
		}
		run := c.slots[i-c.base:]
		run = run[:min(len(run), len(es))]
		for j := range run {
			run[j].value = es[j]
		}
		es, i = es[len(run):], i+uint64(len(run))
	}
	return true
}

// wipe undoes fill on k slots that were killed.
func (l *log[E]) wipe(c *chunk[E], i uint64, k int) {
	var zero E
	for end := i + uint64(k); i < end; i++ {
		if c = l.find(c, i, true); c == nil {
			return
		}
		c.slots[i-c.base].value = zero
	}
}

// at returns slot i, which is not before c, or nil if it is beyond c.
func (c *chunk[E]) at(i uint64) *slot[E] {
	if o := i - c.base; o < uint64(len(c.slots)) {
		return &c.slots[o]
	}
	return nil
}

// slot returns slot i, which is reserved and not before c, or nil if the log
// ended before it.
func (l *log[E]) slot(c *chunk[E], i uint64) *slot[E] {
	if c = l.find(c, i, true); c == nil {
		return nil
	}
	return c.at(i)
}

// find returns the chunk that holds slot i, which is reserved and not before c. Where
// that chunk does not exist yet, find appends the missing ones or, if grow is false,
// ends the log. It returns nil if the log ended before i.
func (l *log[E]) find(c *chunk[E], i uint64, grow bool) *chunk[E] {
	for i-c.base >= uint64(len(c.slots)) {
		next := c.next.Load()
		if next == nil {
			next = c // the end
			if grow {
				next = c.after()
			}
			next = c.next.Install(next) // or another's, which is as good
		}
		if next == c {
			return nil
		}
		if l.tail.Load() == c {
			l.tail.CompareAndSwap(c, next)
		}
		c = next
	}
	return c
}

// late is the slot whose writer appends the next chunk, after its own entry. It
// completes 7/8, so that the chunk is ready in time. It is a single slot, so that not
// every writer that reaches the end at once allocates one.
func (c *chunk[E]) late() uint64 {
	n := uint64(len(c.slots))
	return c.base + n - n/8 - 1
}

// prepare appends the next chunk if it does not exist yet.
func (c *chunk[E]) prepare() {
	if c.next.Load() == nil {
		c.next.CompareAndSwap(nil, c.after())
	}
}

// after returns a new chunk to follow c.
func (c *chunk[E]) after() *chunk[E] {
	n := len(c.slots)
	return newChunk[E](c.base+uint64(n), min(max(2*n, firstChunk()), maxChunk()))
}
