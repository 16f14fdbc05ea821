package model

import (
	"slices"
	"time"
)

// crew is who takes part in a flight.
type crew struct {
	key     int
	since   time.Duration
	running bool // its function
	fixed   bool // nobody can call it off
	renewal bool // a Refresh of a value
	base    int  // which it is to replace

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

// hears reports whether a caller gets the result of f, which c takes part in.
func (c *crew) hears(f *Flight) bool { return !f.Over && c.callers > 0 && !c.off && !c.grounded }

// leaves are the reasons for which nobody can hold a value any more that the cache does not own; one
// that was replaced or deleted can be held all the same.
var leaves = []string{"Evicted", "Idle", "Expired"}

// Hold is the rest of Board for one that wants a lease, when f is over. It fails
// if the value was not made for those aboard, and is not there any more: then the
// caller looks again. To be aboard of what makes a value is no use of it.
func (o *Owner) Hold(f *Flight) bool {
	k := o.crews[f].key
	switch there := o.ready[k] == f.Value; {
	case !f.Given:
		return true // finish has counted it
	case there:
		o.touch(k)
	case o.counts() && !o.loose[f.Value] && (o.Closes || slices.Contains(leaves, o.why[f.Value])):
		return false
	}
	o.users[f.Value]++
	return true
}

// Leave ends a Board of a flight that is not over. The last one calls the
// creation off.
func (o *Owner) Leave(f *Flight, lease bool) {
	c := o.crews[f]
	c.callers--
	if lease {
		c.leases--
	}
	c.off = c.off || c.callers == 0 && !c.fixed
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
		heard = heard || c.hears(e.Flight)
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

// finish reports whether there is something that stays, and is to come.
func (o *Owner) finish(c *crew, e Ending) (stays bool) {
	same := o.unchanged(c, e)
	if same {
		e.Value, e.Err = c.base, nil
	}
	o.count(e)
	o.Pending--
	c.running = false
	if c.renewal {
		o.unuse(c.base)
	}
	f, over := e.Flight, e.Flight.Over
	old, renews, mine := o.ready[c.key], o.renewals[c.key] == f, o.flights[c.key] == f
	switch {
	case same:
		o.remain(c, f)
		return false
	case e.Err != nil:
		ttl := o.ttl(c.key, e)
		switch {
		case c.grounded:
			e.Err, ttl = o.ErrClosed, 0
		case c.off:
			c.again, ttl = !over, 0
		case c.renewal:
			ttl = 0
		}
		if o.End(c.key, f, 0, e.Err); mine && ttl != 0 {
			o.keep(c.key, e.Err, ttl)
			return true
		}
		return false
	case (mine || renews) && o.heavy(e.Value): // as if Delete came at once
		if renews {
			o.drop(c.key, "Replaced")
		}
		delete(o.flights, c.key)
		mine, renews = false, false
	}
	users := 0
	if !over {
		users = c.leases
	}
	if o.End(c.key, f, e.Value, nil); mine || renews {
		users++
	}
	if o.take(e.Value, users); renews {
		o.succeed(c.key, old)
	}
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
