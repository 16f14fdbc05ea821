package oncecache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// accounting are what a cache keeps of all keys together. They are on cache lines
// of their own, because hits do not touch them.
type accounting struct {
	_ atomics.CacheLinePad

	// work is a tally: what goes on. Creations write it, and Close.
	work atomics.Uint64

	// What Stats shows, and writers of work write, on its line.
	created, closings atomics.Gauge

	// idle is made by a Close that has to wait, nil → non-nil, and taken back
	// and fired by a caller that has left nothing pending.
	idle atomics.Pointer[atomics.Event]

	// troubles is the last of the errors that nobody has been told, linked to
	// those before it. It is replaced by CAS. More counts those that were not
	// kept.
	troubles atomics.Pointer[trouble]
	more     atomics.Int64

	// The rest of what Stats shows.
	failed, panicked, timedOut, evicted atomics.Gauge

	_ atomics.CacheLinePad

	epoch time.Time // when the cache was made; never changes
}

// tally is what goes on in a cache, in one word:
//
//	bits 32…63  creating  the entries in the table that are being created
//	bits  1…31  pending   what Close waits for: create functions that run, and,
//	                      if there is a Close function, values it has not seen
//	bit   0     closed    Close was called
//
// Creating is signed. It is short by one for a moment if Set or Delete end a
// creation before its inserter has counted it.
type tally uint64

const (
	closed      tally = 1
	onePending  tally = 1 << 1
	oneCreating tally = 1 << 32
)

func (t tally) closed() bool  { return t&closed != 0 }
func (t tally) pending() int  { return int(uint32(t) >> 1) }
func (t tally) creating() int { return int(int32(t >> 32)) }

// count counts a create function that has ended.
func (a *accounting) count(failure error, cut bool) {
	switch {
	case failure == nil:
		a.created.Add(1)
	case failure == errNoBase: // it was not called
	case cut:
		a.panicked.Add(1)
	default:
		a.failed.Add(1)
	}
}

// begin adds what begins, and reports whether the cache is closed.
func (a *accounting) begin(what tally) (closed bool) { return tally(a.work.Add(uint64(what))).closed() }

// finish takes off what is over, and wakes Close if that was the last of it.
func (a *accounting) finish(what tally) {
	if what == 0 {
		return
	}
	now := tally(a.work.Add(-uint64(what)))
	if !now.closed() || now.pending() != 0 {
		return
	}
	if w := a.idle.Swap(nil); w != nil {
		w.Fire()
	}
}

// wait returns when nothing is pending, or with an error when ctx has ended.
//
// No wake-up is lost: the caller publishes the event and then looks at work,
// and whoever finishes changes work and then looks for the event.
func (a *accounting) wait(ctx context.Context) error {
	for tally(a.work.Load()).pending() != 0 {
		w := a.idle.Load()
		if w == nil {
			made := atomics.MakeEvent()
			if w = &made; !a.idle.CompareAndSwap(nil, w) {
				continue // another Close came, or a caller finished
			}
		}
		if tally(a.work.Load()).pending() == 0 {
			return nil
		}
		if err := w.WaitContext(ctx); err != nil && tally(a.work.Load()).pending() != 0 {
			return err
		}
		// Something may have begun and found the cache closed; it is short.
	}
	return nil
}

// now returns the time since the cache was made.
func (r *root[K]) now() time.Duration { return atomics.Since(r.accounting.epoch) }

// trouble is an error that Close will return.
type trouble struct {
	err   error
	count int // of errors until this one
	prior *trouble
}

// maxTroubles bounds what a cache keeps of a Close function that always fails.
const maxTroubles = 100

// note keeps err for Close, or only counts it if there are too many.
func (a *accounting) note(err error) {
	for {
		last := a.troubles.Load()
		now := &trouble{err: err, count: 1, prior: last}
		if last != nil {
			now.count += last.count
		}
		if now.count > maxTroubles {
			a.more.Add(1)
			return
		}
		if a.troubles.CompareAndSwap(last, now) {
			return
		}
		// Another caller has noted an error.
	}
}

// verdict is what Close returns: why it stopped waiting, and what was noted,
// oldest first.
func (a *accounting) verdict(err error) error {
	last := a.troubles.Load()
	if last == nil {
		return err
	}
	errs := []error{err}
	if n := a.more.Load(); n > 0 {
		errs = append(errs, fmt.Errorf("oncecache: and %d more errors", n))
	}
	for t := last; t != nil; t = t.prior {
		errs = append(errs, t.err)
	}
	slices.Reverse(errs[1:])
	return errors.Join(errs...)
}
