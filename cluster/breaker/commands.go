package breaker

import (
	"sync"
	"time"

	"github.com/nats-io/nuid"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Trip opens the breaker of k for d at all replicas; see [atomicbreaker.Group.Trip].
func (g *Group[K]) Trip(k K, d time.Duration) { g.command(hint{Kind: trip, Key: string(k), For: d}) }

// ForceOpen makes all replicas reject all calls for k; see [atomicbreaker.Group.ForceOpen].
func (g *Group[K]) ForceOpen(k K) { g.command(hint{Kind: forceOpen, Key: string(k)}) }

// Disable makes all replicas let all calls for k through; see [atomicbreaker.Group.Disable].
func (g *Group[K]) Disable(k K) { g.command(hint{Kind: disable, Key: string(k)}) }

// HalfOpen lets probes of k through at all replicas; see [atomicbreaker.Group.HalfOpen].
func (g *Group[K]) HalfOpen(k K) { g.command(hint{Kind: halfOpen, Key: string(k)}) }

// Reset closes the breaker of k at all replicas; see [atomicbreaker.Group.Reset].
func (g *Group[K]) Reset(k K) { g.command(hint{Kind: reset, Key: string(k)}) }

// ResetAll closes the breakers of all keys at all replicas; see
// [atomicbreaker.Group.ResetAll].
func (g *Group[K]) ResetAll() { g.command(hint{Kind: resetAll}) }

// commands puts the commands of operators in one order: that in which they enter. They
// are applied outside the mutex, because listeners run then. Whoever has applied one,
// applies again what has entered after it. So the last that anybody applies to a key is
// the last that has entered for it.
type commands struct {
	mu      sync.Mutex
	given   map[string]string // by subject, the command of this replica that stands here and that the follower has not met
	entered []hint            // since the oldest that is being applied
	users   int               // who apply
}

// enter adds h to the order, and returns its place. The caller has c.mu.
func (c *commands) enter(h hint) (place int) {
	c.users++
	c.entered = append(c.entered, h)
	return len(c.entered)
}

// after returns what has entered after the first n, or, if there is nothing, ends the
// caller's use.
func (c *commands) after(n int) []hint {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entered) > n {
		return c.entered[n:len(c.entered):len(c.entered)]
	}
	c.users--
	if c.users == 0 {
		c.entered = nil
	}
	return nil
}

// command applies what an operator wants, and tells the others.
func (g *Group[K]) command(h hint) {
	h.Replica, h.ID = g.replica, nuid.Next()
	h = h.dated()
	g.commands.mu.Lock()
	place := g.commands.enter(h)
	if subject := h.subject(g.config.Stream); g.publish(h) {
		g.commands.given[subject] = h.ID
	} else {
		delete(g.commands.given, subject) // the follower will not meet it
	}
	g.commands.mu.Unlock()
	g.perform(h, place)
}

// dropped forgets a command that the publisher has dropped: the follower will not meet it.
func (g *Group[K]) dropped(h hint) {
	g.counts.dropped.Add(1)
	subject := h.subject(g.config.Stream)
	g.commands.mu.Lock()
	defer g.commands.mu.Unlock()
	if g.commands.given[subject] == h.ID {
		delete(g.commands.given, subject)
	}
}

// obey applies a command that the follower has met, in the order of the stream. One of
// this replica has been applied; it is applied again if another replica's has undone it.
func (g *Group[K]) obey(h hint) (applied bool) {
	c, subject := &g.commands, h.subject(g.config.Stream)
	c.mu.Lock()
	if id, stands := c.given[subject]; stands && g.own(h) { // h, or a later one that is still to come
		if id == h.ID {
			delete(c.given, subject)
		}
		c.mu.Unlock()
		return false
	}
	// Those of this replica that h undoes here come later in the stream.
	if h.Kind == resetAll {
		clear(c.given)
	} else {
		delete(c.given, subject)
		delete(c.given, hint{Kind: resetAll}.subject(g.config.Stream))
	}
	place := c.enter(h)
	c.mu.Unlock()
	return g.perform(h, place)
}

// perform applies h, and what enters for its keys until it is done. It returns what apply does.
func (g *Group[K]) perform(h hint, place int) (applied bool) {
	defer g.overtaken(h, place) // also if a listener panics
	return g.apply(h)
}

// overtaken applies again what has entered after place for the keys of h.
func (g *Group[K]) overtaken(h hint, place int) {
	later := g.commands.after(place)
	if later == nil {
		return
	}
	defer g.overtaken(h, place+len(later))
	for _, l := range later {
		switch {
		case h.Kind == resetAll || l.Key == h.Key && l.Kind != resetAll:
			g.apply(l)
		case l.Kind == resetAll:
			g.apply(hint{Kind: reset, Key: h.Key})
		}
	}
}

// reopen makes k half-open if it is open because of a hint, unless an operator decides
// otherwise meanwhile.
func (g *Group[K]) reopen(k K) bool {
	c := &g.commands
	c.mu.Lock()
	if c.users > 0 {
		c.mu.Unlock()
		return false // its time will end anyway
	}
	c.users++
	c.mu.Unlock()
	h := hint{Kind: halfOpen, Key: string(k)}
	defer g.overtaken(h, 0)
	generation, is := g.opened.generation(k)
	if s := g.Snapshot(k); !is || s.State != atomicbreaker.Open || s.Generation != generation {
		return false
	}
	g.apply(h)
	return true
}

// apply does here what a command says, and reports whether it says anything here.
func (g *Group[K]) apply(h hint) bool {
	k := K(h.Key)
	switch h.Kind {
	case trip:
		g.Group.Trip(k, h.For)
	case forceOpen:
		g.Group.ForceOpen(k)
	case disable:
		g.Group.Disable(k)
	case halfOpen:
		g.Group.HalfOpen(k)
	case unforce:
		if s := g.State(k); s != atomicbreaker.ForcedOpen && s != atomicbreaker.Disabled {
			return false
		}
		g.Group.HalfOpen(k)
	case reset:
		g.Group.Reset(k)
	case resetAll:
		g.Group.ResetAll()
	}
	return true
}
