package model

// Renew is Find for Refresh: beside a value, the flight is one of its own.
func (o *Owner) Renew(k int) (f *Flight, creates bool) {
	base, ok := o.ready[k]
	if !ok || o.Shut {
		return o.Find(k, false)
	}
	if f, creates = o.Cache.Renew(k); creates {
		o.start(k, f, false)
		o.crews[f].renewal, o.crews[f].base = true, base
		o.users[base]++ // its function
	}
	return f, creates
}

// Base returns the value that f is to replace, or 0.
func (o *Owner) Base(f *Flight) int { return o.crews[f].base }

// unchanged reports whether a Refresh has made what was there, or nothing new.
func (o *Owner) unchanged(c *crew, e Ending) bool {
	return c.renewal && (e.Err == o.ErrNotModified || e.Err == nil && o.Closes && e.Value == c.base)
}

// remain ends a Refresh that has made nothing new: if the old value is still there, it is as
// if it was new, and otherwise those aboard look again.
func (o *Owner) remain(c *crew, f *Flight) {
	for _, flights := range []map[int]*Flight{o.flights, o.renewals} {
		if flights[c.key] == f {
			delete(flights, c.key)
		}
	}
	there := o.ready[c.key] == c.base
	if there {
		o.limit(c.key)
	}
	if f.Over {
		return
	}
	*f = Flight{Over: true, Value: c.base}
	if c.again = !there; c.again {
		*f = Flight{Over: true, Err: o.ErrNotModified}
	}
}

// succeed follows the replacement of the value of k by that of a Refresh, which has its place.
func (o *Owner) succeed(k, old int) {
	lives := o.limit(k)
	for _, p := range o.places {
		if p.key == k && lives {
			o.makeRoom(p)
			break
		}
	}
	o.why[old] = "Replaced"
	o.unuse(old)
}
