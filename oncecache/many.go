package oncecache

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/internal/table"
)

// GetOrCreateMany returns the values of keys. It calls create once with those that are neither cached nor being
// created, keeps what create returns for them, and waits for the others. Keys for which create returns no value, or
// the error ErrNotFound, are missing from the result, and other callers of them get [ErrNotFound]; so are keys that
// hold a NaN. Values for keys that were not asked for are closed. A nil create stands for calls of Config.Create,
// one key after the other.
//
// If create returns an error, each of its keys without a value, or with the zero value, gets that error. A
// [KeyErrors] gives each key its own error, and a value beside that is closed; if it is about none of them, all
// keys without a value get it. If create panics or calls [runtime.Goexit], all of its keys get that.
// GetOrCreateMany returns the values that it has, and a KeyErrors with the errors of the other keys. When ctx ends,
// the remaining keys get ctx.Err().
//
// Create may be called again, for keys whose creations by other calls were cancelled, or which had to be closed
// before. Two calls never wait for each other: each has called its function before it waits. The context of create
// is that of GetOrCreateContext. With a Config.Close function the call holds leases of all its values until it
// returns, but not with CloseBeforeCreate. GetOrCreateMany panics if ctx is nil, or if both functions are.
//
// GetOrCreateMany is wait-free for each key that has a value, and otherwise blocking: it waits for create, for the
// creations of others or until ctx ends, and for the mutex of one bucket at a time. It takes effect for each key as
// GetOrCreateContext does.
func (c *Cache[K, V]) GetOrCreateMany(ctx context.Context, keys []K, create func(context.Context, []K) (map[K]V, error)) (map[K]V, error) {
	if ctx == nil {
		panic("oncecache: GetOrCreateMany called with a nil context")
	}
	r := c.shared()
	if create == nil && r.config.Create == nil {
		panic("oncecache: GetOrCreateMany called with a nil function")
	}
	m := &many[K, V]{root: r, ctx: ctx, create: create, counts: oneCaller, found: make(map[K]V, len(keys))}
	if r.owns && !r.config.CloseBeforeCreate {
		m.counts = callerAndLease
	}
	if r.keys.Dynamic() {
		for _, k := range keys {
			r.at(k) // first, as it may panic
		}
	}
	defer m.release()
	for left := keys; len(left) > 0; {
		left = m.round(left)
		m.looked = true
	}
	if len(m.failed) > 0 {
		return m.found, m.failed
	}
	return m.found, nil
}

// createEach calls Config.Create for each of keys.
func (b *batch[K, V]) createEach(ctx context.Context, keys []K) (map[K]V, error) {
	made, failed := make(map[K]V, len(keys)), KeyErrors[K]{}
	if b.root.owns {
		b.extra = made // lost with the call, if it does not return
	}
	for _, k := range keys {
		if v, err := b.root.config.Create(ctx, k); err == nil {
			made[k] = v
		} else {
			failed[k] = err
		}
	}
	return made, failed
}

// many is a call of GetOrCreateMany.
type many[K comparable, V any] struct {
	root   *root[K, V]
	ctx    context.Context
	create func(context.Context, []K) (map[K]V, error)
	counts participants // its counts at each key
	looked bool         // all keys were looked for once
	found  map[K]V
	failed KeyErrors[K]
	held   []holding[K, V]
	awaits []wait[K, V] // flights that it has joined, or entered itself, and has not heard of yet
}

// holding is a lease that the call holds until it returns.
type holding[K comparable, V any] struct {
	entry *entry[K, V]
	word  *atomics.Int64
}

// wait is a key for whose outcome the call waits.
type wait[K comparable, V any] struct {
	entry *entry[K, V]
	who   caller
}

// batch is one call of the create function, for the keys of own. It belongs to the goroutine that
// makes the call.
type batch[K comparable, V any] struct {
	root     *root[K, V]
	context  createContext
	function function              // of all flights
	made     []enteredFlight[K, V] // room for a flight for each key
	own      []creation[K, V]      // no element moves
	extra    map[K]V               // values to be closed that are in no entry
	thrown   PanicError            // how the function ended, on a goroutine of its own
}

// enteredFlight is the flight of a key that is created with others.
type enteredFlight[K comparable, V any] struct {
	flight flight
	state  state[K, V]
}

