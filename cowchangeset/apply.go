package cowchangeset

import (
	"context"
	"errors"
)

// phase is what becomes of a sealed changeset.
//
//	idle ⇄ applying ─> applied
//	  │       ⇅
//	  │      done
//	  └─> aborted
type phase = uint32

const (
	idle     phase = iota // open, or sealed and neither applied nor aborted
	applying              // one Apply runs, and owns cursor
	done                  // its function has returned nil, and the store could not be told
	applied
	aborted
)

// reason is why a changeset was aborted.
type reason struct{ text string }

// Apply seals the changeset and calls fn with its entries. If fn returns nil,
// the changeset is applied, and every later Apply returns ErrApplied. If fn
// fails, by an error, a panic or runtime.Goexit, Apply may be called again.
//
// At most one Apply runs at a time for a changeset: others return ErrApplying
// meanwhile. They delay no Record and no Start: what is recorded while fn runs
// goes to the next changeset. With a Store, fn runs when the store has the whole
// changeset; if the store is an Applier, it is told before Apply returns.
//
// Apply returns ErrAborted after Abort, and the cause of ctx if that is done
// before fn runs. It panics if ctx or fn is nil.
//
// Apply is blocking: it waits for fn, and for the Store if there is one. It takes
// effect when fn has returned.
func (c *Changeset[E]) Apply(ctx context.Context, fn func(context.Context, Final[E]) error) error {
	if ctx == nil {
		panic("cowchangeset: Changeset.Apply called with a nil context")
	}
	if fn == nil {
		panic("cowchangeset: Changeset.Apply called with a nil function")
	}
	return c.apply(ctx, func(f Final[E]) error { return fn(ctx, f) })
}

// ApplyEach is Apply entry by entry, in order. If fn fails for an entry, or if
// ctx is done between two entries, the next ApplyEach goes on with the first entry
// that fn did not return nil for; so does one after Resume, if the store is an
// Applier, but for the one entry that was being applied when the process ended.
// Apply starts from the first entry in any case.
//
// ApplyEach is blocking: it waits for fn, and for the Store if there is one. It
// takes effect for each entry when fn has returned.
func (c *Changeset[E]) ApplyEach(ctx context.Context, fn func(ctx context.Context, seq uint64, e E) error) error {
	if ctx == nil {
		panic("cowchangeset: Changeset.ApplyEach called with a nil context")
	}
	if fn == nil {
		panic("cowchangeset: Changeset.ApplyEach called with a nil function")
	}
	return c.apply(ctx, func(f Final[E]) error {
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
			if err := c.noteApplied(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Changeset[E]) apply(ctx context.Context, fn func(Final[E]) error) error {
	f, err := c.Seal(ctx)
	if err != nil {
		return err
	}
	next := idle
	switch {
	case c.phase.CompareAndSwap(idle, applying):
	case c.phase.CompareAndSwap(done, applying):
		next = done
	default:
		return c.notIdle()
	}
	defer func() { c.phase.Store(next) }() // LP(Apply)
	if next == idle {
		if err := fn(f); err != nil {
			return err
		}
		c.cursor.Store(AllApplied)
		next = done
	}
	if err := c.noteApplied(); err != nil {
		return err
	}
	next = applied
	return nil
}

// notIdle returns why the changeset cannot be applied or aborted now.
func (c *Changeset[E]) notIdle() error {
	switch c.phase.Load() {
	case applied, done:
		return ErrApplied
	case aborted:
		return ErrAborted
	}
	return ErrApplying // or it was, a moment ago
}

// noteApplied tells the store how far the changeset is applied, if it wants to
// know: also if the caller's context has ended meanwhile.
func (c *Changeset[E]) noteApplied() error {
	if c.keep == nil {
		return nil
	}
	return c.keep.until(context.Background(), c.due(c.cut()))
}

// Applied returns how far the changeset is applied: ApplyEach has applied all
// entries with a Seq below it. It is AllApplied when the changeset is.
//
// Applied is wait-free. It takes effect when the number is read.
func (c *Changeset[E]) Applied() uint64 { return c.cursor.Load() } // LP(Applied)

// Abort seals the changeset and says that it is not to be applied, and why; nil
// gives no reason. It returns ErrApplied or ErrApplying if the changeset is, and
// changes nothing then but the seal. Who aborts again gets nil, and the first
// reason stays. With a Store, Abort returns when the store knows it; if that
// fails, the changeset is aborted all the same, and Abort may be called again to
// tell the store. If ctx is done, nothing changes. Abort panics if ctx is nil.
//
// Abort is lock-free, and with a Store blocking on that. It takes effect when the
// changeset is marked, after it was sealed.
func (c *Changeset[E]) Abort(ctx context.Context, why error) error {
	if ctx == nil {
		panic("cowchangeset: Changeset.Abort called with a nil context")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.seal()
	r := new(reason)
	if why != nil {
		r.text = why.Error()
	}
	c.reason.CompareAndSwap(nil, r)
	if !c.phase.CompareAndSwap(idle, aborted) { // LP(Abort)
		if err := c.notIdle(); err != ErrAborted {
			return err
		}
	}
	if c.keep == nil {
		return nil
	}
	return c.keep.until(ctx, c.due(c.cut()))
}

// Reason returns why the changeset was aborted, or nil if it was not.
//
// Reason is wait-free. It takes effect when the changeset is seen to be aborted.
func (c *Changeset[E]) Reason() error {
	if c.phase.Load() != aborted { // LP(Reason)
		return nil
	}
	if text := c.reason.Load().text; text != "" {
		return errors.New(text)
	}
	return ErrAborted
}
