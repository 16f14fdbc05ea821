package oncecache

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/internal/table"
)

// flight is a creation in progress, as its callers see it.
type flight struct {
	// wake is made by the first caller that has to wait, nil → non-nil, and fired by the
	// call that ends the flight, after it has changed the state of the entry.
	wake atomics.Pointer[atomics.Event]

	// participants counts the callers, if the creation can be called off or leases are counted.
	participants atomics.Uint64

	waiting atomics.Gauge // goroutines that wait for wake

	// The rest never changes once the flight is shared.
	since    time.Duration // when the creation began
	by       uintptr       // the token of the goroutine that runs the function; 0: one of its own
	function *function     // nil: the function has no context, so it cannot be called off
	claim    *claim        // the key's, with CloseBeforeCreate
}

// function is what a flight whose function has a context has in addition. The flights of a batch share one.
type function struct {
	cancel context.CancelCauseFunc

	wanted atomics.Int64 // how many of its flights have not been called off
	alone  atomics.Gauge // the token of its own goroutine, once that runs; no other finds its own there
	awaits atomics.Pointer[[]*dependence]

	// aside says that the entry is not in the table, since Refresh makes it: true → false by
	// the call that ends the creation, or puts the entry into the table.
	aside atomics.Bool
}

// participants is the state of a flight's callers in one word:
//
//	bit  63      finished     the result is known: nobody joins or leaves
//	bit  62      abandoned    cancelled when the last caller left
//	bit  61      cacheClosed  cancelled by Close
//	bit  60      off          called off, for flights of a batch
//	bit  59      renewing     a Renew: itself one of its callers, while the old value is there
//	bits 30…58   leases       how many callers want a lease
//	bits  0…29   callers      how many take part
//
// Callers come by Add and leave by CAS. Renewing leaves with the caller that it is. The other flags are
// set once and stay.
type participants uint64

const (
	finished    participants = 1 << 63
	abandoned   participants = 1 << 62
	cacheClosed participants = 1 << 61
	off         participants = 1 << 60
	renewing    participants = 1 << 59

	oneCaller      participants = 1
	oneLease       participants = 1 << 30
	maxCallers                  = oneLease - 1
	callerAndLease              = oneCaller | oneLease
)

func (p participants) has(flag participants) bool { return p&flag != 0 }
func (p participants) callers() int64             { return int64(p & maxCallers) }
func (p participants) leases() int64 {
	return int64(p &^ (finished | abandoned | cacheClosed | off | renewing) >> 30)
}

// counted reports whether participants are counted, in a cache whose callers count as counts.
func (f *flight) counted(counts participants) bool { return f.function != nil || counts != oneCaller }

// include counts who among the participants, unless it is already, or the flight counts none. If
// the flight has finished it is not counted: the outcome is a few steps away.
func (f *flight) include(who *caller) {
	if who.joined != nil || !f.counted(who.counts) {
		return
	}
	if now := participants(f.participants.Add(uint64(who.counts))); !now.has(finished) {
		who.joined, who.heir = f, now.has(abandoned)
	}
}

// leave takes off a caller that has joined, or the renewal itself. If nobody is left then, it calls the
// creation off. It fails if the flight has finished: then the outcome is there.
func (f *flight) leave(counts participants) bool {
	for {
		old := participants(f.participants.Load())
		if old.has(finished) || counts.has(renewing) && !old.has(renewing) {
			return false
		}
		now := old - counts
		last := now.callers() == 0 && f.function != nil
		if last {
			now |= abandoned
		}
		if f.participants.CompareAndSwap(uint64(old), uint64(now)) {
			if last {
				f.callOff(nil)
			}
			return true
		}
	}
}

// seal closes the list of participants, and returns it. Only the creator calls it, once.
func (f *flight) seal() participants { return participants(f.participants.Or(uint64(finished))) }

