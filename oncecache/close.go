package oncecache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Close closes the cache, which is empty from then on. Callers that ask for a key or wait for a creation get
// [ErrClosed], unless Delete has ended the creation: they get its outcome. The contexts of create functions that
// run are cancelled, with ErrClosed as cause, and values that they still return are not kept. Values are closed on
// goroutines of the cache.
//
// Close waits for that, for leases, and for functions of the user that run, until ctx ends. Then it returns a
// [*PendingError], which wraps the error of ctx and names the keys that Close has not waited for; the closing goes
// on. Joined with that, Close returns the first 100 errors of Config.Close and panics that no other caller got.
// Close may be called again, to wait again and for the same errors, but not by a function that it waits for.
//
// A call that Close overtakes may still find and store values; they are removed and closed all the same, and no call
// that begins after Close has returned sees them. Then Set closes the value, if there is a Config.Close function.
// Close panics if ctx is nil.
//
// Close is blocking: it waits for create functions, for Close functions, for leases, and for the mutex of one bucket at
// a time. It takes effect when callers no longer find the table; a creation that ended before it was removed there is
// not undone.
func (c *Cache[K, V]) Close(ctx context.Context) error {
	if ctx == nil {
		panic("oncecache: Close called with a nil context")
	}
	r := c.detach()
	r.accounting.work.Or(uint64(closed))
	for _, f := range r.backlog.flights(nil) {
		f.closeCache()
	}
	r.later(r.drain()...)
	err := r.wait(ctx)
	if err != nil {
		pending := &PendingError{err: err}
		r.backlog.name(pending)
		err = pending
	}
	return r.accounting.verdict(err)
}

// detach puts a closed root in the place of the one that is to be closed, and returns that. If
// several callers come at once, each puts its own there: nothing is stored in them.
func (c *Cache[K, V]) detach() *root[K, V] {
	for {
		r := c.shared()
		if r.closed() {
			return r.before
		}
		n := &root[K, V]{fixed: r.fixed, before: r}
		n.entries.Init(r.hash, 0)
		if c.root.CompareAndSwap(r, n) { // LP(Close)
			return r
		}
	}
}

// drain removes everything from the table, ends all flights, and returns the values that are to be closed.
func (r *root[K, V]) drain() (free []*entry[K, V]) {
	for found := range r.entries.All() {
		e := r.entries.LoadAndDelete(r.at(found.key))
		if e == nil {
			continue
		}
		for ended := e; ended != nil; {
			if s := ended.state.Load(); s.creating() {
				if !r.hide(ended, s, failedState[K, V](ErrClosed, nil)) { // LP(GetOrCreate): caught by Close
					continue // it has just ended
				}
				s.flight.end()
				s.flight.callOff(ErrClosed)
				break
			}
			s := r.uncount(ended)
			if s.closing() {
				s.end.claim.free.Wake()
			}
			reason := ReasonClosed
			if ended != e {
				reason = ReasonDiscarded
			}
			if e := r.release(ended, s, reason); e != nil {
				free = append(free, e)
			}
			ended = s.making()
		}
	}
	return free
}

// retire follows the removal of e from the table by its caller: it closes the value, if that is
// to be closed, or leaves that to its users.
func (r *root[K, V]) retire(e *entry[K, V], reason Reason) {
	s := r.uncount(e)
	r.endRefresh(s, nil)
	r.letGo(e, s, reason)
}

// letGo is the end of retire, after uncount, which has returned s.
func (r *root[K, V]) letGo(e *entry[K, V], s *state[K, V], reason Reason) {
	if r.release(e, s, reason) != nil {
		r.dispose(e)
	}
}

// uncount follows the removal of e from the table: it takes e out of the counts and the order. It
// returns the state of e. When it has returned, it is decided whether e has expired.
func (r *root[K, V]) uncount(e *entry[K, V]) *state[K, V] {
	s := e.state.Load()
	if s == nil {
		return nil
	}
	if s.kept() || s.closing() {
		r.accounting.finish(oneCreating)
	}
	if s.node != nil && r.order.unlist(s.node) && s.ready() {
		r.accounting.expired.Add(1)
	}
	return s
}

// release lets no new user take hold of the value of e, if it has one, and returns e if its
// value is to be closed now. It follows uncount, which has returned s.
func (r *root[K, V]) release(e *entry[K, V], s *state[K, V], reason Reason) (free *entry[K, V]) {
	if n := s.making(); n != nil {
		r.detach(e, n) // so that a lease of e keeps no later value
	}
	if !r.owns || !s.ready() {
		return nil
	}
	if s.node != nil && e.mark.isExpired() {
		reason = ReasonExpired
	}
	s.users.reason = reason // before the kill, which publishes it
	if s.users.kill() {
		return e
	}
	r.backlog.linger(e.key, s.users)
	return nil
}

