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
// No user code runs between reservation and publication. See newChangeset.
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

	// Cuts and loops read the following fields, which fill the second cache line.

	// decided goes from nil to a cut, and to cuts that come further, by the CAS of
	// whoever made them; at last to the final cut.
	decided atomics.Pointer[cut[E]]

	// head has no slots. The chunks follow it, and are allocations of their own: a
	// Final keeps them alive, and not the changeset.
	head chunk[E]

	// sealEvent goes from nil to the event of the seal, once, by a call of Sealed.
	sealEvent atomics.Pointer[atomics.Event]

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

	// late is the index whose writer appends the next chunk, after its own entry. It
	// completes 7/8, so that the chunk is ready in time. It is a single slot, so that not
	// every writer that reaches the end at once allocates one.
	late uint64

	next atomics.Pointer[chunk[E]] // nil, then for ever, by CAS of any: the next one or, if the log ends here, c itself
}

// Chunks double from firstChunk to maxChunk slots: little changesets are cheap,
// and no more than half of a large one's slots, or maxChunk, lie idle. With
// 1,024 for maxChunk, changesets of 1,000 entries took half as much memory
// again and a tenth more time; those of 100,000 differed by a tenth either way.
func firstChunk() int { return atomics.Limit(16, 1) }

func maxChunk() int { return atomics.Limit(256, 4) }

// newChunk returns a chunk of n slots, and of those that the allocator would leave idle
// behind them: 39 behind 256 slots of 32 bytes with a pointer.
func newChunk[E any](base uint64, n int) *chunk[E] {
	slots := slices.Grow([]slot[E](nil), n)
	slots = slots[:cap(slots)]
	return &chunk[E]{base: base, slots: slots, late: base + uint64(len(slots)-len(slots)/8-1)}
}

// slot holds one entry. The writer that reserved the slot writes the value, before the
// slot is published or after it was killed. Others read it only once it is published.
type slot[E any] struct {
	state atomics.Uint64 // span and kind, which its writer and cuts change by CAS
	value E
}

// Slot.state is the one mutable word of a slot:
//
//	 63                                          2   1    0
//	+----------------------------------------------+--------+
//	|                     span                     |  kind  |
//	+----------------------------------------------+--------+
//
// Span is the number of consecutive slots, this one first, whose outcome the word
// tells; their own words are not looked at. It is 1 but for batches. A batch
// that is killed gives up its span: its slots are killed one by one.
//
//	vacant ─┬─────────────────┬─> published(span)
//	        ├─> pending(span) ┤
//	        └─────────────────┴─> dead
//
// Published and dead are final: such a slot is decided.
const (
	vacant    uint64 = iota // nothing published; perhaps not even reserved
	pending                 // a batch is being copied in
	published               // the slots hold entries, visible to all
	killed                  // a cut gave up on the writer, which goes elsewhere

	kindMask  = 1<<spanShift - 1
	spanShift = 2

	single = published | 1<<spanShift
	dead   = killed | 1<<spanShift
)