// callOff ends the context of the create function, if it has one, and no other flight of a batch needs it.
func (f *flight) callOff(cause error) {
	switch fn := f.function; {
	case fn == nil || participants(f.participants.Or(uint64(off))).has(off):
	case fn.wanted.Add(-1) == 0:
		fn.cancel(cause)
	}
}

// closeCache calls the creation off because the cache is closing.
func (f *flight) closeCache() {
	f.participants.Or(uint64(cacheClosed))
	f.callOff(ErrClosed)
}

// waiters returns how many goroutines wait. It is apart: see internal/atomics/inline.go.
func (f *flight) waiters() int { return int(f.waiting.Load()) }

// event returns the event that fires when the flight ends.
func (f *flight) event() *atomics.Event {
	if w := f.wake.Load(); w != nil {
		return w
	}
	made := atomics.MakeEvent()
	return f.wake.Install(&made)
}

// end wakes all that wait. It is called once, after the state of the entry has changed.
func (f *flight) end() {
	if w := f.wake.Load(); w != nil {
		w.Fire()
	}
}

// runsHere reports whether the calling goroutine runs the create function.
func (f *flight) runsHere() bool {
	here := goid.Token()
	return here != 0 && (f.by == here || f.function != nil && f.function.alone.Load() == int64(here))
}

// creation is one call of a create function. It belongs to the goroutine that makes the call.
type creation[K comparable, V any] struct {
	root   *root[K, V]
	entry  *entry[K, V] // whose value it makes
	state  *state[K, V] // of entry, creating
	old    *entry[K, V] // what the entry is to replace; nil: it is no Refresh
	stop   func()       // the timer of CreateTimeout; nil: there is none
	thrown *PanicError  // where a panic of a function on its own goroutine is noted; nil: it goes on in the caller
	made   bool         // entry has a value

	// Refresh only:
	unchanged bool   // the old value stays
	prolonged limits // its limits then
}

// result is how a create function has ended.
type result struct {
	err    error // nil: the value is in the entry
	limits       // of the value, or of the error
	cut    bool  // by a panic or Goexit, which err tells
	stays  bool  // the old value of a Refresh stays, whatever err is
}

// limits says how long a value or an error is kept, and what a value weighs.
type limits struct {
	keeps  bool          // an error is kept
	from   time.Duration // when a value became new
	until  time.Duration // when a value or kept error expires
	weight int64         // of a value; tooHeavy: it is not kept
}

// begin inserts fresh, an entry that is being created in state s, where nothing was found, and
// counts the creation. It returns the entry whose outcome the caller gets. Mine tells whether
// the caller has to create it: then it is fresh.
func (r *root[K, V]) begin(at table.Hashed[K], fresh *entry[K, V], s *state[K, V]) (e *entry[K, V], mine bool) {
	if r.closed() {
		fresh.state.Store(failedState[K, V](ErrClosed, nil)) // LP(GetOrCreate): closed
		return fresh, false
	}
	fresh.state.Store(s)
	for at.Key == at.Key { //nolint:staticcheck // false for NaN
		e, loaded := r.entries.LoadOrStore(at, fresh)
		if !loaded {
			break
		}
		if e = r.current(e); e != nil {
			if r.lookups != nil {
				r.countJoined(e)
			}
			return e, false
		}
	}
	if r.accounting.begin(oneCreating | onePending) {
		(&creation[K, V]{root: r, entry: fresh, state: s}).settle(&result{err: ErrClosed})
		return fresh, false
	}
	if at.Key != at.Key { //nolint:staticcheck // true for NaN
		r.forget(fresh) // as if Delete came at once, because no look-up can find it
	}
	return fresh, true
}

