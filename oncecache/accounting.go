package oncecache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// accounting counts for all keys of a cache together. It is on cache lines of its own,
// because hits do not touch it.
type accounting struct {
	_ atomics.CacheLinePad

	// work is a tally. Creations and Close write it.
	work atomics.Uint64

	// Counts of Stats that the writers of work write too, on the line of work.
	created, closings atomics.Gauge

	idle atomics.Waker // of calls of Close, by calls that have left nothing pending

	// troubles is the last of the errors that no caller got, linked to those
	// before it. It is replaced by CAS. More counts the errors that are not kept.
	troubles atomics.Pointer[trouble]
	more     atomics.Int64

	// The other counts of Stats.
	failed, panicked, timedOut, evicted, idled, expired atomics.Gauge
	createTime                                          atomics.Gauge // in nanoseconds
	weight                                              atomics.Gauge // of the order; written under its mutex

	_ atomics.CacheLinePad

	epoch time.Time // when the cache was made; never changes
}

// tally is the state of a cache's work in one word:
//
//	bits 32…63  creating  the entries in the table without a value: in creation, or kept errors
//	bits  1…31  pending   Close waits for these: create functions that run, and,
//	                      if there is a Close function, values it has not seen
//	bit   0     closed    Close was called
//
// Creating is signed. It is short by one for a moment if Set or Delete end a
// creation before its inserter has counted it. Pending is short by one, and borrows from creating,
// if a value is closed before its creator has moved it here from a spare.
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

// begin adds the given counts, and reports whether the cache is closed.
func (a *accounting) begin(what tally) (closed bool) { return tally(a.work.Add(uint64(what))).closed() }

// finish takes off the given counts, and wakes Close if nothing is pending then.
func (a *accounting) finish(what tally) {
	if what == 0 {
		return
	}
	now := tally(a.work.Add(-uint64(what)))
	if !now.closed() || now.pending() != 0 {
		return
	}
	a.idle.Wake()
}

// pending reports whether anything is pending. What is in a spare, and stays, comes to work before
// it leaves the spare: so work is read last.
func (r *root[K]) pending() bool {
	return r.spared() != 0 || tally(r.accounting.work.Load()).pending() != 0
}

// wait returns when nothing is pending, or with an error when ctx has ended.
func (r *root[K]) wait(ctx context.Context) error {
	for r.pending() {
		w := r.accounting.idle.Event()
		if !r.pending() {
			return nil
		}
		if err := w.WaitContext(ctx); err != nil && r.pending() {
			return err
		}
		// Something may have begun and found the cache closed; it is short.
	}
	return nil
}

// now returns the time since the cache was made, and longAgo.
func (r *root[K]) now() time.Duration { return r.accounting.now() }

func (a *accounting) now() time.Duration { return longAgo + atomics.Since(a.epoch) }

// real returns the first time that is none of a bubble's, whose clock begins in the year 2000.
func (a *accounting) real() time.Duration {
	if a.epoch == a.epoch.Round(0) { // it was made in a bubble: see atomics.Bubble
		return longAgo + 20*365*24*time.Hour
	}
	return longAgo
}

// longAgo keeps all times above zero, also in a bubble of testing/synctest, whose clock begins
// in the year 2000, when the cache was made outside. It leaves 190 years.
const longAgo = 100 * 365 * 24 * time.Hour

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
		// Another caller has noted an error.
	}
}

// verdict returns the error of Close: err, because of which it stopped waiting, and
// the errors that were noted, oldest first.
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
