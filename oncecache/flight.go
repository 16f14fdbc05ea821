package oncecache

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// flight is a creation in progress, as its waiters see it.
type flight struct {
	// wake is made by the first caller that has to wait, nil → non-nil, and
	// fired by the call that ends the flight.
	wake atomics.Pointer[atomics.Event]

	// participants counts the callers that take part. It is maintained if the flight can
	// be called off, or if leases are asked for.
	participants atomics.Uint64

	// since is when the creation began, since the cache was made. It never
	// changes once the flight is shared.
	since time.Duration

	// beside is two gauges, because no step of the flight depends on it. The upper half
	// counts the goroutines that wait for wake, the lower half how often other calls have
	// noted that they may end the flight; see backlog.note.
	beside atomics.Gauge

	// by is the token of the goroutine that runs the create function, or zero
	// if that has a goroutine of its own. It is noFlight in what spares show. It never changes.
	by uintptr

	// ext is nil if the function has no context: then it cannot be called off. It
	// never changes.
	ext *extended
}

// extended has the further fields of a flight whose function has a context.
type extended struct {
	// awaits lists the dependences of the create function, newest first. A call that
	// begins to wait replaces the list by CAS.
	awaits atomics.Pointer[dependences]

	// cancel ends the context of the create function. It never changes.
	cancel context.CancelCauseFunc

	// alone is the token of the function's goroutine of its own, once that runs. It
	// is a gauge because no other goroutine finds its own token in it.
	alone atomics.Gauge

	// turn is waiting while the creation waits for its turn, by a store, and sentBack by
	// CAS of the call that has made the cache forget it then.
	turn atomics.Uint32

	// mute counts the participants of a Refresh that are creations which wait for it, and
	// do not pass its outcome on.
	mute atomics.Gauge

	// The fields that follow are set if one function creates several keys, whose flights
	// share all of extended. When the last of them is called off, so is the function.
	whole  *flight       // stands for all
	wanted atomics.Int64 // how many have not been called off

	// base, if the flight is one of Refresh, is the entry that it is to replace, once
	// that is known: it was in the table after the flight was. It changes if it was
	// not there any more when it had been published.
	base atomics.Pointer[any]
}

const (
	waiting = 1 + iota
	sentBack
)

// participants is the state of a flight's callers in one word:
//
//	bit  63      finished     the result is known: no caller joins or leaves
//	bit  62      abandoned  the creation was cancelled when the last caller left
//	bit  61      cacheClosed   the creation was cancelled by Close
//	bit  60      kept       never abandoned
//	bit  59      off        called off; set only if one function creates several keys
//	bits 30…58   leases     how many of the callers want a lease
//	bits  0…29   callers    how many take part and have not left
//
// Callers come by Add and leave by CAS; the flags are set once and stay.
type participants uint64

const (
	finished    participants = 1 << 63
	abandoned   participants = 1 << 62
	cacheClosed participants = 1 << 61
	kept        participants = 1 << 60
	off         participants = 1 << 59

	oneCaller      participants = 1
	oneLease       participants = 1 << 30
	maxCallers                  = oneLease - 1
	callerAndLease              = oneCaller | oneLease
)

func (p participants) has(flag participants) bool { return p&flag != 0 }
func (p participants) callers() int64             { return int64(p & maxCallers) }
func (p participants) leases() int64 {
	return int64(p &^ (finished | abandoned | cacheClosed | kept | off) >> 30)
}

// blame returns the error that the callers of a failed creation get instead of its own,
// or nil if they get its own.
func (p participants) blame() error {
	switch {
	case p.has(cacheClosed):
		return ErrClosed
	case p.has(abandoned):
		return errAgain // the participants came after the cancellation
	}
	return nil
}

// matters reports whether a caller that counts as counts must join.
func (f *flight) matters(counts participants) bool { return f.ext != nil || counts != oneCaller }

// join counts a caller, unless the flight has finished: then the outcome is a few steps
// away, and the caller waits for it. A caller that finds the flight abandoned is an heir.
func (f *flight) join(counts participants) participants {
	return participants(f.participants.Add(uint64(counts)))
}

// leave takes off a caller that has joined. If no caller is left, it calls the creation
// off. It fails if the flight has finished: then the outcome is there.
func (f *flight) leave(counts participants) bool {
	for {
		old := participants(f.participants.Load())
		if old.has(finished) {
			return false
		}
		now := old - counts
		last := now.callers() == 0 && f.ext != nil && !now.has(kept|abandoned)
		if last {
			now |= abandoned
		}
		if f.participants.CompareAndSwap(uint64(old), uint64(now)) {
			if last {
				f.callOff(nil)
			}
			return true
		}
		// Another caller came or left, or the flight finished.
	}
}

// finish closes the list of participants, and returns it. Only the creator calls it, once.
func (f *flight) finish() participants { return participants(f.participants.Or(uint64(finished))) }

// closeCache calls the creation off because the cache is closing, if it can be.
func (f *flight) closeCache() {
	if f.ext != nil {
		f.participants.Or(uint64(cacheClosed))
		f.callOff(ErrClosed)
	}
}

// callOff ends the context of the create function, if it has one.
func (f *flight) callOff(cause error) {
	x := f.ext
	if x == nil || x.whole != nil && (participants(f.participants.Or(uint64(off))).has(off) || x.wanted.Add(-1) != 0) {
		return
	}
	x.cancel(cause)
}

// waits counts n goroutines more that wait for f.
func (f *flight) waits(n int64) { f.beside.Add(n << 32) }

// waiting returns how many goroutines wait for f.
func (f *flight) waiting() int { return int(f.beside.Load() >> 32) }

// note says that others may end f, and noted reports whether they have said so.
func (f *flight) note()       { f.beside.Add(1) }
func (f *flight) noted() bool { return uint32(f.beside.Load()) != 0 }

// event returns the event that fires when f ends.
func (f *flight) event() *atomics.Event {
	if w := f.wake.Load(); w != nil {
		return w
	}
	made := atomics.MakeEvent()
	return f.wake.Install(&made)
}

// end wakes all waiters of f. It is called once for each flight, after
// the state of the entries that show it has changed.
func (f *flight) end() {
	if w := f.wake.Load(); w != nil {
		w.Fire()
	}
}