// createOrJoin returns an entry whose outcome the caller of k gets. If the caller has to create
// it first, createOrJoin has done so.
//
// It is apart from its caller, so that callers that wait need less stack than a new goroutine
// has: a thousand that come at once would all have to grow theirs.
//
//go:noinline
func (r *root[K, V]) createOrJoin(at table.Hashed[K], create func() (V, error)) *entry[K, V] {
	made := new(struct {
		flight flight
		state  state[K, V]
	})
	made.state.flight = &made.flight
	made.flight.by, made.flight.since = goid.Token(), r.now()
	if r.config.CloseBeforeCreate {
		made.flight.claim = newClaim()
	}
	e, mine := r.begin(at, &entry[K, V]{key: at.Key}, &made.state)
	if mine {
		n := creation[K, V]{root: r, entry: e, state: &made.state}
		n.run(func(e *entry[K, V]) (err error) {
			e.value, err = create()
			return err
		})
	}
	return e
}

// newFlight returns a creation of e whose function has a context, with one caller that counts
// as counts, and that context.
func (r *root[K, V]) newFlight(ctx context.Context, e *entry[K, V], counts participants) (*creation[K, V], context.Context) {
	all := new(struct {
		flight   flight
		function function
		state    state[K, V]
		creation creation[K, V]
		context  createContext
	})
	f, own := &all.flight, &all.context
	own.part, f.function, f.since = f, &all.function, r.now()
	own.Context, f.function.cancel = atomics.WithCancelCause(detached(ctx))
	f.function.wanted.Store(1)
	f.participants.Store(uint64(counts))
	all.state.flight = f
	all.creation.root, all.creation.entry, all.creation.state = r, e, &all.state
	return &all.creation, own
}

// createContext is one attempt at the value of k, which was not found: it creates it, or joins
// the call that does.
func (r *root[K, V]) createContext(ctx context.Context, at table.Hashed[K], create createFunc[K, V], who *caller) (*entry[K, V], *atomics.Int64, error) {
	n, own := r.newFlight(ctx, &entry[K, V]{key: at.Key}, who.counts)
	if r.config.CloseBeforeCreate {
		n.state.flight.claim = newClaim()
	}
	if who.ctx == nil {
		n.state.flight.by = goid.Token()
	}
	e, mine := r.begin(at, n.entry, n.state)
	if !mine {
		return r.outcome(e, who)
	}
	return n.start(who, func(e *entry[K, V]) (err error) {
		e.value, err = create(own, e.key)
		return err
	})
}

// start calls the function for a caller, and returns the outcome. If the caller can leave, the
// function has a goroutine of its own.
func (n *creation[K, V]) start(who *caller, create func(*entry[K, V]) error) (last *entry[K, V], held *atomics.Int64, err error) {
	f := n.state.flight
	who.joined = f
	if who.ctx == nil {
		if d := who.calls(f, n.entry.key); d != nil {
			defer d.end()
		}
		returned := false
		defer func() {
			if !returned { // a panic of create, or a Goexit of any function of the user
				who.gone = true
				last, held, _ := n.root.outcome(n.entry, who)
				n.root.giveUp(last, held)
			}
		}()
		n.run(create)
		returned = true
		return n.root.outcome(n.entry, who)
	}
	if who.part != nil {
		if d, err := who.part.depend(f, n.entry.key, waits); err == nil { // or its part no longer waits for the function that asks
			who.known = f
			defer d.end()
		}
	}
	n.thrown = new(PanicError)
	thrown := n.thrown
	atomics.Go(func() {
		f.function.alone.Store(int64(goid.Token()))
		n.run(create)
	})
	last, held, err = n.root.outcome(n.entry, who)
	if err == error(thrown) {
		panic(rethrown{thrown})
	}
	return last, held, err
}

// run calls the function, and settles the creation however that ends.
func (n *creation[K, V]) run(create func(*entry[K, V]) error) {
	if n.root.config.CreateTimeout > 0 {
		n.watch()
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		thrown := recover()
		n.end(n.cut(thrown))
		if thrown != nil && n.thrown == nil {
			panic(thrown) // here, where the frames of the first panic are still on the stack
		}
	}()
	err := create(n.entry)
	n.made = err == nil
	how := &result{err: err, stays: n.unchanged}
	if err != nil || n.root.bounded {
		how.limits = n.limits(err)
	}
	returned = true
	n.end(how)
}

