package model

import (
	"fmt"
	"slices"
	"time"
)

// order is the values and failures that are there, as they came. What is used
// gets two marks, one for the search for what has to go and one for what is idle.
type order struct {
	places []*place // oldest first
	hand   *place   // where the search goes on; nil: at the oldest
}

type place struct {
	key          int
	used, recent bool
	asks         time.Duration // when it is to be asked whether it is idle
	seen         time.Duration // when it was found in use, or came
	last         time.Duration // when it was last used, as far as anybody could know
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
	if !o.limit(k) || !o.bounded() {
		return
	}
	newest := &place{key: k, asks: o.after(o.IdleTimeout / 2), seen: o.Now, last: o.Now}
	o.places = append(o.places, newest)
	o.makeRoom(newest)
}

// makeRoom lets others than one, or any, go while there are too many.
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
// takes off marks, and stops at the first without. It passes what is leased.
func (o *Owner) victim(newest *place) *place {
	for range 2 * len(o.places) {
		p := o.hand
		if p == nil {
			p = o.places[0]
		}
		o.hand = o.newer(p)
		switch {
		case p == newest, o.leased(p.key):
		case p.used:
			p.used = false
		default:
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

// look asks each place whose time has come whether it is idle.
func (o *Owner) look() {
	for _, p := range slices.Clone(o.places) {
		if o.IdleTimeout == 0 || p.asks > o.Now {
			continue
		}
		p.asks = o.after(o.IdleTimeout / 2)
		switch {
		case o.leased(p.key):
			p.recent, p.seen, p.last = false, o.Now, o.Now
		case p.recent:
			p.recent, p.seen = false, o.Now
		case o.Now-p.seen >= o.IdleTimeout:
			if unused := o.Now - p.last; unused < o.IdleTimeout || unused > o.IdleTimeout*3/2+3*tick {
				panic(fmt.Sprintf("%d goes after %v", p.key, unused))
			}
			o.evict(p, "Idle")
		}
	}
}

// Pass lets time pass: deadlines come, one tick after the other, and then failures are over and
// creations take too long. These begin between ticks.
func (o *Owner) Pass(d time.Duration) {
	end := o.Now + d
	for next := o.after(1); next <= end; next += tick {
		o.Now = next
		o.expireAll()
		o.look()
	}
	o.Now = end
	o.expireAll()
	for f, c := range o.crews {
		if o.CreateTimeout > 0 && c.running && !f.Over && c.since+o.CreateTimeout <= end {
			o.overdue(f, c.key)
		}
	}
}

// BoundEntries changes MaxEntries, and BoundWeight changes MaxWeight.
func (o *Owner) BoundEntries(n int) {
	o.MaxEntries = n
	o.makeRoom(nil)
}

func (o *Owner) BoundWeight(w int64) {
	o.MaxWeight = w
	o.makeRoom(nil)
}
