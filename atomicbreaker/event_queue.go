package atomicbreaker

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A feed brings the events of one breaker to its listener: one at a time, in
// the order of their generations, and each once.
//
// Callers who have changed the breaker push what happened, in any order. Whoever
// pushes on a feed that nobody holds holds it from then on, and has to deliver
// until nothing is left. So nobody waits for the listener but the caller who is
// calling it, and whatever a listener does to its own breaker is pushed, and
// delivered when it has returned.
type feed struct {
	// head is the newest notice that was pushed and not taken. Below the
	// notices is nil or busy.
	//
	//	nil        nobody holds the feed, and nothing was pushed
	//	busy       someone holds it; nothing was pushed
	//	a notice   someone holds it
	//	gone       the feed is out of use for ever
	//
	// Nil or busy becomes a notice by push; whoever replaced nil is the holder.
	// Only the holder takes: it replaces anything by busy, and busy by nil or
	// gone when it lets go.
	head atomics.Pointer[notice]

	busy, gone notice // only their addresses matter

	// The holder's. held is what was taken and is not delivered yet, because
	// the one before is missing: by core in the order in which these were first
	// heard of, and for one core by generation.
	held    []*notice
	telling *notice // while the listener runs

	to audience // never changes
}

// A notice says that a core has begun a generation, or that one is its last.
type notice struct {
	below *notice // written before the push, and then by the holder
	core  *core
	gen   uint32
	event *Event // nil if gen is the core's last
}

// An audience is a listener and what goes with it.
type audience interface {
	// hear calls the listener. It runs user code.
	hear(*core, *Event)
	// heard is called after each event, when core.told counts it.
	heard(*core)
	// drop reports whether a feed is to be thrown away once it is empty, and
	// dropped is called when it was.
	drop() bool
	dropped()
}

// A listener is the audience of a Breaker: what its settings say.
type listener struct{ *core }

func (l listener) hear(_ *core, e *Event) {
	if f := l.set.Load().listener; f != nil {
		f(*e)
	}
}
func (l listener) heard(*core) {}
func (l listener) drop() bool  { return false }
func (l listener) dropped()    {}

// push publishes n. It returns the feed if the caller now holds it.
//
// The CAS fails only if another has been pushed, or the holder has taken all or
// let go.
func (f *feed) push(n *notice) (owed *feed) {
	owed, _ = f.tryPush(n)
	return owed
}

// tryPush is push for feeds that are thrown away. It reports whether the feed
// was still in use.
func (f *feed) tryPush(n *notice) (owed *feed, ok bool) {
	for {
		top := f.head.Load()
		if top == &f.gone {
			return nil, false
		}
		n.below = top
		if f.head.CompareAndSwap(top, n) {
			if top == nil {
				owed = f
			}
			return owed, true
		}
	}
}

// deliver calls the listener until nothing is left that it could be told. The
// caller holds the feed, and does nothing afterwards that must be done. It may
// be called on nil.
//
// If the listener panics or calls runtime.Goexit, the same goroutine delivers
// the rest while it unwinds.
func (f *feed) deliver() {
	if f == nil {
		return
	}
	delivered := false
	defer func() {
		if !delivered {
			f.heard()
			f.deliver()
		}
	}()
	f.drain()
	delivered = true
}

// drain delivers what is due.
//
// It goes round again only if something was pushed.
func (f *feed) drain() {
	for {
		f.take()
		for f.due() {
			f.telling, f.held[0] = f.held[0], nil
			f.held = f.held[1:]
			if f.telling.event != nil {
				f.to.hear(f.telling.core, f.telling.event)
			}
			f.heard()
		}
		if f.release() {
			return
		}
	}
}

// due reports whether the next notice can be delivered: nothing before it is
// missing.
func (f *feed) due() bool {
	if len(f.held) == 0 {
		return false
	}
	n := f.held[0]
	told := n.core.told.Load()
	if n.event == nil {
		return n.gen == generation(told)
	}
	n.event.Generation = told + 1
	return n.gen == generation(told+1)
}

// heard follows every call of the listener, however it has ended.
func (f *feed) heard() {
	n := f.telling
	f.telling = nil
	if n.event != nil {
		n.core.told.Store(n.event.Generation)
		f.to.heard(n.core)
	}
}

// take moves what was pushed to held.
func (f *feed) take() {
	var oldest *notice
	for n := f.head.Swap(&f.busy); n != nil && n != &f.busy; {
		n.below, n, oldest = oldest, n.below, n
	}
	for oldest != nil {
		n := oldest
		oldest, n.below = n.below, nil
		f.hold(n)
	}
}

// hold puts n in its place, which nearly always is the last.
func (f *feed) hold(n *notice) {
	at := len(f.held)
	for i, m := range slices.Backward(f.held) {
		if m.core == n.core {
			if !n.before(m) {
				break
			}
			at = i
		}
	}
	f.held = slices.Insert(f.held, at, n)
}

// before reports whether n comes before m of the same core. That is right while
// fewer than genMask generations are waiting to be told.
func (n *notice) before(m *notice) bool {
	if n.gen == m.gen {
		return n.event != nil
	}
	told := generation(n.core.told.Load())
	ahead := func(gen uint32) uint32 { return (gen + genMask - told) % genMask }
	return ahead(n.gen) < ahead(m.gen)
}

// release lets go of the feed unless something was pushed.
func (f *feed) release() bool {
	if len(f.held) == 0 {
		f.held = nil // not an array of what was once held
	}
	if f.held != nil || !f.to.drop() {
		return f.head.CompareAndSwap(&f.busy, nil)
	}
	if !f.head.CompareAndSwap(&f.busy, &f.gone) {
		return false
	}
	f.to.dropped()
	return true
}