// limits returns the limits of the value, or of the error. It calls functions of the user.
func (n *creation[K, V]) limits(err error) limits {
	switch {
	case err == nil:
		return n.root.valueLimits(n.entry)
	case n.old == nil:
		return n.root.errorLimits(n.entry.key, err)
	}
	return limits{}
}

// watch starts the timer of CreateTimeout.
func (n *creation[K, V]) watch() {
	r, e, s, old := n.root, n.entry, n.state, n.old
	n.stop = atomics.After(r.config.CreateTimeout, func() { r.timeOut(e, s, old) })
}

// cut returns the result of a function that panicked with thrown, or called Goexit if that is nil.
func (n *creation[K, V]) cut(thrown any) *result {
	if thrown == nil { // or a panic(nil) with GODEBUG=panicnil=1, which ends here
		return &result{err: ErrGoexit, cut: true}
	}
	failure := n.thrown
	if failure == nil {
		failure = new(PanicError)
	}
	*failure = PanicError{Value: thrown, Stack: debug.Stack()}
	return &result{err: failure, cut: true}
}

// end counts and settles a creation whose function has ended.
func (n *creation[K, V]) end(how *result) {
	r := n.root
	if how.err == nil {
		r.accounting.created.Add(1)
	} else {
		r.accounting.countFailure(how)
	}
	if r.records {
		defer r.recordEnd(n.entry.key, n.state.flight.since, how)() // even if a Close function exits
	}
	n.settle(how)
}

// settle ends the flight, wakes the callers that wait, and then does what they need not wait for.
func (n *creation[K, V]) settle(how *result) {
	r, left := n.root, n.conclude(how)
	r.accounting.finish(left.over)
	if left.wakes {
		n.state.flight.end()
	}
	switch {
	case left.replaces:
		r.letGo(n.old, r.uncount(n.old), ReasonReplaced)
	case left.stays && r.bounded:
		r.enlist(n.entry)
	}
	if left.unfit != nil {
		r.dispose(left.unfit)
	}
}

// leftovers is what remains to be done when a creation has ended.
type leftovers[K comparable, V any] struct {
	over     tally        // to be taken off the counts
	wakes    bool         // the creation has ended the flight, and not another call before
	heard    bool         // a caller gets the outcome
	stays    bool         // the entry has a value, and its place in the order yet to get, unless it has left since
	replaces bool         // it has taken the place of the old entry, which is to be retired
	unfit    *entry[K, V] // has a value to be closed, because no key and no caller has it
}

// conclude ends the creation, but for the counts and the wake-up, and calls no function of the user.
//
// A failed entry leaves the table before any caller can learn of the failure, unless the error
// is kept: so a caller that knows of it and calls again starts a new creation.
func (n *creation[K, V]) conclude(how *result) (left leftovers[K, V]) {
	r, e, s := n.root, n.entry, n.state
	f := s.flight
	if n.stop != nil {
		n.stop()
	}
	if how.weight == tooHeavy {
		n.refuseHeavy()
	}
	var who participants
	if f.counted(r.counts) {
		who = f.seal() // before the outcome is known, so that all their leases are in it
	}
	callers := who.callers()
	if who&renewing != 0 {
		callers-- // the renewal itself
	}
	left.heard = callers > 0 && !who.has(abandoned|cacheClosed)
	left.over, left.wakes = onePending, true
	thrown := n.thrown != nil && how.err == error(n.thrown)
	if how.err != nil {
		n.blame(how, who)
		if n.old != nil {
			r.detach(n.old, e) // first, so that e does not take the place of an old value that stays
		}
		if how.stays && !n.stays() {
			how.stays, how.err = false, errAgain // the old value has left
		}
		n.unlink(how)
	}
	var now *state[K, V] // nil: ready, and nothing more
	if how.err != nil || r.owns || r.bounded {
		now = n.outcome(how, who)
	}
	// LP(GetOrCreate): the creator's success, and that of all who wait; likewise an error that
	// is kept. Other failures only become known here.
	switch won := e.state.CompareAndSwap(s, now); {
	case won && now.ready():
		if now == nil || now.node == nil {
			e.mark.bits.Store(usedForBoth)
		}
		left.stays = true
		if n.old != nil {
			left.replaces = r.replace(n.old, e)
			left.stays = n.old.mark.isOver() // evict may have put e in its place
		}
		fallthrough
	case won:
		if n.old != nil {
			r.land(f)
		}
		if !now.kept() {
			left.over += oneCreating
		} else {
			r.order.add(r, now.node)
		}
	default:
		m := n.endMoved(how, who)
		left.wakes = m != nil
		left.heard = left.heard && left.wakes
		if r.owns && how.err == nil && who.leases() == 0 {
			left.unfit = m // otherwise the last of them closes it
		}
		r.backlog.ended(f)
	}
	if n.old != nil && how.err != nil {
		r.vacate(e) // if it has come to the table since unlink
	}
	if how.keeps {
		r.unclaim(f.claim, e.key) // not before e shows the error, which frees the key
	}
	if n.made && r.owns {
		if how.err != nil || !left.wakes {
			left.unfit = r.unfit(e.key, e.value, f.claim)
		}
		left.over -= onePending // the value is pending now
	}
	if thrown && !left.heard {
		r.accounting.note(n.thrown)
	}
	return left
}

