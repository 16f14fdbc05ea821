package oncecache

import (
	"github.com/latchfree/latchfree/internal/atomics"
)

// backlog is what has left the table and is not over: functions whose flights
// others have ended, values that are still in use, and values that are being
// closed or are to be. Close finds here what it calls off, and what it names
// when it does not wait any longer. Nobody comes here who creates, finds or uses
// a value.
type backlog[K comparable] struct {
	// running are values whose Close functions run; those that find no room are
	// in open.
	running [8]atomics.Pointer[entry[K]]

	limit int // Config.CloseConcurrency

	mu      atomics.Mutex
	open    map[*entry[K]]remnant
	total   uint64      // remnants so far
	most    int         // the largest that open has been
	queue   []*entry[K] // values to be closed, oldest first
	closers int         // goroutines that close them
}

// remnant is what is left of an entry that has left the table.
type remnant struct {
	flight *flight // whose function runs; nil: there is a value
	closed bool    // the Close function of the value runs; otherwise leases hold it
	number uint64  // of the remnants, in the order in which they came
}

// put notes what is left of e. The caller holds mu.
func (b *backlog[K]) put(e *entry[K], what remnant) {
	if b.open == nil {
		b.open = map[*entry[K]]remnant{}
	}
	b.total++
	what.number = b.total
	b.open[e] = what
	b.most = max(b.most, len(b.open))
}

// over says that nothing is left of f, or of the value of e if f is nil. It need
// not have been noted.
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

// note comes before anyone but its creator ends the flight of e, whose function
// may run. It says so in f and then looks whether the flight has been ended: if so,
// whoever did that has noted it before, unless it was the creator, who looks in f
// afterwards. So what is noted is taken out.
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

// closing notes that the Close function for e is about to run, and returns what
// closed needs to say that it has ended. Noted tells whether e has been noted
// before.
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

// ground calls off the creations that others have ended, but not their
// functions: those that Delete has hidden.
func (b *backlog[K]) ground() {
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

// name adds to p what is left. What is between two of these moments may be
// missing, but nothing that stays in one.
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

// later closes the values of entries that have left the table and have no users,
// on goroutines of its own: their Close functions are nothing to the caller.
func (r *root[K]) later(out []*entry[K]) {
	if len(out) > 0 {
		r.close.closeLater(r, out)
	}
}

// next returns the first of the queue, noted as one that is being closed, or nil:
// then its caller is no closer any more.
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
