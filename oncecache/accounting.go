package oncecache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// accounting counts for all keys of a cache together. It is on cache lines of its own, because
// creations write it, and hits read what lies beside it.
type accounting struct {
	_ atomics.CacheLinePad

	work atomics.Uint64 // a tally; creations and Close write it

	// Counts of Stats that the writers of work write too, on the line of work.
	created, closings atomics.Gauge

	aside atomics.Gauge // entries that Refresh creates, and which are not in the table
	idle  atomics.Waker // of calls of Close, by calls that have left nothing pending

	// troubles is the last of the errors that no caller got, linked to those before it. It is
	// replaced by CAS. More counts the errors that are not kept.
	troubles atomics.Pointer[trouble]
	more     atomics.Int64

	// The other counts of Stats.
	failed, panicked, timedOut, renewals, evicted, idled, expired atomics.Gauge
	createTime                                                    atomics.Gauge // in nanoseconds

	_ atomics.CacheLinePad

	epoch time.Time // when the cache was made; never changes
}

// tally is the state of a cache's work in one word:
//
//	bits 32…63  creating  entries without a value: in creation, kept errors, closing; signed
//	bits  1…31  pending   Close waits for these: create functions that run, and, if the
//	                      cache owns its values, those that are not closed
//	bit   0     closed    Close was called
//
// Creating is short by one for a moment if another call ends a creation before its inserter has counted it.
type tally uint64

const (
	closed      tally = 1
	onePending  tally = 1 << 1
	oneCreating tally = 1 << 32
)

func (t tally) closed() bool  { return t&closed != 0 }
func (t tally) pending() int  { return int(uint32(t) >> 1) }
func (t tally) creating() int { return int(int32(t >> 32)) }

// begin adds the given counts, and reports whether the cache is closed.
func (a *accounting) begin(what tally) (closed bool) {
	return tally(a.work.Add(uint64(what))).closed()
}

// finish takes off the given counts, and wakes Close if nothing is pending then.
func (a *accounting) finish(what tally) {
	if what == 0 {
		return
	}
	if now := tally(a.work.Add(-uint64(what))); now.closed() && now.pending() == 0 {
		a.idle.Wake()
	}
}

// countFailure counts a create function that has returned no value.
func (a *accounting) countFailure(how *result) {
	switch {
	case how.stays:
		a.created.Add(1)
	case how.cut:
		a.panicked.Add(1)
	case how.err != errAgain: // then it was not called
		a.failed.Add(1)
	}
}

// now returns the present moment.
func (r *root[K, V]) now() time.Duration { return longAgo + atomics.Since(r.accounting.epoch) }

// wait returns when nothing is pending, or with an error when ctx has ended.
func (r *root[K, V]) wait(ctx context.Context) error {
	a := r.accounting
	for tally(a.work.Load()).pending() != 0 {
		w := a.idle.Event()
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

// trouble is an error that Close will return.
type trouble struct {
	err   error
	count int // of errors until this one
	prior *trouble
}

// maxTroubles bounds how many errors a cache keeps if its Close function always fails.
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
	}
}

// verdict returns the error of Close: err, because of which it stopped waiting, and the errors
// that were noted, oldest first.
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
