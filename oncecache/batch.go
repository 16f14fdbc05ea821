package oncecache

import (
	"context"
	"math/bits"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/internal/table"
)

// batch is the part of a call of GetOrCreateMany that has to wait.
type batch[K comparable] struct {
	root   *root[K]
	who    caller // the caller, for all keys
	places []batchSlot[K]
	byHash []uint32           // which place has a key, plus one, where its hash says or behind that; twice as many as places
	absent int                // how many places had no entry when they were looked for
	made   []member[K]        // room for the phases of so many entries
	begun  tally              // entered, and not counted yet
	own    []ownCreation[K]   // creations of the caller itself; no element moves once the function is called
	only   bool               // there is one key, whose creation may wait for its turn
	thrown PanicError         // how the function ended, on a goroutine of its own
	loose  func() []*entry[K] // returns those of values to be closed that no creation has; nil: there are none

	// createContext is the context of the create function. Its part stands for the
	// creations of all keys.
	createContext createContext
	all           flight
	ext           extended // of all, and of each
}

// member is the phase of an entry that is created with others.
type member[K comparable] struct {
	own flight
	phase[K]
}

// ownCreation is what the creations of a batch do not have in common.
type ownCreation[K comparable] struct {
	entry        *entry[K]
	phase        *phase[K]
	stop         func()
	holds, ended bool
}

// become makes n, a creation of the batch, the one of own.
func (n *creation[K]) become(own *ownCreation[K]) {
	n.entry, n.phase, n.stop, n.holds, n.ended = own.entry, own.phase, own.stop, own.holds, false
}

// batchSlot is a key of a batch, and the entry that has its outcome.
type batchSlot[K comparable] struct {
	hash  uint64
	entry *entry[K] // of the key

	// See caller.
	joined        *flight
	heir, created bool

	absent bool // the entry is a fresh one, for a key that had none
}

// at returns the key of s as the table has it.
func (s *batchSlot[K]) at() table.Hashed[K] { return table.Hashed[K]{Hash: s.hash, Key: s.entry.key} }

// newBatch returns a batch for at most so many keys.
func newBatch[K comparable](r *root[K], who caller, keys int) *batch[K] {
	return &batch[K]{root: r, who: who, places: make([]batchSlot[K], 0, keys), byHash: make([]uint32, 1<<bits.Len(uint(2*keys-1)))}
}

// add adds a place for k, which has entry e or, if that is nil, is absent, unless k has a
// place. A key that holds a NaN is another one each time.
func (b *batch[K]) add(k table.Hashed[K], e *entry[K]) {
	last := uint64(len(b.byHash) - 1)
	i := k.Hash & last
	for ; b.byHash[i] != 0; i = (i + 1) & last {
		if at := &b.places[b.byHash[i]-1]; at.hash == k.Hash && at.entry.key == k.Key {
			return
		}
	}
	absent := e == nil
	if absent {
		b.absent++
		e = b.root.of.freshEntry(k.Key)
	}
	b.places = append(b.places, batchSlot[K]{hash: k.Hash, entry: e, absent: absent})
	b.byHash[i] = uint32(len(b.places))
}

// caller returns the caller of the key of at.
func (b *batch[K]) caller(at *batchSlot[K]) caller {
	who := b.who
	who.joined, who.heir, who.created = at.joined, at.heir, at.created
	return who
}

// include makes the call a caller of the creation of at, if that is under way.
func (b *batch[K]) include(at *batchSlot[K]) {
	who := b.who
	at.entry.include(&who)
	at.joined, at.heir = who.joined, who.heir
}

// find finds the outcomes of all places, and enters the entries of absent keys. It leaves
// out, and returns, the keys whose creations would have to wait for their turn, unless only
// is set.
func (b *batch[K]) find(ctx context.Context) (later []K) {
	b.createContext.Context, b.ext.cancel = atomics.WithCancelCause(detached(ctx))
	b.createContext.part, b.all.ext, b.ext.whole = &b.all, &b.ext, &b.all
	b.ext.wanted.Store(int64(b.absent) + 1) // and one more, so that it is not zero yet
	b.made, b.own = make([]member[K], 0, b.absent), make([]ownCreation[K], 0, b.absent)
	if b.absent > 0 {
		b.all.since = b.root.now()
	}
	if b.who.ctx == nil {
		b.all.by = goid.Token()
	}
	left := b.places[:0]
	for i := range b.places {
		at := &b.places[i]
		if at.absent && !b.only && b.root.occupied(at.at()) {
			later = append(later, at.entry.key)
			continue
		}
		if len(left) < i {
			b.places[len(left)] = *at
		}
		left = left[:len(left)+1]
		if at = &left[len(left)-1]; at.absent {
			b.enter(at)
		} else {
			b.root.joins(at.entry)
			b.include(at)
		}
	}
	b.places = left
	if b.ext.wanted.Add(int64(len(b.own)-b.absent)-1) == 0 {
		b.ext.cancel(nil)
	}
	if b.begun != 0 && b.root.accounting.begin(b.begun) {
		b.refuse(true)
	}
	return later
}

// enter enters a creation for at, unless another call has.
func (b *batch[K]) enter(at *batchSlot[K]) {
	b.made = b.made[:len(b.made)+1]
	both := &b.made[len(b.made)-1]
	p := &both.phase
	p.flight, both.own.ext, both.own.since, both.own.by = &both.own, &b.ext, b.all.since, b.all.by
	p.participants.Store(uint64(b.who.counts | b.root.extra))
	e, begun := b.root.insert(at.at(), at.entry, p)
	if at.entry = e; begun == 0 {
		b.include(at)
		return
	}
	b.begun += begun
	at.joined, at.created = p.flight, true
	b.own = append(b.own, ownCreation[K]{entry: e, phase: p})
}

