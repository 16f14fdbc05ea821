package model

import (
	"fmt"
	"slices"
	"time"
)

// order is the values and failures that are there, as they came. What is used
// gets two marks, one for the search for what has to go and one for sweeps.
type order struct {
	places []*place // oldest first
	hand   *place   // where the search goes on; nil: at the oldest
	tick   time.Duration
}

type place struct {
	key          int
	used, recent bool
	seen         time.Duration // when a sweep found it in use, or it came
	last         time.Duration // when it was last used, as far as sweeps could know
}

// touch marks what is used.
func (o *Owner) touch(k int) {
	for _, p := range o.places {
		if p.key == k {
			p.used, p.recent, p.last = true, true, o.Now
		}
	}
}

// come adds what k has as the newest. Others may have to go.
func (o *Owner) come(k int) {
	if !o.limit(k) || o.MaxEntries == 0 && o.IdleTimeout == 0 && o.Weight == nil {
		return
	}
	if len(o.places) == 0 {
		o.tick = o.Now + o.IdleTimeout/2
	}
	newest := &place{key: k, seen: o.Now, last: o.Now}
	o.places = append(o.places, newest)
	o.makeRoom(newest)
}

// makeRoom lets others than one go while there are too many.
func (o *Owner) makeRoom(newest *place) {
	for o.full() {
		victim := o.victim(newest)
		if victim == nil {
			return // leases hold the others
		}
		o.evict(victim, "Evicted")
	}
}

// victim is SIEVE: the hand goes from old to new, and again from the oldest. It
// takes off marks, and stops at the first without.
func (o *Owner) victim(newest *place) *place {
	for range 2 * len(o.places) {
		p := o.hand
		if p == nil {
			p = o.places[0]
		}
		o.hand = o.newer(p)
		switch {
		case p == newest:
		case p.used:
			p.used = false
		case !o.leased(p.key):
			return p
		}
	}
	return nil
}

// newer returns the one that came after p, or nil.
func (o *order) newer(p *place) *place {
	if i := slices.Index(o.places, p) + 1; i < len(o.places) {
		return o.places[i]
	}
	return nil
}

func (o *Owner) evict(p *place, why string) {
	if why == "Idle" {
		o.Idle++
	} else {
		o.Evicted++
	}
	o.evicted[o.ready[p.key]] = true
	o.drop(p.key, why)
}

// leave takes out what k had.
func (o *order) leave(k int) {
	i := slices.IndexFunc(o.places, func(p *place) bool { return p.key == k })
	if i < 0 {
		return
	}
	if o.hand == o.places[i] {
		o.hand = o.newer(o.hand)
	}
	o.places = slices.Delete(o.places, i, i+1)
}

// Sweep removes what was idle, and failures that are over.
func (o *Owner) Sweep() (removed int) {
	for _, p := range slices.Clone(o.places) {
		switch {
		case o.IdleTimeout == 0:
		case p.recent, o.leased(p.key):
			p.recent, p.seen = false, o.Now
			if o.leased(p.key) {
				p.last = o.Now
			}
		case o.Now-p.seen >= o.IdleTimeout:
			if unused := o.Now - p.last; unused < o.IdleTimeout || unused > o.IdleTimeout*3/2 {
				panic(fmt.Sprintf("%d goes after %v", p.key, unused))
			}
			o.evict(p, "Idle")
			removed++
		}
	}
	for k, f := range o.failures {
		if f.until <= o.Now {
			o.drop(k, "")
			removed++
		}
	}
	return removed
}

// Pass lets time pass: creations take too long, and sweeps come.
func (o *Owner) Pass(d time.Duration) {
	end := o.Now + d
	for f, c := range o.crews {
		if o.CreateTimeout > 0 && c.running && !f.Over && c.since+o.CreateTimeout <= end {
			o.overdue(f, c.key)
		}
	}
	for o.IdleTimeout > 0 && len(o.places) > 0 && o.tick <= end {
		o.Now = o.tick
		o.tick += o.IdleTimeout / 2
		o.Sweep()
	}
	o.Now = end
	o.expireAll()
}
