package atomicbreaker

import (
	"fmt"
	"time"
)

// GroupConfig holds the settings of a Group. The zero value means the
// defaults.
type GroupConfig[K comparable] struct {
	// Default holds the settings of all keys if PerKey is nil, and of those for
	// which PerKey returns wrong ones.
	Default Config

	// PerKey returns the settings of one key. It is called when a key that is
	// absent from the group fails, when its error has to be classified, and when
	// a key that is stored is called after Update. So it should be quick, and
	// return the same settings for the same key. If they are wrong, those of
	// Default are used, and Stats.WrongSettings counts that; New(g.Config(k))
	// returns what is wrong. If PerKey panics, the operation panics and records
	// nothing.
	PerKey func(K) Config

	// ForgetAfter is how long the group remembers a key that is not healthy and
	// that nobody calls. For an open or half-open key the time runs from its last
	// call, or from the end of its open time or its probes' time if that is later.
	// For a closed key it runs from the last result that the key remembers. Then
	// the key is healthy again for whatever meets it: a call, a result also of a
	// call from before, a command, a Snapshot. Zero means one hour, a negative
	// value never. It is at most 365 days. A key that is open until Reset stays,
	// and so does a key that ForceOpen or Disable has set.
	//
	// There is no timer. The key loses its place in the group and under
	// MaxOpen when something changes it, in Sweep, in inserts once the group has
	// doubled, and in failures that MaxOpen holds back, at most a sixty-fourth of
	// the time late.
	ForgetAfter time.Duration

	// MaxOpen is how many keys may be open at once, so that a local fault that
	// makes calls of all keys fail does not shut off everything. Zero means no
	// bound. A failure that would open one key too many is Counted, and the next
	// failure of the key tries again; a Permit.Trip then counts like any other
	// failure. Half-open keys count as open. Keys that are opened by hand count
	// too, and are not bounded; those that ForceOpen has set do not count.
	//
	// Update may change MaxOpen. A lower bound closes no key: until fewer keys
	// are open, no other key opens.
	MaxOpen int

	// OnStateChange is called for every change of a key, as Config.OnStateChange
	// is for every change of a Breaker: for one key in order and one at a time,
	// for different keys concurrently. A key stays in the group until its events
	// have been delivered. Sweep and ResetAll deliver for one key after the other.
	// While the listener is busy with one of them, other callers deliver the
	// events of their own keys.
	OnStateChange func(K, Event)
}

// groupSettings are a validated GroupConfig. They never change.
type groupSettings[K comparable] struct {
	config *GroupConfig[K]
	shared *settings // of all keys if PerKey is nil, and of those with wrong ones
}

// compile validates c.
func (c GroupConfig[K]) compile() (*groupSettings[K], error) {
	switch {
	case c.MaxOpen < 0:
		return nil, fmt.Errorf("atomicbreaker: GroupConfig.MaxOpen %d: must not be negative", c.MaxOpen)
	case c.ForgetAfter > longestForget:
		return nil, fmt.Errorf("atomicbreaker: GroupConfig.ForgetAfter %v: must be at most %v", c.ForgetAfter, longestForget)
	}
	shared, err := c.Default.compileKeyed()
	if err != nil {
		return nil, fmt.Errorf("%w (in GroupConfig.Default)", err)
	}
	shared.madeFor, shared.forgetAfter, shared.openLimit = shared, forgetAfter(c.ForgetAfter), int64(c.MaxOpen)
	shared.listens = c.OnStateChange != nil
	return &groupSettings[K]{&c, shared}, nil
}

// settingsOf returns the settings of a key: those that PerKey has returned, or those of
// GroupConfig.Default if they are wrong. It may call PerKey.
func (g *group[K]) settingsOf(k K) *settings {
	set := g.set.Load()
	if set.config.PerKey == nil {
		return set.shared
	}
	c := set.config.PerKey(k)
	s, err := c.compileKeyed()
	if err != nil {
		g.counters.mine().wrong.Add(1)
		return set.shared
	}
	s.madeFor, s.forgetAfter, s.openLimit = set.shared, set.shared.forgetAfter, set.shared.openLimit
	return g.adopt(s)
}

// adopt gives settings, which are not shared yet, what depends on the group.
func (g *group[K]) adopt(s *settings) *settings {
	s.keyed, s.epoch, s.listens, s.counters, s.quota = true, g.epoch, g.listens, &g.counters, &g.quota
	s.totals = false // the group counts them
	return s
}

// renewAll renews cells. If PerKey does not return, the same goroutine goes on while it
// unwinds.
func (g *group[K]) renewAll(cells []*cell[K]) {
	for i, c := range cells {
		orElse(func() { g.renew(c) }, func() { g.renewAll(cells[i+1:]) })
	}
}

// renew gives a cell the settings that the group has now, if it has others. It calls
// PerKey.
//
// It retries only if another caller has renewed them, or Update has come again.
func (g *group[K]) renew(c *cell[K]) {
	for {
		held := c.set.Load()
		if held.madeFor == g.set.Load().shared {
			return
		}
		next := g.settingsOf(c.key)
		if lacking := *next; lacking.inherit(held) {
			next = &lacking
		}
		c.set.CompareAndSwap(held, next)
	}
}