// unfit returns an entry with a value that is pending, which no key and no caller has.
func (r *root[K, V]) unfit(k K, v V, claim *claim) *entry[K, V] {
	e := &entry[K, V]{key: k, value: v}
	e.state.Store(looseState[K, V](0, claim))
	return e
}

// dispose closes the value of e, which was pending, has left the table and has no users: it calls
// Close, makes the key free, and calls OnRemove. Each step runs however the one before has ended.
// If a function panics, the caller goes on, because it has nothing to do with the value.
func (r *root[K, V]) dispose(e *entry[K, V]) {
	users := e.state.Load().users
	r.backlog.closing(e.key, users)
	defer func() {
		r.accounting.finish(onePending)
		r.backlog.closed(users) // last: while it is pending, its key is named
	}()
	var err error
	gone := true
	defer func() { // also while Close calls runtime.Goexit
		if r.unclaim(users.claim, e.key); gone && r.config.OnRemove != nil {
			r.guard(fromOnRemove, func() { r.config.OnRemove(e.key, e.value, users.why(), err) })
		}
	}()
	if r.recurs(e, users) {
		gone = false
		return
	}
	if r.config.Close == nil {
		return
	}
	err = errCloseGoexit // until call returns
	defer func() {
		r.accounting.closings.Add(1)
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack(), from: fromClose}
		}
		if err != nil {
			r.accounting.note(err)
		}
	}()
	err = r.config.Close(e.key, e.value)
}

var errCloseGoexit = errors.New("oncecache: Close function called runtime.Goexit")

// recurs reports whether the value of e, which is about to be closed, is the key's again, or
// never was this entry's alone: then it is closed when the key loses it.
func (r *root[K, V]) recurs(e *entry[K, V], users *leases) bool {
	if users.reason == passedOn {
		return true
	}
	if !r.refers && users.reason != 0 {
		return false // an equal value is another one
	}
	now := r.entries.Load(r.at(e.key))
	return now.has() && r.same(now.value, e.value)
}

// why returns why the value has left the cache.
func (l *leases) why() Reason {
	if l.reason == 0 {
		return ReasonDiscarded
	}
	return l.reason
}

// guard calls f, which calls a function of the user that is told something, and notes for Close if
// that panics or exits.
func (r *root[K, V]) guard(which source, f func()) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			r.accounting.note(&PanicError{Value: p, Stack: debug.Stack(), from: which})
		} else if !returned {
			r.accounting.note(fmt.Errorf("oncecache: %v function called runtime.Goexit", which))
		}
	}()
	f()
	returned = true
}

// maxClosers is how many Close functions run at a time on goroutines of the cache.
const maxClosers = 16

// later closes the values of entries that have left the table and have no users, on goroutines of
// the cache: the caller does not wait for their Close functions. It leaves out nil.
func (r *root[K, V]) later(out ...*entry[K, V]) {
	for range r.backlog.enqueue(out) {
		atomics.Go(r.closeQueued)
	}
}

// closeQueued closes the values in the queue until it is empty.
func (r *root[K, V]) closeQueued() {
	done := false
	defer func() {
		if !done { // a Close function called runtime.Goexit
			atomics.Go(r.closeQueued)
		}
	}()
	for e := r.backlog.next(); e != nil; e = r.backlog.next() {
		r.dispose(e)
	}
	done = true
}

// backlog has what has left the table and is not over: functions that run though another call has ended their
// flight, and values that are in use, are being closed, or wait for that. Close calls off these functions, and
// names the keys when it stops waiting. A call that finds, uses or creates a value does not come here.
type backlog[K comparable, V any] struct {
	mu      atomics.Mutex
	hidden  map[*flight]remnant[K] // functions that run
	values  []remnant[K]           // values that are in use, or being closed, each at leases.place
	total   uint64                 // remnants so far
	queue   []*entry[K, V]         // values to be closed, oldest first
	closers int                    // goroutines that close them
	limit   int                    // how many these may be: maxClosers; never changes
}

// remnant is something that has left the table and is not over.
type remnant[K comparable] struct {
	key     K
	number  uint64  // in the order in which they came
	users   *leases // of a value
	closing bool    // the Close function of a value runs; otherwise leases hold it
}

// hide takes e out of creating, into state now, for another call than its creator, and notes the
// function. It fails if the creation has ended. A creator whose own step fails calls ended, and
// finds the mutex locked until its flight is noted.
func (b *backlog[K, V]) hide(e *entry[K, V], s, now *state[K, V]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !e.state.CompareAndSwap(s, now) {
		return false
	}
	if b.hidden == nil {
		b.hidden = map[*flight]remnant[K]{}
	}
	b.total++
	b.hidden[s.flight] = remnant[K]{key: e.key, number: b.total}
	return true
}

