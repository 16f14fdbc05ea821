package shardedregistry

import (
	"runtime"

	"github.com/latchfree/latchfree/internal/atomics"
)

// politeness is how many attempts fail before the processor is offered to
// others between attempts. The first failures are most often met by one quick
// repetition.
const politeness = 3

// suspect is a call of Update, Upsert or DeleteMatching that has failed patience
// times at a key, and asks who changes that.
//
// While it is listed, everyone who changes the same key compares goroutine ids.
// The call's own goroutine is inside the call, so a change that it makes is
// made by the function that the call runs.
type suspect[K comparable] struct {
	key       hkey[K]
	goroutine uint64
	own       *bool       // set when caught; touched by that goroutine only
	next      *suspect[K] // immutable
}

// listed calls f while a suspect for k is listed. The flag that f is given
// becomes true when the calling goroutine changes k.
func (s *shard[K, V]) listed(k hkey[K], f func(own *bool)) {
	own := new(bool)
	push(&s.suspects, &suspect[K]{key: k, goroutine: atomics.Goroutine(), own: own})
	defer drop(&s.suspects, own) // f runs a user's function, which may panic
	f(own)
}

// tell is called by everyone who has changed k, after the change.
func (s *shard[K, V]) tell(k hkey[K]) {
	if first := s.suspects.Load(); first != nil {
		catch(first, k)
	}
}

// catch tells the suspects that their own goroutine has changed their key.
func catch[K comparable](first *suspect[K], k hkey[K]) {
	var me uint64 // asked for when a suspect of k is met: it is slow
	for p := first; p != nil; p = p.next {
		if p.key != k {
			continue
		}
		if me == 0 {
			me = atomics.Goroutine()
		}
		if me != 0 && p.goroutine == me { // 0 would mean that goroutines have no ids
			*p.own = true
		}
	}
}

// push puts p at the head of list. It is retried only when another suspect has
// come or gone meanwhile.
func push[K comparable](list *atomics.Pointer[suspect[K]], p *suspect[K]) {
	for {
		p.next = list.Load()
		if list.CompareAndSwap(p.next, p) {
			return
		}
	}
}

// drop replaces list by a copy without the suspect whose flag is own. It is
// retried only when another suspect has come or gone meanwhile.
func drop[K comparable](list *atomics.Pointer[suspect[K]], own *bool) {
	for {
		first := list.Load()
		if list.CompareAndSwap(first, without(first, own)) {
			return
		}
	}
}

// without returns a copy of the list without the suspect whose flag is own.
func without[K comparable](p *suspect[K], own *bool) *suspect[K] {
	switch {
	case p == nil:
		return nil
	case p.own == own:
		return p.next
	}
	q := *p
	q.next = without(p.next, own)
	return &q
}

// change is one call of Update, Put or Upsert: it repeats attempt until it is
// done, and returns the record that it has stored, and its cell. Every repetition
// but those that ErrTooManyRetries reports is due to another operation that has
// changed the same key.
func (p *place[K, V]) change(create bool, fn func(c *cell[K, V], old *record[V]) (V, error)) (c *cell[K, V], next *record[V], err error) {
	err = p.root.persist(p.key, func() (bool, error) { return p.attempt(create, &c, &next, fn) })
	return c, next, err
}

// persist repeats attempt, which runs a function of the user's on what k holds,
// until it is done or that function has changed k itself each time.
func (o *root[K, V]) persist(k hkey[K], attempt func() (done bool, err error)) error {
	for {
		for failed := range patience() {
			if done, err := attempt(); done {
				return err
			}
			if failed >= politeness {
				runtime.Gosched()
			}
		}
		if done, err := o.prove(k, attempt); done {
			return err
		}
	}
}

// prove repeats attempt while it is listed as a suspect, and ends it with
// ErrTooManyRetries when all of them failed and were caught.
func (o *root[K, V]) prove(k hkey[K], attempt func() (done bool, err error)) (done bool, err error) {
	o.shard(k.Hash).listed(k, func(own *bool) {
		for range proofs() {
			*own = false
			if done, err = attempt(); done || !*own {
				return
			}
		}
		done, err = true, ErrTooManyRetries
	})
	return done, err
}

// attempt runs fn on what the key holds now, nil if it is absent, and stores its
// result if the key still holds that, or, if create is set, if it is still
// absent. It reports whether the change is done; otherwise another operation has
// changed the key. Next is nil, or what the last attempt tried to store, and then
// what this one did; c becomes the cell that it works on.
func (p *place[K, V]) attempt(create bool, c **cell[K, V], next **record[V], fn func(c *cell[K, V], old *record[V]) (V, error)) (done bool, err error) {
	o := p.root
	taking := o.taking() // here, so that little is between reading the record and storing
	cell, old := p.loadLive()
	if old == nil {
		return p.attemptCreate(create, c, next, fn)
	}
	*c = cell
	k := cell.named(p.key.Hash)
	// LP(Update), an error of fn: the record was read.
	// LP(Upsert), an error of fn: likewise.
	value, err := fn(cell, old)
	if err != nil {
		return true, err
	}
	o.check(k, old)
	value = o.in(value)
	rec := *next
	if taking || rec == nil || rec.mark&datedBit != 0 || o.rules != nil {
		if rec, err = o.draft(k, taking, old, old.changed(), value); err != nil {
			return true, err
		}
		*next = rec
	} else {
		rec.mark, rec.value = old.changed(), value
		if o.transitions() {
			o.links(rec).prev.Store(old)
		}
	}
	// LP(Update): the new record is stored, or that of a rival is read.
	// LP(Put), present: likewise.
	// LP(Upsert), present: likewise.
	stored, err := p.swap(k, cell, old, rec)
	if stored {
		o.changed(k, cell, old, rec)
		o.check(k, rec)
	}
	return stored || err != nil, err
}

// attemptCreate is attempt for a key that was absent.
func (p *place[K, V]) attemptCreate(create bool, c **cell[K, V], next **record[V], fn func(c *cell[K, V], old *record[V]) (V, error)) (done bool, err error) {
	if !create {
		// LP(Update), absent: the table or a dead record was read.
		return true, ErrNotFound
	}
	value, err := fn(nil, nil)
	if err != nil {
		return true, err
	}
	// LP(Put), absent: the table stores the new cell, or the record of a rival is read.
	// LP(Upsert), absent: likewise.
	cell, rec, created, err := p.create(value)
	if created {
		*c, *next = cell, rec
	}
	return created || err != nil, err
}
