package oncecache

import (
	"github.com/latchfree/latchfree/internal/atomics"
)

// backlog has the entries that have left the table and are not over: those whose
// function still runs though another call has ended the flight, those whose value is in
// use, and those whose value is being closed or is to be. Close calls off these
// functions, and names the keys when it stops waiting. A call that creates, finds or
// uses a value does not come here.
type backlog[K comparable] struct {
	// running are values whose Close functions run, nil ↔ entry: set by CAS of the
	// call that runs the function, cleared by its store. Those that find no room are in
	// open.
	running [8]atomics.Pointer[entry[K]]

	limit int // Config.CloseConcurrency

	mu      atomics.Mutex
	open    map[*entry[K]]remnant
	total   uint64      // remnants so far
	most    int         // the largest that open has been
	queue   []*entry[K] // values to be closed, oldest first
	closers int         // goroutines that close them
}

// remnant says why an entry that has left the table is not over.
type remnant struct {
	flight *flight // whose function runs; nil: there is a value
	closed bool    // the Close function of the value runs; otherwise leases hold it
	number uint64  // of the remnants, in the order in which they came
}

// put notes e. The caller holds mu.
func (b *backlog[K]) put(e *entry[K], what remnant) {
	if b.open == nil {
		b.open = map[*entry[K]]remnant{}
	}
	b.total++
	what.number = b.total
	b.open[e] = what
	b.most = max(b.most, len(b.open))
}

// over takes e out if it was noted for f, or for its value if f is nil. It need not have
// been noted.
func (b *backlog[K]) over(e *entry[K], f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[e].flight == f {
		b.drop(e)
	}
}

// drop is the opposite of put. The caller holds mu.
func (b *backlog[K]) drop(e *entry[K]) {
	if delete(b.open, e); len(b.open) == 0 && b.most > 64 {
		b.open, b.most = nil, 0 // maps do not shrink
	}
}

// note is called before any call but the creator's ends the flight of e, whose function
// may run. It says so in f and then looks whether the flight has ended. If it has, the
// call that ended it has noted it before, unless that was the creator, which looks in f
// afterwards. So every flight that is noted is taken out.
func (b *backlog[K]) note(e *entry[K], f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.note()
	if _, noted := b.open[e]; !noted && e.state.Load().creating() {
		b.put(e, remnant{flight: f})
	}
}

// linger notes the value of e, which has left the table while leases hold it,
// unless the last of them has been released meanwhile.
func (b *backlog[K]) linger(e *entry[K], l *leases) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.central.Load() != 0 {
		b.put(e, remnant{})
	}
}

// closing notes that the Close function for e is about to run, and returns the word of
// running for closed, or nil. Noted tells whether e has been noted before.
func (b *backlog[K]) closing(e *entry[K], noted bool) *atomics.Pointer[entry[K]] {
	if !noted {
		for i := range b.running {
			if at := &b.running[i]; at.Load() == nil && at.CompareAndSwap(nil, e) {
				return at
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(e, remnant{closed: true})
	return nil
}

// closed says that the Close function for e has ended.
func (b *backlog[K]) closed(e *entry[K], at *atomics.Pointer[entry[K]]) {
	if at != nil {
		at.Store(nil)
	} else {
		b.over(e, nil)
	}
}

// cancelHidden calls off the functions whose flights other calls have ended: those that
// Delete has hidden.
func (b *backlog[K]) cancelHidden() {
	for _, f := range b.flights(func(K) bool { return true }) {
		f.closeCache()
	}
}

// flights returns those of some keys whose functions run, oldest first.
func (b *backlog[K]) flights(of func(K) bool) (all []*flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.sorted(func(e *entry[K], what remnant) bool { return what.flight != nil && of(e.key) }) {
		all = append(all, b.open[e].flight)
	}
	return all
}

// sorted returns some entries of open, oldest first. The caller holds mu.
func (b *backlog[K]) sorted(which func(*entry[K], remnant) bool) (some []*entry[K]) {
	for e, what := range b.open {
		if which(e, what) {
			some = append(some, e)
		}
	}
	sortBy(len(some), func(i, j int) bool { return b.open[some[i]].number < b.open[some[j]].number },
		func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some
}

// name adds to p the keys of the backlog. A key that changes from one kind to another
// just then may be missing.
func (b *backlog[K]) name(p *PendingError) {
	for i := range b.running {
		if e := b.running[i].Load(); e != nil {
			p.Closing = append(p.Closing, e.key)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.sorted(func(*entry[K], remnant) bool { return true }) {
		switch left := b.open[e]; {
		case left.flight != nil:
			p.Creating = append(p.Creating, e.key)
		case left.closed:
			p.Closing = append(p.Closing, e.key)
		default:
			p.Leased = append(p.Leased, e.key)
		}
	}
	for _, e := range b.queue {
		p.Closing = append(p.Closing, e.key)
	}
}

// later closes the values of entries that have left the table and have no users, on
// goroutines of the cache: the caller does not wait for their Close functions.
func (r *root[K]) later(out []*entry[K]) {
	if len(out) > 0 {
		r.close.closeLater(r, out)
	}
}

// next returns the first of the queue, noted as one that is being closed. If the queue is
// empty it returns nil, and its caller is no longer counted among closers.
func (b *backlog[K]) next() (e *entry[K]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.queue = nil
		b.closers--
		return nil
	}
	e, b.queue[0], b.queue = b.queue[0], nil, b.queue[1:]
	b.put(e, remnant{closed: true})
	return e
}