// ended says that a function has ended which was hidden.
func (b *backlog[K, V]) ended(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.hidden, f); len(b.hidden) == 0 {
		b.hidden = nil // which may have been large
	}
}

// put notes a value of k. The caller holds mu.
func (b *backlog[K, V]) put(k K, l *leases, closing bool) {
	if l.place == 0 {
		b.values = append(b.values, remnant[K]{})
		l.place = int32(len(b.values))
	}
	b.total++
	b.values[l.place-1] = remnant[K]{k, b.total, l, closing}
}

// remove takes off the value with these users, if it is there. The caller holds mu.
func (b *backlog[K, V]) remove(l *leases) {
	if l.place == 0 {
		return
	}
	last := len(b.values) - 1
	b.values[l.place-1] = b.values[last]
	b.values[l.place-1].users.place = l.place
	b.values[last] = remnant[K]{}
	b.values, l.place = b.values[:last], 0
	if last == 0 && cap(b.values) > 64 {
		b.values = nil
	}
}

// linger notes a value of k, which has left the table while leases hold it, unless the last of
// them has been released meanwhile.
func (b *backlog[K, V]) linger(k K, l *leases) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.central.Load() != 0 {
		b.put(k, l, false)
	}
}

// closing says that the Close function of a value of k is about to run, and closed that it has ended.
func (b *backlog[K, V]) closing(k K, l *leases) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(k, l, true)
}

func (b *backlog[K, V]) closed(l *leases) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(l)
}

// enqueue appends values to the queue, and returns how many goroutines more are to close them.
func (b *backlog[K, V]) enqueue(out []*entry[K, V]) (more int) {
	out = slices.DeleteFunc(out, func(e *entry[K, V]) bool { return e == nil })
	if len(out) == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, out...)
	for _, e := range out {
		b.remove(e.state.Load().users) // which may have lingered
	}
	more = max(0, min(b.limit-b.closers, len(b.queue)))
	b.closers += more
	return more
}

// next returns the first of the queue, noted as one that is being closed. If the queue is empty it
// returns nil, and its caller is no longer counted among closers.
func (b *backlog[K, V]) next() (e *entry[K, V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.queue = nil
		b.closers--
		return nil
	}
	e, b.queue[0], b.queue = b.queue[0], nil, b.queue[1:]
	b.put(e.key, e.state.Load().users, true)
	return e
}

// flights returns the flights whose functions run hidden and are counted in c, where nil stands for all,
// in the order in which they were hidden.
func (b *backlog[K, V]) flights(c *claim) []*flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(b.hidden), func(f, g *flight) int {
		return int(int64(b.hidden[f].number - b.hidden[g].number))
	})
	return slices.DeleteFunc(all, func(f *flight) bool { return c != nil && f.claim != c })
}

// name adds to p the keys of the backlog, oldest first.
func (b *backlog[K, V]) name(p *PendingError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byAge := func(a, b remnant[K]) int { return int(int64(a.number - b.number)) }
	for _, left := range slices.SortedFunc(maps.Values(b.hidden), byAge) {
		p.Creating = append(p.Creating, left.key)
	}
	for _, left := range slices.SortedFunc(slices.Values(b.values), byAge) {
		if left.closing {
			p.Closing = append(p.Closing, left.key)
		} else {
			p.Leased = append(p.Leased, left.key)
		}
	}
	for _, e := range b.queue {
		p.Closing = append(p.Closing, e.key)
	}
}

// Reason is why a value has left the cache.
type Reason uint8

const (
	_ Reason = iota
	// ReasonDeleted is Delete, CompareAndDelete or Clear.
	ReasonDeleted
	// ReasonReplaced is Set, or a Refresh that made a new value.
	ReasonReplaced
	// ReasonExpired is TTL, also where another call removes a value that has expired.
	ReasonExpired
	// ReasonIdle is IdleTimeout.
	ReasonIdle
	// ReasonEvicted is MaxEntries or MaxWeight.
	ReasonEvicted
	// ReasonDiscarded is Lease.Discard, or that the value never was its key's: it came too late,
	// weighed more than MaxWeight, or belongs to a key that GetOrCreateMany was not asked for.
	ReasonDiscarded
	// ReasonClosed is Cache.Close.
	ReasonClosed
)

// passedOn is that the value has left an entry, but is that of the next one, which closes it.
const passedOn = ReasonClosed + 1

// String returns the name of r without the prefix.
func (r Reason) String() string {
	names := [...]string{
		ReasonDeleted: "Deleted", ReasonReplaced: "Replaced", ReasonExpired: "Expired", ReasonIdle: "Idle",
		ReasonEvicted: "Evicted", ReasonDiscarded: "Discarded", ReasonClosed: "Closed",
	}
	if r == 0 || int(r) >= len(names) {
		return "Reason(" + strconv.Itoa(int(r)) + ")"
	}
	return names[r]
}

// MarshalText returns the name of r.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
