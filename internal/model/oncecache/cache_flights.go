package model

import "time"

// crew is who takes part in a flight.
type crew struct {
	key     int
	since   time.Duration
	running bool // its function
	fixed   bool // nobody can call it off
	renewal bool
	base    int // the value that a renewal is to replace, or 0

	callers, leases int
	off             bool // all callers have left at some time
	grounded        bool // called off by Close
	again           bool // there is nothing to get, and those aboard look again
}

// Find returns what a caller takes part in, and whether it has to create. Fixed
// says that nobody could call the creation off then.
func (o *Owner) Find(k int, fixed bool) (f *Flight, creates bool) {
	if f := o.known(k); f != nil {
		return f, false
	}
	if f, creates = o.Begin(k); creates {
		o.start(k, f, fixed)
	}
	return f, creates
}

// Look is Find for a caller that does not create.
func (o *Owner) Look(k int) *Flight {
	if f := o.known(k); f != nil {
		return f
	}
	if f := o.flights[k]; f != nil {
		return f
	}
	return o.Absent()
}

// Absent is what a caller gets that does not create.
func (o *Owner) Absent() *Flight { return &Flight{Over: true, Err: o.ErrNotFound} }

// known returns what needs no creation, or nil.
func (o *Owner) known(k int) *Flight {
	if o.Shut {
		return &Flight{Over: true, Err: o.ErrClosed}
	}
	if v, ok := o.Get(k); ok {
		return &Flight{Over: true, Value: v}
	}
	if err := o.answer(k); err != nil {
		return &Flight{Over: true, Err: err}
	}
	return nil
}

func (o *Owner) start(k int, f *Flight, fixed bool) {
	o.Pending++
	o.crews[f] = &crew{key: k, since: o.Now, running: true, fixed: fixed}
}

// Board counts a caller of f who may want a lease.
func (o *Owner) Board(f *Flight, lease bool) {
	c := o.crews[f]
	switch {
	case !f.Over:
		c.callers++
		if lease {
			c.leases++
		}
	case lease && f.Err == nil:
		o.users[f.Value]++
	}
}

// Hold is the rest of Board for one that wants a lease, when f is over. It fails
// if the value was not made for those aboard, and is not there any more: then the
// caller looks again.
func (o *Owner) Hold(f *Flight) bool {
	k := o.crews[f].key
	switch there := o.ready[k] == f.Value; {
	case o.Closes && !f.Given:
		return true // finish has counted it
	case o.Closes && !there, o.evicted[f.Value]:
		return false
	case there:
		o.touch(k)
	}
	o.users[f.Value]++
	return true
}

// CalledOff reports whether the function of f, which has not begun, does not have
// to any more; also because f was forgotten.
func (o *Owner) CalledOff(f *Flight) bool {
	c := o.crews[f]
	return f.Over || c.off || c.grounded || o.flights[c.key] != f
}

// Drop ends a flight that was called off before its function was called.
func (o *Owner) Drop(f *Flight) {
	c := o.crews[f]
	o.Pending--
	c.running = false
	if f.Over {
		return
	}
	*f = Flight{Over: true, Err: o.ErrClosed}
	c.again = !c.grounded
	if o.flights[c.key] == f {
		delete(o.flights, c.key)
	}
}

// Leave ends a Board of a flight that is not over. The last one calls the
// creation off.
func (o *Owner) Leave(f *Flight, lease bool) {
	c := o.crews[f]
	c.callers--
	if lease {
		c.leases--
	}
	c.off = c.off || c.callers == 0 && !o.Keeps && !c.fixed
}

// LooksAgain reports whether those who took part in f must look again: it
// failed when it was called off, and they came after that.
func (o *Owner) LooksAgain(f *Flight) bool { return o.crews[f] != nil && o.crews[f].again }

// Underway returns the flights of the cache and of Refresh, with their keys.
func (o *Owner) Underway() (all []*Flight) {
	for _, flights := range []map[int]*Flight{o.flights, o.renewals} {
		for _, f := range flights {
			all = append(all, f)
		}
	}
	return all
}

// Began returns the key of f, and when it began.
func (o *Owner) Began(f *Flight) (k int, at time.Duration) { return o.crews[f].key, o.crews[f].since }

// Ending is how a create function ends for one key.
type Ending struct {
	Flight *Flight
	Value  int
	Err    error
	Cut    bool // by a panic, or runtime.Goexit
}

// Finish ends the flights of one function, and reports whether anyone gets the
// result of one. All are known before any of them makes others go.
func (o *Owner) Finish(ends ...Ending) (heard bool) {
	var stay []Ending
	for _, e := range ends {
		c := o.crews[e.Flight]
		heard = heard || !e.Flight.Over && c.callers > 0 && !c.off && !c.grounded
		if o.finish(c, e) {
			stay = append(stay, e)
		}
	}
	for _, e := range stay {
		c := o.crews[e.Flight]
		if o.come(c.key); e.Err != nil && c.callers > 0 {
			o.touch(c.key) // by those who get it
		}
	}
	return heard
}

// finish reports whether there is something that stays.
func (o *Owner) finish(c *crew, e Ending) (stays bool) {
	o.count(e)
	o.Pending--
	c.running = false
	f, mine, over := e.Flight, o.flights[c.key] == e.Flight, e.Flight.Over
	if e.Err != nil {
		ttl := o.ttl(c.key, e)
		if c.grounded {
			e.Err, ttl = o.ErrClosed, 0
		} else if c.off {
			c.again, ttl = !over, 0
		} else if c.callers == 0 {
			ttl = 0 // nobody has waited for it
		}
		if o.End(c.key, f, 0, e.Err); mine && ttl != 0 {
			o.keep(c.key, e.Err, ttl)
			return true
		}
		return false
	}
	if mine && o.heavy(e.Value) {
		mine = false
		delete(o.flights, c.key) // as if Delete came at once
	}
	users := 0
	if !over && o.Closes {
		users = c.leases
	}
	if o.End(c.key, f, e.Value, nil); mine {
		users++
	}
	o.take(e.Value, users)
	return mine
}

func (o *Owner) count(e Ending) {
	o.CreateTime += o.Now - o.crews[e.Flight].since
	switch {
	case e.Err == nil:
		o.Created++
	case e.Cut:
		o.Panicked++
	default:
		o.Failed++
	}
}
