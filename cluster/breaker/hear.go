package breaker

import (
	"math/rand/v2"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// read follows a message, which was said so long ago.
func (f *follower[K]) read(subject string, payload []byte, age time.Duration) {
	defer f.g.counts.heard.Add(1) // when its effect, if any, can be seen
	h, err := decode(f.g.config.Stream, subject, payload)
	switch {
	case err != nil:
		f.g.config.OnError(err)
	case h.Kind == proof:
	case !h.Kind.isReport():
		if h.Kind == trip && h.For >= 0 {
			h = h.aged(age)
		}
		f.void(h)
		if f.g.obey(h) {
			f.g.counts.applied.Add(1)
		}
	case !f.g.own(h):
		if rest := h.For - age; h.Kind == recovered || rest > 0 {
			f.hear(h, min(rest, f.g.config.MaxOpenTimeout))
		}
	}
}

// aged returns what a Trip says that was said so long ago. What remains of one whose time has
// passed is that it has ended a forced state.
func (h hint) aged(age time.Duration) hint {
	if h.For > max(age, over) || h.For == 0 && age < usualTrip {
		h.For -= min(age, h.For)
		return h
	}
	h.Kind, h.For = unforce, 0
	return h
}

// void ends the votes for keys that a command changes at all replicas, also at those that have
// said that they are open: a Trip leaves them open.
func (f *follower[K]) void(h hint) {
	switch h.Kind {
	case resetAll:
		clear(f.votes)
	case forceOpen, disable, halfOpen, reset:
		delete(f.votes, K(h.Key))
	}
}

// own reports whether this Group has said h.
func (g *Group[K]) own(h hint) bool { return h.Replica == g.replica }

// hear follows the rules for a report, which is good for so long.
func (f *follower[K]) hear(h hint, rest time.Duration) {
	k := K(h.Key)
	if h.Kind == recovered {
		delete(f.votes[k], h.Replica)
		if f.live(k) < f.g.config.Quorum {
			f.relent(k)
		}
		return
	}
	if f.votes[k] == nil {
		f.sweep()
		f.votes[k] = make(map[string]time.Time)
	}
	f.votes[k][h.Replica] = time.Now().Add(rest)
	if h.Kind == tripped && f.live(k) >= f.g.config.Quorum {
		f.act(k, rest)
	}
}

// live counts the votes for k that have not ended, and forgets the others.
func (f *follower[K]) live(k K) int {
	now := time.Now()
	for replica, until := range f.votes[k] {
		if !now.Before(until) {
			delete(f.votes[k], replica)
		}
	}
	if len(f.votes[k]) == 0 {
		delete(f.votes, k)
	}
	return len(f.votes[k])
}

// sweep forgets votes that have ended once there are twice as many keys as it left last
// time.
func (f *follower[K]) sweep() {
	if len(f.votes) < f.sweepAt {
		return
	}
	for k := range f.votes {
		f.live(k)
	}
	f.sweepAt = max(firstSweep, 2*len(f.votes))
}

// act opens k, since enough replicas say that it is open.
func (f *follower[K]) act(k K, rest time.Duration) {
	if f.g.State(k) != atomicbreaker.Closed {
		return // it knows by itself, or an operator has decided
	}
	f.trip(k, rest)
}

// trip opens k, unless its state has changed since act has looked at it.
func (f *follower[K]) trip(k K, rest time.Duration) {
	permit, err := f.g.Allow(k)
	if err != nil {
		return
	}
	if f.g.State(k) != atomicbreaker.Closed { // the permit may be one of a probe
		permit.Cancel()
		return
	}
	rest -= rand.N(rest/2 + 1) // so that the replicas do not probe together
	f.g.opened.expect(k, time.Now().Add(rest))
	if permit.Trip(rest) != atomicbreaker.Tripped { // the state has changed since, or the quota of open keys has made it a failure
		f.g.opened.forget(k)
		return
	}
	f.g.counts.applied.Add(1)
}

// relent takes back what act has done for k.
func (f *follower[K]) relent(k K) {
	if f.g.reopen(k) {
		f.g.counts.applied.Add(1)
	}
	f.g.opened.forget(k)
}
