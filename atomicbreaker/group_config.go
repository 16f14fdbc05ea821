package atomicbreaker

import (
	"fmt"
	"time"
)

// GroupConfig holds the settings of a Group. The zero value means the defaults.
type GroupConfig[K comparable] struct {
	// Default holds the settings of all keys without PerKey, and of those for which it
	// returns wrong ones.
	Default Config

	// PerKey returns the settings of one key. It must be fast, and return the same settings for the
	// same key. It is called for failures, errors and commands of absent keys, for their successes
	// if Default has a SlowRate, and by Update for each key in the group. If its settings are
	// wrong, those of Default hold: Stats.WrongSettings counts that, and New(g.Config(k)) says what
	// is wrong. If PerKey panics, the operation records nothing.
	PerKey func(K) Config

	// ForgetAfter is how long the group remembers an unhealthy key that nobody calls: after that
	// the key is healthy. Zero means one hour, a negative value never. At most 365 days. For an
	// open or half-open key the time starts with its last call, or with the end of its open time or
	// ProbeTimeout if that is later; for a closed key with the last result that it remembers. Keys
	// that are open until Reset, ForcedOpen or Disabled stay.
	//
	// There is no timer: a forgotten key leaves the group when something changes it, in Sweep,
	// after the group has doubled, and when MaxOpen withholds failures.
	ForgetAfter time.Duration

	// MaxOpen is how many keys may be open or half-open at once, so that a local fault does not
	// shut off everything. Zero means no bound. A failure or GroupPermit.Trip that would open one
	// key too many is Counted; the key's next failure tries again. Group.Trip and HalfOpen open
	// keys beyond the bound, and these count; ForcedOpen keys do not. Lowering the bound closes no
	// key.
	MaxOpen int

	// OnStateChange is called for every change of a key: for one key in order, for
	// different keys concurrently. A key stays in the group until its events are delivered.
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
