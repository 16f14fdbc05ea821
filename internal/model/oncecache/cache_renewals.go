package model

// Renew is Find for Refresh: if k has a value, the flight is one of its own.
func (o *Owner) Renew(k int) (f *Flight, creates bool) {
	o.OvertakeOther(k)
	return o.RenewAgain(k)
}

// RenewAgain is Renew for one who has looked before.
func (o *Owner) RenewAgain(k int) (f *Flight, creates bool) {
	base, ok := o.ready[k]
	if !ok || o.Shut {
		return o.Find(k, false)
	}
	if o.renewals[k] == nil {
		creates = true
		f = &Flight{}
		o.renewals[k] = f
		o.start(k, f, false)
		o.crews[f].renewal, o.crews[f].base = true, base
	}
	return o.renewals[k], creates
}

// overtake ends the renewal of k for those who come from now on.
func (o *Owner) overtake(k int) { delete(o.renewals, k) }

// OvertakeOther is overtake for a renewal that is to replace another value than k
// has.
func (o *Owner) OvertakeOther(k int) {
	f := o.renewals[k]
	if now, ok := o.ready[k]; ok && f != nil && o.crews[f].base != now {
		o.overtake(k)
	}
}

// Renewal returns the renewal of k that is under way, or nil.
func (o *Owner) Renewal(k int) *Flight { return o.renewals[k] }

// Renews reports whether f is a flight of Refresh.
func (o *Owner) Renews(f *Flight) bool { return o.crews[f] != nil && o.crews[f].renewal }

// Base returns the value that f is to replace, or 0.
func (o *Owner) Base(f *Flight) int { return o.crews[f].base }

// HoldBase counts the function of f among the users of what it is to replace.
func (o *Owner) HoldBase(f *Flight) { o.users[o.crews[f].base]++ }

// PutBackBase ends HoldBase.
func (o *Owner) PutBackBase(f *Flight) { o.unuse(o.crews[f].base) }

// FinishRenewal is Finish for a flight of Renew. The value takes the place of
// that which was there when the function began, or of a creation that waits for
// it, or is nobody's.
func (o *Owner) FinishRenewal(e Ending) (heard bool) {
	c, f := o.crews[e.Flight], e.Flight
	now := o.ready[c.key]
	same := e.Err == o.ErrNotModified || e.Err == nil && o.Closes && e.Value == c.base
	gone := same && now == 0
	if same {
		e.Value, e.Err = c.base, nil
	}
	o.count(e)
	o.Pending--
	c.running = false
	heard = !f.Over && c.callers > 0 && !c.off && !c.grounded
	late := f.Over || o.renewals[c.key] != f
	if !late {
		delete(o.renewals, c.key)
	}
	got := e.Value
	switch {
	case e.Err != nil || gone:
		c.again = !f.Over && !c.grounded && (gone || c.off)
	case same:
		if got = now; now == c.base {
			o.limit(c.key)
		}
	case !late && now != 0 && now == c.base:
		o.succeed(c.key, e.Value)
	case !late && o.flights[c.key] != nil:
		o.store(c.key, e.Value)
	default:
		if now != 0 {
			got = now
		}
		o.take(e.Value, 0)
	}
	switch {
	case f.Over:
	case c.grounded:
		*f = Flight{Over: true, Err: o.ErrClosed}
	case e.Err != nil:
		*f = Flight{Over: true, Err: e.Err}
	default:
		*f = Flight{Over: true, Value: got}
	}
	return heard
}

// succeed gives the place of the value of k to v.
func (o *Owner) succeed(k, v int) {
	if o.heavy(v) {
		o.drop(k, "Replaced")
		o.take(v, 0)
		return
	}
	old := o.ready[k]
	o.ready[k] = v
	o.take(v, 1)
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
