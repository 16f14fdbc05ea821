package model

import "maps"

// Owner is a Cache with callers that leave, values that are closed when nobody
// uses them any more, and a Close of its own.
type Owner struct {
	*Cache
	Closes    bool  // values are closed
	Keep      bool  // creations go on without callers
	ErrClosed error // what callers get of a closed cache

	Shut    bool
	Pending int          // create functions that run, and open values
	Closed  map[int]bool // by value
	users   map[int]int  // of open values: leases, and the cache
	crews   map[*Flight]*crew
}

type crew struct {
	callers, leases int
	off             bool
}

func NewOwner(closes, keep bool, errClosed error) *Owner {
	return &Owner{NewCache(), closes, keep, errClosed, false, 0, map[int]bool{}, map[int]int{}, map[*Flight]*crew{}}
}

// Join is Begin for a caller who may want a lease.
func (o *Owner) Join(k int, lease bool) (f *Flight, creates bool) {
	if o.Shut {
		return &Flight{Over: true, Err: o.ErrClosed}, false
	}
	if f, creates = o.Begin(k); creates {
		o.Pending++
		o.crews[f] = &crew{}
	}
	if f.Over {
		if lease {
			o.users[f.Value]++
		}
		return f, creates
	}
	o.crews[f].callers++
	if lease {
		o.crews[f].leases++
	}
	return f, creates
}

// Leave ends a Join of a flight that is not over. The last one calls the
// creation off.
func (o *Owner) Leave(f *Flight, lease bool) {
	c := o.crews[f]
	c.callers--
	if lease {
		c.leases--
	}
	c.off = c.off || c.callers == 0 && !o.Keep
}

// CalledOff reports whether all callers of f have left it at some time. Then
// its failure is nobody's, and those who came since look again.
func (o *Owner) CalledOff(f *Flight) bool { return o.crews[f].off }

// Finish is End of a flight, whoever takes part in it. It reports whether
// anyone gets the result.
func (o *Owner) Finish(k int, f *Flight, v int, err error) (heard bool) {
	o.Pending--
	users := 0
	if c := o.crews[f]; !f.Over {
		heard, users = c.callers > 0 && !c.off, c.leases
	}
	o.End(k, f, v, err)
	if now, ok := o.ready[k]; ok && now == v && err == nil {
		users++
	}
	if err == nil {
		o.take(v, users)
	}
	return heard
}

// take makes v the owner's.
func (o *Owner) take(v, users int) {
	if o.Closes {
		o.Pending, o.users[v] = o.Pending+1, users+1
		o.Release(v)
	}
}

// Release ends one use of v.
func (o *Owner) Release(v int) {
	if o.users[v]--; o.Closes && o.users[v] == 0 {
		o.Pending, o.Closed[v] = o.Pending-1, true
	}
}

func (o *Owner) Set(k, v int) (old int, replaced bool) {
	if o.Shut {
		o.take(v, 0)
		return 0, false
	}
	users := 1
	if f := o.flights[k]; f != nil {
		users += o.crews[f].leases
	}
	old, replaced = o.Cache.Set(k, v)
	o.take(v, users)
	if replaced {
		o.Release(old)
	}
	return old, replaced
}

func (o *Owner) SetIfAbsent(k, v int) bool {
	stored := !o.Shut && o.Cache.SetIfAbsent(k, v)
	if stored {
		o.take(v, 1)
	}
	return stored
}

func (o *Owner) Delete(k int) (old int, deleted bool) {
	if old, deleted = o.Cache.Delete(k); deleted {
		o.Release(old)
	}
	return old, deleted
}

func (o *Owner) CompareAndDelete(k, v int) bool {
	deleted := o.Cache.CompareAndDelete(k, v)
	if deleted {
		o.Release(v)
	}
	return deleted
}

// Close empties the cache.
func (o *Owner) Close() {
	o.Shut = true
	for _, f := range o.flights {
		*f = Flight{Over: true, Err: o.ErrClosed}
	}
	clear(o.flights)
	for k := range maps.Clone(o.ready) {
		o.Delete(k)
	}
}