// calling is a function of the shell that calls the function of a batch. It writes the
// values into the entries that the batch creates, and returns how each creation has
// ended; nil if all have made a value.
type calling[K comparable] = func(*batch[K]) []result

// startAlone is start where the caller may leave.
func (b *batch[K]) startAlone(call calling[K]) {
	if len(b.own) > 0 {
		atomics.Go(func() {
			b.all.runAlone()
			b.run(&b.thrown, call)
		})
	}
}

// start calls the function for the keys that are to be created, if there are any.
func (b *batch[K]) start(call calling[K]) {
	if len(b.own) == 0 {
		return
	}
	returned := false
	defer func() {
		if !returned {
			b.abandon(b.places)
		}
	}()
	if b.who.part != nil {
		if d, err := b.who.part.depend(b.own[0].phase.flight, b.own[0].entry.key, calls); err == nil {
			defer d.end()
		}
	}
	b.run(nil, call)
	returned = true
}

// run is creation.run for all together.
func (b *batch[K]) run(alone *PanicError, call calling[K]) {
	b.refuse(false)
	if len(b.own) == 0 {
		return
	}
	returned := false
	defer func() {
		if !returned {
			cutShort(recover(), alone, b.endAll)
		}
	}()
	ends := call(b)
	returned = true
	b.end(ends)
}

// endAll is end for a function that was cut short, as all of its creations are.
func (b *batch[K]) endAll(how *result) {
	lost := how.lost
	how.lost = nil
	ends := slices.Repeat([]result{*how}, len(b.own))
	if lost == nil {
		b.end(ends)
		return
	}
	b.root.accounting.begin(onePending) // Close waits until it is known whether a caller gets the panic
	defer b.root.accounting.finish(onePending)
	if !b.end(ends) {
		b.root.accounting.note(lost)
	}
}

// refuse ends those creations whose functions must not be called: all, if the cache is
// closed. They are none of the batch's afterwards. The others begin.
func (b *batch[K]) refuse(closed bool) {
	r, left := b.root, b.own[:0]
	if !closed && r.timed == nil && r.claims == nil && r.renewals.Load() == nil {
		return // none needs a timer, or has to wait
	}
	n := creation[K]{root: r} // one after the other; timers and claims keep what is in it, and not n
	if b.only {
		n.ctx = &b.createContext
	}
	for i := range b.own {
		n.become(&b.own[i])
		err := ErrClosed
		if !closed {
			n.watch()
			err = n.takeTurn()
		}
		if err != nil {
			n.settle(&result{err: err})
			n.phase.callOff(nil)
			continue
		}
		left = append(left, ownCreation[K]{n.entry, n.phase, n.stop, n.holds, false})
	}
	b.own = left
}

// end settles all, and reports whether a caller that waited gets the outcome of one.
// Values are closed after that.
func (b *batch[K]) end(ends []result) (heard bool) {
	r := b.root
	if r.recorder != nil {
		defer b.recordEnds(ends)()
	}
	created := len(b.own)
	for _, how := range ends {
		if how.err != nil {
			r.accounting.count(how.err, how.cut)
			created--
		}
	}
	r.accounting.created.Add(int64(created))
	var over tally
	var stay, free []*entry[K]
	if b.loose != nil {
		free = b.loose()
		for _, e := range free {
			r.own(e.key)
		}
	}
	n := creation[K]{root: r}
	for i := range b.own {
		n.become(&b.own[i])
		how := new(result)
		if ends != nil {
			how = &ends[i]
		}
		l := n.conclude(how)
		b.own[i].ended = n.ended
		heard = heard || l.heard
		over += l.over
		if l.stays && r.sieve != nil {
			stay = append(stay, n.entry)
		}
		if l.drop != nil {
			free = append(free, l.drop)
		}
	}
	r.accounting.finish(over)
	for i := range b.own {
		if own := &b.own[i]; own.ended {
			own.phase.end()
		}
	}
	for _, e := range stay {
		r.settled(e)
	}
	r.later(free)
	return heard
}

// gather waits for the outcomes. It returns the keys that have to be looked for
// again.
func (o *outcomes[K, V]) gather(b *batch[K]) (again []K) {
	for i := range b.places {
		at := &b.places[i]
		if at.entry.state.Load() == nil {
			o.take(at.entry.key, at.entry, nil) // as outcome would say
			continue
		}
		who := b.caller(at)
		last, held, err := at.entry.outcome(&who)
		switch {
		case err == nil:
			o.take(at.entry.key, last, held)
		case err == errAgain && who.created && !o.oneByOne:
			o.later = append(o.later, at.entry.key) // it would have had to wait for its turn
		case err == errAgain:
			b.root.giveUp(last, held)
			again = append(again, at.entry.key)
		case err == error(&b.thrown):
			b.abandon(b.places[i+1:])
			panic(rethrown{&b.thrown})
		case err == ErrNotFound:
			// left out
		default:
			o.fail(at.entry.key, err)
		}
	}
	return again
}

// abandon leaves the flights of others that the caller has joined. One that has
// finished has counted the caller, as those have that the caller has created: when
// its goroutine ends in OnCreate, or the function has panicked.
func (b *batch[K]) abandon(places []batchSlot[K]) {
	for i := range places {
		who := b.caller(&places[i])
		if who.joined == nil || !who.created && who.joined.leave(who.counts) {
			continue
		}
		who.ctx = nil // the outcome will be there in a moment
		last, held, _ := places[i].entry.outcome(&who)
		b.root.giveUp(last, held)
	}
}
