package cowchangeset

import "context"

// applyState says what has become of a sealed changeset. It never changes; a Changeset
// goes from one to the next by CAS, except that the Apply that runs leaves applying by
// a store.
//
//	idle ⇄ applying ─> applied
//	  │       ⇅
//	  │    unstored
//	  └─> aborted
type applyState struct {
	phase  phase
	why    error  // of aborted: the result of Reason
	reason string // its text, for the store
}

type phase uint8

const (
	idle     phase = iota // open, or sealed and neither applied nor aborted
	applying              // one Apply runs, and owns cursor
	unstored              // its function has returned nil, and that Apply could not tell the store
	applied
	aborted
)

// finished reports whether the changeset is applied or aborted.
func (s *applyState) finished() bool { return s.phaseNow() == applied || s.phaseNow() == aborted }

// pending reports whether the changeset is neither aborted nor, as far as the store knows, applied.
func (c *Changeset[E]) pending() bool {
	s := c.applyState.Load()
	return !s.finished() && (s.phaseNow() != unstored || !c.stored())
}

// phaseNow returns the phase; nil is idle.
func (s *applyState) phaseNow() phase {
	if s == nil {
		return idle
	}
	return s.phase
}

// Apply seals the changeset and calls fn with its entries. With a Store fn must be safe to repeat:
// it may run again after Resume, if the process ends before the store has been told that fn
// returned nil, or if the store is not an Applier. If fn returns nil, the changeset is applied, and
// every later Apply returns ErrApplied; if fn fails, panics or calls runtime.Goexit, another Apply
// may try again.
//
// One Apply of a changeset runs at a time; others return ErrApplying. Entries recorded meanwhile go
// to the next changeset. With a Store, fn runs once the store has the whole changeset. If the store
// cannot be told that fn returned nil, Apply returns a StoreError, and another Apply only tells the
// store.
//
// Apply returns ErrAborted after Abort, and the cause of ctx if that is done before fn
// runs. It panics if ctx or fn is nil.
//
// Apply is blocking: it waits for fn and, as long as ctx lasts, for the Store if there is
// one. It takes effect when fn has returned.
func (c *Changeset[E]) Apply(ctx context.Context, fn func(context.Context, Final[E]) error) error {
	needContext(ctx, "Changeset.Apply")
	if fn == nil {
		panic("cowchangeset: Changeset.Apply called with a nil function")
	}
	return c.apply(ctx, func(f Final[E]) error { return fn(ctx, f) })
}

// ApplyEach is Apply entry by entry, in order. If fn fails, or ctx is done between two
// entries, the next ApplyEach goes on with the first entry for which fn has not returned
// nil; also after Resume, if the store is an Applier, when it may repeat one. Apply starts
// from the first entry in any case.
//
// ApplyEach is blocking: it waits for fn and, as long as ctx lasts, for the Store if there
// is one. It takes effect for each entry when fn has returned.
func (c *Changeset[E]) ApplyEach(ctx context.Context, fn func(ctx context.Context, seq uint64, e E) error) error {
	needContext(ctx, "Changeset.ApplyEach")
	if fn == nil {
		panic("cowchangeset: Changeset.ApplyEach called with a nil function")
	}
	return c.apply(ctx, func(f Final[E]) error {
		if err := c.flushed(ctx); err != nil {
			return err // no further than one entry ahead of the store
		}
		from := c.cursor.Load()
		for seq, e := range f.All() {
			if seq < from {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := fn(ctx, seq, e); err != nil {
				return err
			}
			c.cursor.Store(seq + 1) // LP(ApplyEach)
			if err := c.flushed(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Changeset[E]) apply(ctx context.Context, fn func(Final[E]) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s := c.applyState.Load(); s.finished() && c.log.cut().unloaded() {
		return s.phase.refusal() // and the store knows
	}
	f, err := c.Seal(ctx)
	if err != nil {
		if s := c.applyState.Load(); ctx.Err() == nil && s.finished() {
			return s.phase.refusal()
		}
		return err
	}
	was := c.applyState.Load()
	next := was.phaseNow()
	if next != idle && next != unstored {
		return next.refusal()
	}
	if !c.applyState.CompareAndSwap(was, &applyState{phase: applying}) {
		return c.applyState.Load().phaseNow().refusal()
	}
	defer func() { c.applyState.Store(&applyState{phase: next}) }() // LP(Apply)
	if next == idle {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fn(f); err != nil {
			return err
		}
		c.cursor.Store(AllApplied)
		next = unstored
	}
	if err := c.flushed(ctx); err != nil {
		return err
	}
	next = applied
	return nil
}

// refusal returns why a changeset in this phase cannot be applied or aborted.
func (p phase) refusal() error {
	switch p {
	case applied, unstored:
		return ErrApplied
	case aborted:
		return ErrAborted
	}
	return ErrApplying // or it was, a moment ago
}

// flushed waits until the store, if there is one, knows all that has become of the
// changeset, or until ctx has ended.
func (c *Changeset[E]) flushed(ctx context.Context) error {
	if c.flusher == nil {
		return nil
	}
	return c.flusher.await(ctx, c.due(c.log.cut()))
}

// Applied returns how far the changeset is applied: ApplyEach has applied all entries
// with a Seq below it. It is AllApplied when the whole changeset is applied.
//
// Applied is wait-free. It takes effect when the number is read.
func (c *Changeset[E]) Applied() uint64 { return c.cursor.Load() } // LP(Applied)

// Abort seals the changeset and marks it as not to be applied. The error why is the reason, or nil.
// Abort returns ErrApplied or ErrApplying if it comes too late. Another Abort returns nil, and the
// first reason stays. If ctx is done, nothing changes. Abort panics if ctx is nil.
//
// With a Store, Abort returns when the store has been told, or with a StoreError: then another
// Abort tells it.
//
// Abort is lock-free, and with a Store blocking on that. It takes effect when the
// changeset is marked, after it was sealed.
func (c *Changeset[E]) Abort(ctx context.Context, why error) error {
	needContext(ctx, "Changeset.Abort")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	next := &applyState{phase: aborted, why: ErrAborted}
	if why != nil {
		next.why, next.reason = why, why.Error() // user code, which may panic
	}
	c.log.seal()
	for {
		was := c.applyState.Load() // LP(Abort): aborted before, or it cannot be
		if was.phaseNow() == aborted {
			break
		}
		if was.phaseNow() != idle {
			return was.phaseNow().refusal()
		}
		if c.applyState.CompareAndSwap(was, next) { // LP(Abort)
			break
		}
		// An Apply has begun, or another Abort was faster.
	}
	return c.flushed(ctx)
}

// Reason returns the error given to Abort, ErrAborted if that was nil, or nil if the
// changeset was not aborted. After Resume it is an error with the same text, if that has any.
//
// Reason is wait-free. It takes effect when the changeset is seen to be aborted.
func (c *Changeset[E]) Reason() error {
	if s := c.applyState.Load(); s.phaseNow() == aborted { // LP(Reason)
		return s.why
	}
	return nil
}