// round takes the values that there are, calls the function for keys without an entry, and waits
// for the others. It returns the keys that have to be looked for again.
func (m *many[K, V]) round(keys []K) (again []K) {
	r := m.root
	var b *batch[K, V]
	var waiting map[K]bool
	for i, k := range keys {
		e, hash := m.find(k) // LP(GetOrCreateMany): a hit
		if _, has := m.found[k]; waiting[k] || m.failed[k] != nil || e != nil && m.hit(e) || has {
			continue // or it is repeated
		}
		if err := m.ctx.Err(); err != nil {
			m.fail(k, err)
			continue
		}
		if b == nil {
			b = m.newBatch(len(keys) - i)
			waiting = make(map[K]bool, len(keys)-i)
		}
		e, who := r.current(e), callerOf(m.ctx, m.counts)
		if e == nil {
			var mine bool
			if e, mine = m.enter(b, table.Hashed[K]{Hash: hash, Key: k}); mine {
				who.joined = e.state.Load().flight
			}
		} else if r.lookups != nil {
			r.countJoined(e)
		}
		if s := e.state.Load(); s.creating() {
			s.flight.include(&who)
		}
		waiting[k] = true
		m.awaits = append(m.awaits, wait[K, V]{e, who})
	}
	if b != nil {
		m.start(b)
	}
	return m.gather(b)
}

// find returns the entry of k, or nil, and its hash. It counts the look-up if it is the first.
func (m *many[K, V]) find(k K) (e *entry[K, V], hash uint64) {
	if m.looked {
		at := m.root.at(k)
		return m.root.entries.Load(at), at.Hash
	}
	return m.root.find(k)
}

// hit takes the value of e, if there is one that can be held.
func (m *many[K, V]) hit(e *entry[K, V]) bool {
	r := m.root
	if m.counts == oneCaller {
		if r.use(e) {
			m.found[e.key] = e.value
			return true
		}
		return false
	}
	s := e.state.Load()
	if !s.ready() {
		return false
	}
	held, ok := r.hold(e, s, true)
	if ok {
		m.take(e.key, e, held)
	}
	return ok
}

func (m *many[K, V]) take(k K, e *entry[K, V], held *atomics.Int64) {
	m.found[k] = e.value
	if held != nil {
		m.held = append(m.held, holding[K, V]{e, held})
	}
}

func (m *many[K, V]) fail(k K, err error) {
	if m.failed == nil {
		m.failed = KeyErrors[K]{}
	}
	m.failed[k] = explain(err, k)
}

// newBatch returns a batch for at most so many keys.
func (m *many[K, V]) newBatch(keys int) *batch[K, V] {
	b := &batch[K, V]{root: m.root, made: make([]enteredFlight[K, V], 0, keys), own: make([]creation[K, V], 0, keys)}
	m.awaits = make([]wait[K, V], 0, keys)
	b.context.Context, b.function.cancel = atomics.WithCancelCause(detached(m.ctx))
	b.function.wanted.Store(1) // so that it is not called off before all keys are entered
	return b
}

// enter enters a creation of the batch for k, unless another call has.
func (m *many[K, V]) enter(b *batch[K, V], at table.Hashed[K]) (e *entry[K, V], mine bool) {
	r := m.root
	b.made = b.made[:len(b.made)+1]
	all := &b.made[len(b.made)-1]
	f := &all.flight
	all.state.flight, f.function, f.since = f, &b.function, r.now()
	if r.config.CloseBeforeCreate {
		f.claim = newClaim()
	}
	if m.ctx.Done() == nil {
		f.by = goid.Token()
	}
	f.participants.Store(uint64(m.counts))
	b.context.part = f // that of any stands for all
	b.function.wanted.Add(1)
	e, mine = r.begin(at, &entry[K, V]{key: at.Key}, &all.state)
	if mine {
		b.own = append(b.own, creation[K, V]{root: r, entry: e, state: &all.state})
	} else {
		f.callOff(nil) // unless Close has
	}
	return e, mine
}

// start calls the function for the keys that are to be created, if there are any: on a goroutine
// of its own if the caller can leave.
func (m *many[K, V]) start(b *batch[K, V]) {
	create := m.create
	if create == nil {
		create = b.createEach
	}
	if b.function.wanted.Add(-1) == 0 {
		var cause error
		if tally(m.root.accounting.work.Load()).closed() {
			cause = ErrClosed
		}
		b.function.cancel(cause)
	}
	if len(b.own) == 0 {
		return
	}
	if m.ctx.Done() != nil {
		atomics.Go(func() {
			b.function.alone.Store(int64(goid.Token()))
			b.run(create, &b.thrown)
		})
		return
	}
	who := callerOf(m.ctx, m.counts)
	if d := who.calls(b.own[0].state.flight, b.own[0].entry.key); d != nil {
		defer d.end()
	}
	b.run(create, nil)
}

// run calls the function, and ends all creations however that ends.
func (b *batch[K, V]) run(create func(context.Context, []K) (map[K]V, error), alone *PanicError) {
	keys := make([]K, len(b.own))
	for i := range b.own {
		keys[i] = b.own[i].entry.key
		if b.root.config.CreateTimeout > 0 {
			b.own[i].watch()
		}
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		thrown := recover()
		how := (&creation[K, V]{thrown: alone}).cut(thrown)
		if thrown == nil {
			alone = nil
		}
		b.end(alone, func(int) *result { r := *how; return &r })
		if thrown != nil && alone == nil {
			panic(thrown) // here, where the frames of the first panic are still on the stack
		}
	}()
	made, err := create(&b.context, keys)
	if b.root.owns {
		b.extra = maps.Clone(made) // until it is known whose they are
	}
	ends := make([]result, len(b.own))
	b.answer(made, err, ends)
	for i := range b.own {
		n := &b.own[i]
		if n.made {
			ends[i].limits = n.limits(nil)
		} else {
			ends[i].limits = n.limits(ends[i].err)
		}
	}
	returned = true
	b.end(nil, func(i int) *result { return &ends[i] })
}

