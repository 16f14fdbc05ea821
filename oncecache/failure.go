package oncecache

import (
	"math"
	"runtime/debug"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A failed creation leaves nothing behind, unless Config.ErrorTTL says how long
// its error answers for it. Then the entry stays in the table, without a value,
// and a call that finds it there after that time takes it out. Config.CreateTimeout
// makes a creation fail whose function has not returned.

// forever is a time that never comes.
const forever = time.Duration(math.MaxInt64)

// expire takes a failure out of the table, if it is still there.
func (r *root[K]) expire(e *entry[K]) (removed bool) {
	if removed = r.remove(e); removed {
		r.left(e.state.Load())
	}
	return removed
}

// left follows the removal of an entry from the table by its caller, which has then read
// p as its state. A failure that was kept counts as being created
// until then.
func (r *root[K]) left(p *phase[K]) {
	if p.kept() {
		r.kept.dropError(p.final.lasts)
		r.accounting.finish(oneCreating)
	}
	if p != nil && p.place != nil {
		r.sieve.takePlace(r, p.place)
	}
}

// timed is root.timed. It is only in programs that call New.
func timed[K comparable](r *root[K], e *entry[K], p *phase[K]) (stop func()) {
	return atomics.After(r.createTimeout, func() { r.overdue(e, p) })
}

// overdue ends the flight of p, made with e, in ErrCreateTimeout. The function
// goes on, and its value is dropped.
//
// The entry may be in the table for a moment when its failure is known already.
// A call that finds it there helps to take it out; see current.
func (r *root[K]) overdue(e *entry[K], p *phase[K]) {
	failed := newPhase(finalState[K]{err: ErrCreateTimeout})
	r.backlog.note(e, p.flight)
	if e.state.CompareAndSwap(p, failed) { // LP(GetOrCreate): timed out
		r.remove(e)
		r.accounting.finish(oneCreating)
	} else if m := e.state.Load(); m == nil || m.final == nil || m.final.to == nil || !m.final.to.state.CompareAndSwap(p, failed) {
		return // it has ended
	}
	r.accounting.timedOut.Add(1)
	p.end()
	p.callOff(ErrCreateTimeout)
}

// cutShort calls end for a function that panicked with thrown, or called runtime.Goexit.
// The panic then goes on in the caller, unless the goroutine is the function's own: then
// alone is not nil, and becomes the error.
func cutShort(thrown any, alone *PanicError, end func(*result)) {
	how := &result{err: ErrGoexit, cut: true}
	switch {
	case thrown == nil: // or a panic(nil) with GODEBUG=panicnil=1, which ends here
	case alone != nil:
		*alone = PanicError{Value: thrown, Stack: debug.Stack()}
		how.err, how.lost = alone, alone
	default:
		how.err = &PanicError{Value: thrown, Stack: debug.Stack()}
	}
	end(how)
	if thrown != nil && alone == nil {
		panic(thrown) // here, where the frames of the first panic are still on the stack
	}
}
