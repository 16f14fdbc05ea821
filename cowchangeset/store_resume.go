package cowchangeset

import (
	"context"
	"errors"
	"fmt"
)

// Resume returns a tracker with the contents of the Store: each changeset that was
// started, with its durable entries and their receipts; and perhaps, at the end, one whose
// Start had failed. The latest changeset goes on if it was not sealed; those before it are
// sealed.
//
// The Store must be a Loader, and no other tracker may use it. Resume reads it on the
// caller's goroutine, and releases a Claimer if it fails. It panics if ctx is nil.
func Resume[E any](ctx context.Context, config Config[E]) (*Tracker[E], error) {
	needContext(ctx, "Resume")
	loader, ok := config.Store.(Loader[E])
	if !ok {
		return nil, errors.New("cowchangeset: Config.Store: must be a Loader for Resume")
	}
	t, err := newTracker(ctx, config)
	if err != nil {
		return nil, err
	}
	resumed := false
	defer func() {
		if c, ok := config.Store.(Claimer); ok && !resumed {
			c.Release()
		}
	}()
	var last *Changeset[E]
	for saved, err := range loader.Load(ctx) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			last, err = t.restore(last, saved)
		}
		if err != nil {
			return nil, &StoreError{ChangesetID: saved.ID, Method: "Load", Err: err}
		}
	}
	if ctx.Err() != nil { // there may be more
		return nil, &StoreError{Method: "Load", Err: context.Cause(ctx)}
	}
	resumed = true
	if t.storage.pruner != nil {
		t.storage.pruner.durable.Store(max(1, t.forgotten().below)) // it knows what it has forgotten
	}
	for c := t.first.Load(); c != nil; c = c.next.Load() {
		if !c.stored() {
			c.flusher.request()
		}
	}
	return t, nil
}

// restore makes a changeset of saved, and makes it the latest one. The tracker is
// private.
func (t *Tracker[E]) restore(last *Changeset[E], saved Saved[E]) (*Changeset[E], error) {
	c := newChangeset(t, last, saved.ID)
	switch {
	case saved.ID == "":
		return nil, errors.New("empty ID")
	case last == nil:
		c.ordinal = saved.Ordinal // more than 1 if the store has forgotten some
	case saved.Ordinal != c.ordinal:
		return nil, fmt.Errorf("its ordinal is %d, after %d", saved.Ordinal, last.ordinal)
	case saved.Previous != last.id:
		return nil, fmt.Errorf("it follows %q, after %q", saved.Previous, last.id)
	}
	if c.ordinal == 0 {
		return nil, errors.New("its ordinal is 0")
	}
	if saved.Manifest.Len > 0 {
		if err := c.leave(saved); err != nil {
			return nil, err
		}
	} else if err := c.log.restore(saved.Entries); err != nil {
		return nil, err
	}
	m := c.log.cut()
	f := c.flusher
	f.durable.Store(m.n)
	f.at = position[E]{m.chunk, m.n}
	if n := len(saved.Entries); n > 0 {
		f.last = saved.Entries[n-1].Seq
	}
	if saved.Sealed || saved.Aborted || saved.Applied > 0 { // which come after the seal
		f.known.Store(knowsSeal)
		c.log.seal()
	}
	c.cursor.Store(saved.Applied)
	f.applied.Store(saved.Applied)
	switch {
	case saved.Aborted:
		f.known.Or(knowsAbort)
		why := ErrAborted
		if saved.Reason != "" {
			why = errors.New(saved.Reason)
		}
		c.applyState.Store(&applyState{aborted, why, saved.Reason})
	case saved.Applied == AllApplied:
		c.applyState.Store(&applyState{phase: applied})
	}
	t.link(last).Store(c)
	t.succeed(last, c)
	return c, nil
}

// leave leaves the entries of a private changeset in the store.
func (c *Changeset[E]) leave(saved Saved[E]) error {
	_, ok := c.tracker.storage.store.(EntryLoader[E])
	m := saved.Manifest
	switch {
	case !ok:
		return errors.New("its entries are left out, and the store is no EntryLoader")
	case !saved.Aborted && saved.Applied != AllApplied || len(saved.Entries) > 0:
		return errors.New("its Manifest is not of entries that may be left out")
	case m.Last >= maxSeq || uint64(m.Len) > m.Last+1:
		return fmt.Errorf("it cannot have %d entries up to seq %d", m.Len, m.Last)
	}
	c.log.decided.Store(&cut[E]{n: m.Last + 1, live: m.Len, final: true})
	return nil
}

// read reads the entries that were left in the store, and returns the first chunk of a
// log that has them.
func (c *Changeset[E]) read(ctx context.Context, m *cut[E]) (*chunk[E], error) {
	var entries []Entry[E]
	err := bounded(ctx, c.tracker.storage.timeout, func(ctx context.Context) error {
		for e, err := range c.tracker.storage.store.(EntryLoader[E]).LoadEntries(ctx, c.id) {
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	l := &newChangeset(c.tracker, nil, c.id).log
	if err == nil {
		err = l.restore(entries)
	}
	if n := l.reserved.Load(); err == nil && (n != m.n || len(entries) != m.live) {
		err = fmt.Errorf("it yields %d entries below %d, and its Manifest has %d below %d", len(entries), n, m.live, m.n)
	}
	if err != nil {
		return nil, &StoreError{ChangesetID: c.id, Method: "LoadEntries", Err: err}
	}
	return l.head.next.Load(), nil
}

// maxSeq keeps the numbers of a store below the sealed bit.
const maxSeq = 1 << 62

// restore fills a log that is private and empty.
func (l *log[E]) restore(entries []Entry[E]) error {
	next, c := uint64(0), &l.head
	for _, e := range entries {
		if e.Seq < next {
			return fmt.Errorf("entry %d comes after entry %d", e.Seq, next-1)
		}
		if e.Seq >= maxSeq {
			return fmt.Errorf("entry %d is beyond what a changeset can have", e.Seq)
		}
		if e.Seq != next {
			c, next = l.skip(c, next, e.Seq), e.Seq
		}
		c = l.find(c, next, true)
		s := &c.slots[next-c.base]
		s.value = e.Value
		s.state.Store(single)
		next++
	}
	l.reserved.Store(next)
	return nil
}

// skip leaves out the slots from i to n, those of voided writers: one slot stands for
// all. If they are many, the next chunk begins behind them, and they take no memory. It
// returns a chunk that is not after n.
func (l *log[E]) skip(c *chunk[E], i, n uint64) *chunk[E] {
	c = l.find(c, i, true)
	c.slots[i-c.base].state.Store(killed | (n-i)<<spanShift)
	if n-i > uint64(len(c.slots)) { // so that n is beyond c
		c.next.Store(c.after(n))
	}
	return c
}
