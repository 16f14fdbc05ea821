package oncecache

import "github.com/latchfree/latchfree/internal/atomics"

// entry is one instance of a key: the place where the key's callers meet, and
// the value that they get. It is at most once in the table, and never comes
// back once it has left.
type entry[V any] struct {
	// state is nil when the entry is ready. While it is being created, state
	// is the one flight made with it (or moved to it, if Delete made the
	// entry), from which a CAS (or the creator's store) leads to one of
	//
	//	ready    nil          by the creator
	//	failed   err is set   by the creator, which unlinked the entry before
	//	moved    to is set    by the Set or Delete that took the entry out of the table
	//
	// Nothing leaves those three.
	state atomics.Pointer[flight[V]]

	// value is written by the creator before state becomes nil, or before the
	// entry is shared. It is read only after state was seen to be nil.
	value V
}

// flight says why an entry is not ready. The fields but wake never change.
type flight[V any] struct {
	// wake is made by the first caller that has to wait, nil → non-nil, and
	// fired by whoever ends the flight.
	wake atomics.Pointer[atomics.Event]

	err error     // failed: what the entry's callers get
	to  *entry[V] // moved: the entry whose outcome the entry's callers get
}

// newCreating returns an entry that is being created, and its flight.
func newCreating[V any]() (*entry[V], *flight[V]) {
	e, f := new(entry[V]), new(flight[V])
	e.state.Store(f)
	return e, f
}

// get returns the value if the entry is ready.
func (e *entry[V]) get() (v V, ok bool) {
	if e.state.Load() != nil {
		return v, false
	}
	return e.value, true
}

// outcome returns what the entry's callers get, and waits for it if need be.
//
// It goes round at most four times: an entry changes once from creating to
// something else, and is moved at most once, to an entry that stays put.
func (e *entry[V]) outcome() (v V, err error) {
	for {
		f := e.state.Load()
		switch {
		case f == nil:
			return e.value, nil
		case f.err != nil:
			return v, f.err
		case f.to != nil:
			e = f.to
		default:
			e.wait(f)
		}
	}
}

// wait returns after f has ended, or at once if e no longer shows f.
//
// No wake-up is lost: the caller publishes the event and then looks at state,
// and whoever ends the flight changes state and then looks for the event.
func (e *entry[V]) wait(f *flight[V]) {
	w := f.wake.Load()
	if w == nil {
		made := atomics.MakeEvent()
		if w = &made; !f.wake.CompareAndSwap(nil, w) {
			w = f.wake.Load() // another caller's, which is there to stay
		}
	}
	if e.state.Load() == f {
		w.Wait()
	}
}

// end wakes everyone who waits for f. It is called once for each flight,
// after state has changed.
func (f *flight[V]) end() {
	if w := f.wake.Load(); w != nil {
		w.Fire()
	}
}

// settle publishes what f, the flight made with e, ended in: v, or err if
// there is one. Only the creator calls it, once. Left tells whether this took
// e out of creating, and ended whether f must be ended now.
func (e *entry[V]) settle(f *flight[V], v V, err error) (left, ended bool) {
	var to *flight[V]
	if err != nil {
		to = &flight[V]{err: err}
	} else {
		e.value = v
	}
	// LP(GetOrCreate): the creator's success, and that of everyone who waited
	// for it. A failure only becomes known here.
	if e.state.CompareAndSwap(f, to) {
		return true, true
	}
	n := e.state.Load().to
	if n.state.Load() != f {
		return false, false // superseded: Set has ended the flight
	}
	// Forgotten: Delete moved the flight to n, which only its callers reach,
	// and where nobody but the creator writes.
	if err == nil {
		n.value = v
	}
	n.state.Store(to) // LP(GetOrCreate): a forgotten creation
	return false, true
}

// supersede gives n's value to all callers of e, if e is being created.
func (e *entry[V]) supersede(n *entry[V]) (f *flight[V], left bool) {
	f = e.state.Load()
	if !f.creating() {
		return nil, false
	}
	return f, e.state.CompareAndSwap(f, &flight[V]{to: n})
}

// forget moves the flight of e, if e is being created, to an entry of its own,
// so that e itself is never seen to be ready.
func (e *entry[V]) forget() (left bool) {
	f := e.state.Load()
	if !f.creating() {
		return false
	}
	n := new(entry[V])
	n.state.Store(f)
	return e.state.CompareAndSwap(f, &flight[V]{to: n})
}

// creating reports whether f, read from an entry's state, is that of an entry
// that is being created.
func (f *flight[V]) creating() bool { return f != nil && f.err == nil && f.to == nil }