// answer writes what the function has returned into the entries and ends.
func (b *batch[K, V]) answer(made map[K]V, err error, ends []result) {
	each, byKey := keyErrorsIn[K](err)
	ofOthers := len(each) > 0 && !slices.ContainsFunc(b.own, func(n creation[K, V]) bool { return each[n.entry.key] != nil })
	of := func(k K, v V, ok bool) error {
		switch {
		case each[k] != nil:
			return each[k]
		case ok && (byKey || err == nil || !isZero(v)):
			return nil
		case err != nil && (!byKey || ofOthers):
			return err
		}
		return ErrNotFound
	}
	maps.DeleteFunc(b.extra, func(k K, v V) bool { return of(k, v, true) != nil && isZero(v) })
	for i := range b.own {
		n := &b.own[i]
		k := n.entry.key
		v, ok := made[k]
		if ends[i].err = of(k, v, ok); ends[i].err == nil {
			n.entry.value, n.made = v, true
			delete(b.extra, k)
		}
	}
}

func isZero[V any](v V) bool { return reflect.ValueOf(&v).Elem().IsZero() }

// end ends all creations, the i-th as of says. Thrown is the function's panic, or nil; Close returns it
// if no caller gets it. Values are closed on goroutines of the cache.
func (b *batch[K, V]) end(thrown *PanicError, of func(i int) *result) {
	r, heard := b.root, false
	var out []*entry[K, V]
	var over tally
	drop := func(k K, v V, claim *claim) {
		r.accounting.begin(onePending)
		out = append(out, r.unfit(k, v, claim))
	}
	ends := make([]leftovers[K, V], len(b.own))
	for i := range b.own {
		n, how := &b.own[i], of(i)
		if how.err == nil {
			r.accounting.created.Add(1)
		} else {
			r.accounting.countFailure(how)
		}
		if r.records {
			defer r.recordEnd(n.entry.key, n.state.flight.since, how)() // even if another exits
		}
		if v, ok := b.extra[n.entry.key]; ok { // the key's, until it is closed
			c := n.state.flight.claim
			if c != nil {
				c.join()          // does not fail: the function is counted
				how.keeps = false // a kept error holds no claim
			}
			drop(n.entry.key, v, c)
			delete(b.extra, n.entry.key)
		}
		ends[i] = n.conclude(how)
		over += ends[i].over
		heard = heard || ends[i].heard
	}
	for k, v := range b.extra {
		drop(k, v, nil)
	}
	if thrown != nil && !heard {
		r.accounting.note(thrown)
	}
	r.accounting.finish(over) // before anyone wakes
	for i, left := range ends {
		if left.wakes {
			b.own[i].state.flight.end()
		}
	}
	for i, left := range ends {
		if left.stays {
			r.enlist(b.own[i].entry)
		}
		if left.unfit != nil {
			out = append(out, left.unfit)
		}
	}
	r.later(out...)
}

// gather waits for the outcomes. It returns the keys that have to be looked for again.
func (m *many[K, V]) gather(b *batch[K, V]) (again []K) {
	for len(m.awaits) > 0 {
		w := &m.awaits[0]
		k := w.entry.key
		last, held, err := m.root.outcome(w.entry, &w.who)
		m.awaits = m.awaits[1:]
		switch {
		case err == nil:
			m.take(k, last, held)
		case err == errAgain:
			again = append(again, k)
		case err == error(&b.thrown):
			panic(rethrown{&b.thrown})
		case err == ErrNotFound:
			// left out
		default:
			m.fail(k, err)
		}
	}
	return again
}

// release ends the leases, and leaves the flights of which the call has not heard because its
// function panicked or exited. Values that have left the cache meanwhile are closed.
func (m *many[K, V]) release() {
	for i := range m.awaits {
		w := &m.awaits[i]
		if w.who.joined == nil || w.who.joined.leave(w.who.counts) {
			continue
		}
		w.who.gone = true // the flight has finished: its outcome is a few steps away
		if last, held, err := m.root.outcome(w.entry, &w.who); err == nil && held != nil {
			m.held = append(m.held, holding[K, V]{last, held})
		}
	}
	var free []*entry[K, V]
	for _, h := range m.held {
		if m.root.bounded {
			h.entry.mark.held()
		}
		if m.root.unhold(h.entry, h.word) {
			free = append(free, h.entry)
		}
	}
	m.root.later(free...)
}
