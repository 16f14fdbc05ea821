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
type groupSettings struct {
	config any // the *GroupConfig
	perKey bool
	base   *settings // Config.Default, before a group state adopts it
}

// configOf returns the config of settings.
func configOf[K comparable](s *groupSettings) *GroupConfig[K] { return s.config.(*GroupConfig[K]) }

func (c GroupConfig[K]) compile() (*groupSettings, error) {
	base, err := compileGroup(&c.Default, c.ForgetAfter, c.MaxOpen)
	if err != nil {
		return nil, err
	}
	return &groupSettings{&c, c.PerKey != nil, base}, nil
}

// compileGroup is the part of compile that does not depend on the type of keys.
func compileGroup(c *Config, forget time.Duration, open int) (*settings, error) {
	if open < 0 {
		return nil, fmt.Errorf("atomicbreaker: GroupConfig.MaxOpen %d: must not be negative", open)
	}
	if forget > longestForget {
		return nil, fmt.Errorf("atomicbreaker: GroupConfig.ForgetAfter %v: must be at most %v", forget, longestForget)
	}
	base, err := c.compileKeyed()
	if err != nil {
		return nil, fmt.Errorf("%w (in GroupConfig.Default)", err)
	}
	base.forgetAfter, base.openLimit = forgetAfter(forget), int64(open)
	return base, nil
}
