package cowchangeset

import "context"

// The steps of operations, for tests that stop between them: a goroutine that
// stalls after a step is a test that does not take the next one.

var (
	FirstChunk = firstChunk()
	MaxChunk   = maxChunk()
)

// Writer is a Record or RecordBatch that takes one step at a time.
type Writer[E any] struct {
	cs *Changeset[E]
	c  *chunk[E]
	i  uint64
	es []E
}

// Reserve takes the first step: the addition.
func (c *Changeset[E]) Reserve(es ...E) (*Writer[E], bool) {
	first, i, ok := c.log.reserve(len(es))
	return &Writer[E]{c, first, i, es}, ok
}

func (w *Writer[E]) Seq() uint64 { return w.i }

// Put takes the remaining steps of a Record.
func (w *Writer[E]) Put() bool {
	s := w.cs.log.slot(w.c, w.i)
	return s != nil && s.put(w.es[0])
}

// PutAll takes the remaining steps of a RecordBatch.
func (w *Writer[E]) PutAll() bool { return w.cs.log.putAll(w.c, w.i, w.es) }

// Announce takes the second step of a RecordBatch: it says how long it is.
func (w *Writer[E]) Announce() bool {
	return w.cs.log.slot(w.c, w.i).state.CompareAndSwap(vacant, pending|uint64(len(w.es))<<spanShift)
}

// Fill takes the third step: it writes the first n entries.
func (w *Writer[E]) Fill(n int) bool { return w.cs.log.fill(w.c, w.i, w.es[:n]) }

// Publish takes the last step.
func (w *Writer[E]) Publish() bool {
	span := uint64(len(w.es)) << spanShift
	return w.cs.log.slot(w.c, w.i).state.CompareAndSwap(pending|span, published|span)
}

// SealBit sets the seal bit, as Seal does first, and nothing else.
func (c *Changeset[E]) SealBit() { c.log.reserved.Or(sealed) }

// Fired reports whether the channel of Sealed is closed or, if nobody has asked for
// that, whether all is done that follows from the seal.
func (c *Changeset[E]) Fired() bool {
	if e := c.log.sealEvent.Load(); e != nil {
		return e.Fired()
	}
	return c.log.closed.Load()
}

// Sleep takes the step of a Follow that comes before it sleeps, and returns whether
// it has been woken.
func (c *Changeset[E]) Sleep() (woken func() bool) { return c.log.watch.Event().Fired }

// Cut cuts, as Follow does, and Grown takes the next step of a Follow that has seen all that is in the cut: it asks
// whether there is more.
func (c *Changeset[E]) Cut() *cut[E] { return c.log.cut() }

// CutsAll reports whether a cut has all slots that were reserved before, or is final.
func (c *Changeset[E]) CutsAll() bool {
	n := c.Reserved()
	m := c.log.cut()
	return m.n >= n || m.final
}

func (c *Changeset[E]) Grown(m *cut[E]) bool { return c.log.grown(m) }

// WakeSlowly takes the first step of who wakes Follows: it fires what they have
// slept on, and leaves it there.
func (c *Changeset[E]) WakeSlowly() { c.log.watch.Event().TryFire() }

// Reserved returns the count of the reservation word.
func (c *Changeset[E]) Reserved() uint64 { return c.log.reserved.Load() &^ sealed }

// Ready makes the first chunk, as the first writer does.
func (c *Changeset[E]) Ready() { c.log.find(&c.log.head, 0, true) }

// Chunks returns how many chunks the log has.
func (c *Changeset[E]) Chunks() int {
	n := 0
	for range c.log.chunks {
		n++
	}
	return n
}

// chunks yields those that have slots.
func (l *log[E]) chunks(yield func(*chunk[E]) bool) {
	for c := &l.head; ; {
		next := c.next.Load()
		if next == nil || next == c || !yield(next) {
			return
		}
		c = next
	}
}

// Remains returns what lies in slots that hold no entry.
func (c *Changeset[E]) Remains() (es []E) {
	i := uint64(0) // the next slot whose state counts
	for k := range c.log.chunks {
		for j := range k.slots {
			at := k.base + uint64(j)
			if at < i {
				continue
			}
			if state := k.slots[j].state.Load(); state&kindMask == published {
				i = at + state>>spanShift
			} else {
				es = append(es, k.slots[j].value)
			}
		}
	}
	return es
}