// refuseHeavy takes the entry of a value that is too heavy out of the table before the value is
// there, as if Delete came then. The value that a Refresh was to replace leaves, too.
func (n *creation[K, V]) refuseHeavy() {
	r, e := n.root, n.entry
	r.vacate(e)
	r.forget(e)
	if n.old == nil {
		return
	}
	if e.state.Load().flight != nil && r.vacate(n.old) { // LP(Refresh): too heavy, and not too late
		s := r.uncount(n.old)
		r.endRefresh(s, nil) // another one, which began meanwhile
		r.later(r.release(n.old, s, ReasonReplaced))
	}
	r.vacate(e) // if it has come to the table since
}

// blame replaces the error of a creation that was called off by that of its callers.
func (n *creation[K, V]) blame(how *result, who participants) {
	switch {
	case who.has(cacheClosed):
		how.err, how.limits = ErrClosed, limits{}
	case who.has(abandoned):
		how.err, how.limits = errAgain, limits{} // the callers came after the cancellation
	}
}

// unlink makes the key free for the next creation, before a failure is known.
func (n *creation[K, V]) unlink(how *result) {
	r, e := n.root, n.entry
	if !how.keeps {
		r.vacate(e) // LP(GetOrCreate): a failure, unless the entry was removed
	}
	if !n.made && !how.keeps {
		r.unclaim(n.state.flight.claim, e.key)
	}
}

// outcome returns the state of the entry after its creation.
func (n *creation[K, V]) outcome(how *result, who participants) *state[K, V] {
	r, e, claim := n.root, n.entry, n.state.flight.claim
	switch {
	case how.err == nil:
		return r.readyState(e, how.limits, who.leases(), claim)
	case how.keeps:
		e.mark.bits.Store(noValue)
		return &state[K, V]{
			node: r.order.placeOfError(r, e, how.until),
			end:  &ending[K, V]{err: how.err, keeps: true, until: how.until},
		}
	}
	if how.stays {
		return movedState(n.old)
	}
	return failedState[K, V](how.err, claim)
}

// readyState returns the state of e when it has a value with these limits, and so many users.
func (r *root[K, V]) readyState(e *entry[K, V], l limits, users int64, claim *claim) *state[K, V] {
	var (
		s *state[K, V]
		u *leases
	)
	switch {
	case r.bounded:
		all := new(struct {
			state state[K, V]
			node  node[K, V]
			users leases
		})
		s, u = &all.state, &all.users
		s.node = &all.node
		r.order.prepare(r, s.node, e, l)
	case r.owns:
		both := new(struct {
			state state[K, V]
			users leases
		})
		s, u = &both.state, &both.users
	default:
		return nil
	}
	s.users, u.claim = u, claim
	if users > 0 {
		u.base.Store(users)
	}
	return s
}

