package model

// Renew is Find for Refresh: if k has a value, the flight is one of its own.
func (o *Owner) Renew(k int) (f *Flight, creates bool) {
	if _, ok := o.ready[k]; !ok {
		return o.Find(k, false)
	}
	return o.RenewAgain(k)
}

// RenewAgain is Renew for one who has looked before. What is not there when it
// begins will not be replaced.
func (o *Owner) RenewAgain(k int) (f *Flight, creates bool) {
	if o.renewals[k] == nil {
		creates = true
		o.renewals[k] = &Flight{}
		o.start(k, o.renewals[k], false)
		o.crews[o.renewals[k]].renewal = true
		o.crews[o.renewals[k]].base = o.ready[k]
	}
	return o.renewals[k], creates
}

// Renews reports whether f is a flight of Refresh.
func (o *Owner) Renews(f *Flight) bool { return o.crews[f] != nil && o.crews[f].renewal }

// FinishRenewal is Finish for a flight of Renew. The value takes the place of
// that which was there when the function began, or is nobody's.
func (o *Owner) FinishRenewal(e Ending) (heard bool) {
	c, f := o.crews[e.Flight], e.Flight
	o.count(e)
	o.Pending--
	c.running = false
	heard = !f.Over && c.callers > 0 && !c.off
	late := f.Over
	if !late {
		delete(o.renewals, c.key)
	}
	now := o.ready[c.key]
	switch {
	case e.Err != nil:
		c.again = !late && c.off
		o.settle(f, Flight{Over: true, Err: e.Err})
	case !late && c.base != 0 && c.base == now:
		o.settle(f, Flight{Over: true, Value: e.Value})
		o.Set(c.key, e.Value)
	default:
		got := e.Value
		if now != 0 {
			got = now
		}
		o.settle(f, Flight{Over: true, Value: got})
		o.take(e.Value, 0)
	}
	return heard
}

// settle ends f, if it has not ended.
func (o *Owner) settle(f *Flight, as Flight) {
	if !f.Over {
		*f = as
	}
}
