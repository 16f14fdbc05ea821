package oncecache

import (
	"errors"
	"runtime/debug"

	"github.com/latchfree/latchfree/internal/atomics"
)

// closer is a closing. It is an interface, and the names of its methods are their own,
// so that only New brings the code that closes values into a program.
type closer[K comparable] interface {
	killUse(r *root[K], e *entry[K], l *leases, why reason) (free bool)
	lingerOn(r *root[K], e *entry[K], l *leases)
	closeNow(r *root[K], e *entry[K], noted bool)
	closeLater(r *root[K], out []*entry[K])
	closeOneLater(r *root[K], e *entry[K])
}

// closing closes the values of a cache with Config.Close when they are no longer their
// keys', and tells Config.OnRemove of them. At least one of the two functions is set. It
// never changes.
type closing[K comparable] struct {
	call     func(*entry[K]) error          // calls Config.Close; nil: there is none
	onRemove func(*entry[K], Reason, error) // calls Config.OnRemove; nil: there is none
	recurs   bool                           // a value that comes again is the same one, and not only equal
}

// killUse lets no new user take hold of the value of e, which has left the table because
// of why, and reports whether the value is to be closed now.
func (c *closing[K]) killUse(r *root[K], e *entry[K], l *leases, why reason) (free bool) {
	l.why = why // before the kill, which publishes it
	if l.kill() {
		return true
	}
	r.backlog.linger(e, l)
	return false
}

// lingerOn notes the value of e, whose users l counts, which are the last.
func (c *closing[K]) lingerOn(r *root[K], e *entry[K], l *leases) { r.backlog.linger(e, l) }

// closeNow closes the value of e, which was pending, has left the table and has no
// users; noted tells whether the value is in the backlog. If the Close function or the
// listener panics, the caller goes on, because it has nothing to do with the value.
func (c *closing[K]) closeNow(r *root[K], e *entry[K], noted bool) {
	at := r.backlog.closing(e, noted)
	defer func() {
		r.accounting.finish(onePending)
		r.backlog.closed(e, at) // last: while it is pending, its key is named
	}()
	var err error
	gone := true
	defer func() { // also while Close calls runtime.Goexit
		if gone && c.onRemove != nil {
			c.listen(r, e, err)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack(), from: fromClose}
		}
		if err != nil {
			r.accounting.note(err)
		}
		r.disown(e.key) // before the listener, which may ask for the key
	}()
	if (c.recurs || e.state.Load() == nil) && r.hasValueOf(r.seek(e.key), e) {
		gone = false
		return // it has come back, or never was the key's for itself: it is closed when that goes
	}
	if c.call == nil {
		return
	}
	err = errCloseGoexit // until call returns
	defer r.accounting.closings.Add(1)
	err = c.call(e)
}

var errCloseGoexit = errors.New("oncecache: Close function called runtime.Goexit")

// closeOneLater is closeLater for one.
func (c *closing[K]) closeOneLater(r *root[K], e *entry[K]) { c.closeLater(r, []*entry[K]{e}) }

// closeLater closes the values of entries that have left the table and have no users,
// on goroutines of its own.
func (c *closing[K]) closeLater(r *root[K], out []*entry[K]) {
	b := r.backlog
	b.mu.Lock()
	b.queue = append(b.queue, out...)
	for _, e := range out {
		b.drop(e) // which may have lingered
	}
	more := min(b.limit-b.closers, len(b.queue))
	b.closers += max(0, more)
	b.mu.Unlock()
	for range more {
		atomics.Go(func() { c.closeQueued(r) })
	}
}

// closeQueued closes the values in the queue until it is empty.
func (c *closing[K]) closeQueued(r *root[K]) {
	b, done := r.backlog, false
	defer func() {
		if !done { // a Close function called runtime.Goexit
			atomics.Go(func() { c.closeQueued(r) })
		}
	}()
	for e := b.next(); e != nil; e = b.next() {
		c.closeNow(r, e, true)
	}
	done = true
}