// endMoved ends the creation of an entry that another call has taken out of creating. If that
// was a Delete, it has moved the flight to an entry that only the callers of the creation find,
// and endMoved returns that, unless the timer has ended it. Otherwise it returns nil.
func (n *creation[K, V]) endMoved(how *result, who participants) (m *entry[K, V]) {
	r, s := n.root, n.state
	if m = n.entry.state.Load().end.to; m == nil || m.state.Load() != s {
		return nil
	}
	now := failedState[K, V](how.err, nil)
	switch {
	case how.stays: // the old value, which has left since
		now = movedState(n.old)
	case how.err == nil:
		m.value = n.entry.value
		if now = nil; r.owns {
			now = looseState[K, V](who.leases(), s.flight.claim)
		}
	}
	if !m.state.CompareAndSwap(s, now) { // LP(GetOrCreate): a forgotten creation
		return nil
	}
	if how.err == nil && r.owns {
		r.backlog.linger(m.key, now.users)
	}
	return m
}

// hide takes e out of creating, into state now, for another call than its creator, whose
// function goes on. It fails if the creation has ended.
func (r *root[K, V]) hide(e *entry[K, V], s, now *state[K, V]) bool {
	if !r.backlog.hide(e, s, now) {
		return false
	}
	r.land(s.flight)
	r.accounting.finish(oneCreating)
	if s.flight.claim != nil {
		s.flight.claim.free.Wake() // so that the function, if it waits for its own key, finds itself
	}
	return true
}

// land says that the creation of a Refresh has ended, or that its entry is in the table now.
func (r *root[K, V]) land(f *flight) {
	if fn := f.function; fn != nil && fn.aside.CompareAndSwap(true, false) {
		r.accounting.aside.Add(-1)
	}
}

// forget moves the creation of e, which has left the table, to an entry that only its callers
// find: they get its outcome, which is not kept. Ready tells whether e has a value instead.
func (r *root[K, V]) forget(e *entry[K, V]) (ready bool) {
	for {
		s := e.state.Load()
		if !s.creating() {
			return s.ready()
		}
		m := &entry[K, V]{key: e.key}
		m.state.Store(s)
		moved := movedState(m)
		moved.flight, moved.end.claim = s.flight, s.flight.claim
		if !r.hide(e, s, moved) {
			continue // the creation has just ended
		}
		if tally(r.accounting.work.Load()).closed() {
			s.flight.closeCache() // Close may have looked before
		}
		return false
	}
}

// overtake ends the creation of e, which has left the table, in the value of to. Ready tells
// whether e has a value instead.
func (r *root[K, V]) overtake(e, to *entry[K, V]) (ready bool) {
	for {
		s := e.state.Load()
		if !s.creating() {
			return s.ready()
		}
		moved := movedState(to)
		moved.end.claim = s.flight.claim // as e may have come to the table, in the place of to
		if r.hide(e, s, moved) {
			s.flight.end()
			s.flight.callOff(nil)
			return false
		}
	}
}

// timeOut ends the creation of e in ErrCreateTimeout. Its function goes on, and its value is dropped.
//
// The entry may be in the table for a moment when its failure is known already. A call that
// finds it there helps to take it out; see current.
func (r *root[K, V]) timeOut(e *entry[K, V], s *state[K, V], old *entry[K, V]) {
	failed := failedState[K, V](ErrCreateTimeout, s.flight.claim)
	if r.hide(e, s, failed) { // LP(GetOrCreate): timed out
		if old != nil {
			r.detach(old, e)
		}
		r.vacate(e)
	} else if m := e.state.Load(); m.ready() || m.end.to == nil || !m.end.to.state.CompareAndSwap(s, failed) {
		return // it has ended
	}
	r.accounting.timedOut.Add(1)
	s.flight.end()
	s.flight.callOff(ErrCreateTimeout)
}