// append adds e and returns its index, or false if the log is sealed.
func (l *log[E]) append(e E) (uint64, bool) {
	for {
		c, i, ok := l.reserve(1)
		if !ok {
			l.seal()
			return 0, false
		}
		var s *slot[E]
		if o := i - c.base; o < uint64(len(c.slots)) {
			s = &c.slots[o]
		} else {
			s = l.slot(c, i)
		}
		if s != nil && s.put(e) {
			if i == c.late {
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
			l.seal()
			return 0, false
		}
		if l.putAll(c, i, es) {
			l.watch.Wake()
			return i, true
		}
		// A cut took the slots, as above.
	}
}

// reserve gives the caller k consecutive slots and returns the index of the
// first and a chunk that is not after it. It fails if the log is sealed; then the
// caller calls seal, since it may be the first that sees the bit.
func (l *log[E]) reserve(k int) (*chunk[E], uint64, bool) {
	// The reservation word is not loaded beforehand: under contention that
	// would fetch its cache line twice.
	if l.closed.Load() {
		return nil, 0, false
	}
	c := l.tail.Load() // before the addition: see tail
	n := l.reserved.Add(uint64(k))
	return c, n - uint64(k), n&sealed == 0
}

// put publishes e in a slot that the caller reserved, unless the slot was
// killed.
func (s *slot[E]) put(e E) bool {
	s.value = e
	if s.state.CompareAndSwap(vacant, single) {
		return true
	}
	var zero E
	s.value = zero // still ours: nobody reads dead slots
	return false
}

// putAll publishes es in slots that the caller reserved, starting with i,
// unless they were killed. The first slot's state is that of all.
func (l *log[E]) putAll(c *chunk[E], i uint64, es []E) bool {
	span := uint64(len(es)) << spanShift
	head := l.slot(c, i)
	if head == nil || !head.state.CompareAndSwap(vacant, pending|span) {
		return false
	}
	if l.fill(c, i, es) && head.state.CompareAndSwap(pending|span, published|span) {
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

// slot returns slot i, which is reserved and not before c, or nil if the log
// ended before it.
func (l *log[E]) slot(c *chunk[E], i uint64) *slot[E] {
	if c = l.find(c, i, true); c == nil {
		return nil
	}
	return &c.slots[i-c.base]
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
				next = c.after(c.base + uint64(len(c.slots)))
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

// prepare appends the next chunk if it does not exist yet.
func (c *chunk[E]) prepare() {
	if c.next.Load() == nil {
		c.next.CompareAndSwap(nil, c.after(c.base+uint64(len(c.slots))))
	}
}

// after returns a new chunk to follow c, from base on.
func (c *chunk[E]) after(base uint64) *chunk[E] {
	return newChunk[E](base, min(max(2*len(c.slots), firstChunk()), maxChunk()))
}

// sealed is the top bit of a log's reservation word; the bits below it count
// reserved slots. One word for both makes every reservation tell whether it
// came before the seal.
const sealed = 1 << 63

// maxBatch keeps the count away from the sealed bit, although entries without a
// size could fill any batch: each call adds no more than this after the seal,
// or before it without making as many slots.
const maxBatch = 1 << 40

// seal ends reservations, and does what follows from that. Any goroutine that sees the
// seal bit calls it, so that nothing depends on the one that set it.
func (l *log[E]) seal() {
	if l.closed.Load() {
		return
	}
	l.reserved.Or(sealed) // LP(Seal, Start): the first to set the bit
	if e := l.sealEvent.Load(); e != nil {
		e.TryFire()
	}
	l.watch.Wake()
	l.closed.Store(true) // after the events: whoever sees this has nothing left to do
}

// open reports whether the log accepts entries. If not, the seal is finished.
func (l *log[E]) open() bool {
	if l.reserved.Load()&sealed == 0 {
		return true
	}
	l.seal()
	return false
}

// sealing returns the event of the seal. It may make the event after seal has
// looked for it; but then it sees the bit afterwards, and fires the event itself.
func (l *log[E]) sealing() *atomics.Event {
	e := l.sealEvent.Load()
	if e == nil {
		made := atomics.MakeEvent()
		e = l.sealEvent.Install(&made)
	}
	if !l.open() { // LP(Sealed)
		e.TryFire()
	}
	return e
}

// cut is a cut through a log: all slots below n, which are decided. It is
// immutable.
type cut[E any] struct {
	n     uint64
	live  int       // entries published below n
	chunk *chunk[E] // one that does not start after n; of a final cut the first one, or nil if it has no entries in memory
	final bool      // the log is sealed, and every entry in it is below n
}

// unloaded reports whether the entries are in the store only.
func (m *cut[E]) unloaded() bool { return m.live > 0 && m.chunk == nil }

// cut returns a cut of all slots reserved so far, decided. Once the log is
// sealed, that is the final cut, the same for all, and the seal is finished.
func (l *log[E]) cut() *cut[E] {
	for {
		from := cut[E]{chunk: &l.head}
		m := l.decided.Load()
		if m != nil {
			if m.final {
				return m // whoever made it has finished the seal
			}
			from = *m
		}
		n := l.reserved.Load() // LP(cut)
		final := n&sealed != 0
		n &^= sealed
		if final {
			l.seal()
		} else if m != nil && n == m.n {
			return m
		}
		next := l.decide(from, n, final)
		if next.n < n && !final {
			continue // sealed since: the final cut has ended the list of chunks
		}
		if l.decided.CompareAndSwap(m, next) || !final {
			return next
		}
		// Another cut came further. The final cut must be one for all.
	}
}

// decide returns the cut at n, going on from m. It decides slots in order, from one
// reservation's first slot to the next one's: n is a boundary too.
//
// The final cut may get an n past the last reservation. It ends the list of chunks
// there, and appends no chunks that nobody needs.
func (l *log[E]) decide(m cut[E], n uint64, final bool) *cut[E] {
	c, i, live := m.chunk, m.n, m.live
	var writers spinWait
	for i < n {
		if i-c.base >= uint64(len(c.slots)) {
			if t := l.tail.Load(); t.base > c.base && t.base <= i {
				c = t // rather than walk along a batch
			}
			holder := l.find(c, i, !final)
			if holder == nil {
				break // nothing will be published from here on
			}
			c = holder
		}
		state := c.slots[i-c.base].decide(&writers)
		if state&kindMask == published {
			live += int(state >> spanShift)
		}
		i += state >> spanShift
	}
	if final {
		if c = nil; i > 0 {
			c = l.head.next.Load()
		}
	}
	return &cut[E]{n: i, live: live, chunk: c, final: final}
}

// decide returns the slot's state once that is final. It makes it final when the
// writers' time is up.
func (s *slot[E]) decide(writers *spinWait) uint64 {
	granted := false
	for {
		now := s.state.Load()
		kind, span := now&kindMask, now>>spanShift
		if kind >= published {
			return now
		}
		if kind == pending && !granted {
			granted = true
			writers.extend(span)
		}
		if writers.spin() {
			continue // the writer is about to publish
		}
		if s.state.CompareAndSwap(now, dead) {
			return dead
		}
		// The writer announced its batch, or published.
	}
}

// position is a boundary between reservations: an index, and a chunk that does
// not start after it.
type position[E any] struct {
	chunk *chunk[E]
	i     uint64
}

func (l *log[E]) start() position[E] { return position[E]{&l.head, 0} }

// walk yields indices and entries from p up to the boundary n, below which all
// slots are decided. It returns n's position, or false if the loop has ended
// before.
func (p position[E]) walk(n uint64, yield func(uint64, E) bool) (position[E], bool) {
	for p.i < n {
		slots, i, state := p.run(n), p.i, single
		for j := range slots {
			s := &slots[j]
			if state = s.state.Load(); state != single {
				break
			}
			if !yield(i, s.value) {
				return p, false
			}
			i++
		}
		if p.i = i; state == single {
			continue // with the next chunk
		}
		end := i + state>>spanShift
		if state&kindMask != published {
			p.i = end
		}
		for p.i < end {
			slots := p.run(end)
			for j := range slots {
				if !yield(p.i, slots[j].value) {
					return p, false
				}
				p.i++
			}
		}
	}
	return p, true
}

// run returns slots from p on, which exist and are below n: those in one chunk, to
// which it moves p's chunk.
func (p *position[E]) run(n uint64) []slot[E] {
	c := p.chunk
	for p.i-c.base >= uint64(len(c.slots)) {
		c = c.next.Load()
	}
	p.chunk = c
	slots := c.slots[p.i-c.base:]
	return slots[:min(uint64(len(slots)), n-p.i)]
}

// collect returns the entries of whole reservations from p on, below n: all of them, or
// the first that are enough.
func (p position[E]) collect(n uint64, enough int) (position[E], []Entry[E]) {
	var entries []Entry[E]
	for p.i < n && len(entries) < enough {
		p, _ = p.walk(p.i+p.run(n)[0].state.Load()>>spanShift, func(i uint64, e E) bool {
			entries = append(entries, Entry[E]{i, e})
			return true
		})
	}
	return p, entries
}