// Announce takes the first step of a Start, and nothing else.
func (t *Tracker[E]) Announce(id string) *Changeset[E] {
	c := t.latest()
	n := newChangeset(t, c, id)
	if !t.link(c).CompareAndSwap(nil, n) {
		panic("not alone")
	}
	return n
}

// Help takes the other steps of the Start that announced a successor of c.
func (t *Tracker[E]) Help(c *Changeset[E]) bool { return t.next(c) != nil }

// Swung returns what the current pointer points to.
func (t *Tracker[E]) Swung() *Changeset[E] { return t.current.Load() }

// Sleep takes the step of a Follow that waits for a Start and comes to sleep, and returns
// whether it has been woken.
func (t *Tracker[E]) Sleep() (woken func() bool) { return t.starts.Event().Fired }

// AppendClaim takes the first step of an Append in place. The function it
// returns takes the others.
func (s *Slice[T]) AppendClaim(items ...T) (finish func() bool) {
	a := s.arr.Load()
	w := a.load()
	if w&(claimed|frozen) != 0 || !a.claim(w) {
		panic("not alone")
	}
	return func() bool {
		copy(a.items[w.length():], items)
		return a.publish(w, uint64(len(items)))
	}
}

// Freeze takes the first step of a replacement, and nothing else.
func (s *Slice[T]) Freeze() {
	a := s.arr.Load()
	a.freeze(a.load())
}

// Cap returns the room of the array.
func (s *Slice[T]) Cap() int {
	if a := s.arr.Load(); a != nil {
		return len(a.items)
	}
	return 0
}

// Remains returns a function that returns what lies behind the length of the
// array that is current now.
func (s *Slice[T]) Remains() func() []T {
	a := s.arr.Load()
	return func() []T {
		if a == nil {
			return nil
		}
		return a.items[a.load().length():]
	}
}

// RecordSlowly is Record with a pause after each step.
func (t *Tracker[E]) RecordSlowly(e E, pause func()) (Receipt, error) {
	for {
		c := t.current.Load()
		pause()
		if c != nil {
			for {
				first, i, ok := c.log.reserve(1)
				if !ok {
					break
				}
				pause()
				s := c.log.slot(first, i)
				pause()
				if s != nil && s.put(e) {
					return c.receipt(i), nil
				}
			}
		}
		if err := t.advance(c); err != nil {
			return Receipt{}, err
		}
	}
}

// AppendSlowly is AppendClaim with a pause, or Append if there is no claiming.
func (s *Slice[T]) AppendSlowly(v T, pause func()) {
	if a := s.arr.Load(); a != nil {
		w := a.load()
		if w&(claimed|frozen) == 0 && w.length() < uint64(len(a.items)) && a.claim(w) {
			pause()
			a.items[w.length()] = v
			pause()
			if a.publish(w, 1) {
				return
			}
		}
	}
	s.Append(v)
}

// Unbounded lets the store take its time from now on. Nobody uses the tracker.
func (t *Tracker[E]) Unbounded() { t.storage.timeout = 0 }

// Enqueue waits for a turn to tell the store of a Start, which pass ends.
func (t *Tracker[E]) Enqueue(ctx context.Context) (pass func(), err error) {
	mine, err := t.storage.enqueue(ctx)
	if err != nil {
		return nil, err
	}
	return mine.released.Fire, nil
}

// InLine returns how many turns to tell the store of a Start can be reached.
func (t *Tracker[E]) InLine() (n int) {
	for w := t.storage.lastTicket.Load(); w != nil; w = w.ahead {
		n++
	}
	return n
}

// Settled returns the last step of a Start of a changeset that the store knows.
func (t *Tracker[E]) Settled(id string) (appear func()) {
	n := newChangeset(t, t.latest(), id)
	return func() { t.appear(n) }
}

// FirstOrdinal returns the ordinal of the first changeset that Prune has not
// forgotten.
func (t *Tracker[E]) FirstOrdinal() uint64 { return t.first.Load().ordinal }

// Forgotten returns the changesets before the latest of which the store lacks something, though no call of retry will
// look for them. Nothing else runs.
func Forgotten[E any](t *Tracker[E]) (ids []string) {
	if RetriesOlder(t) {
		return nil
	}
	for c := t.first.Load(); c != nil && c.next.Load() != nil; c = c.next.Load() {
		if !c.stored() {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// RetriesOlder reports whether the next Record looks for changesets before the latest of which the store lacks something.
func RetriesOlder[E any](t *Tracker[E]) bool { return t.storage.owed.Load() }
