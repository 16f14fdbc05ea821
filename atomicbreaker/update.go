package atomicbreaker

import (
	"errors"
	"fmt"
	"slices"
)

// Update gives the breaker other settings. If a setting is wrong it changes nothing,
// and returns an error that names the setting and its value. The state stays: counted
// failures, probes in flight, and the time until which the breaker is open, even if
// that is longer than the new MaxOpenTimeout. A policy that counts in another way
// takes over the number of failures in a row, and one KOfN of more than 32 calls takes
// over the whole history of another. Windows start anew, unless all of them are the
// same as before.
//
// OnStateChange replaces the listener that the breaker was made with, and nil
// silences it. A breaker that was made without a listener cannot get one.
//
// An operation that runs during Update uses the settings that it read first.
//
// Update is lock-free. It takes effect by the CAS that installs the settings.
func (b *Breaker) Update(c Config) error {
	fresh, err := c.compile()
	if err != nil {
		return err
	}
	for {
		old := b.core.settings()
		if fresh.listener != nil && !old.listens {
			return errors.New("atomicbreaker: Config.OnStateChange: must be nil in Update of a breaker that was made without")
		}
		if err := fresh.sameTotals(old.totals); err != nil {
			return err
		}
		next := *fresh
		next.inherit(old)
		// LP(Update): this CAS.
		if b.core.set.CompareAndSwap(old, &next) {
			b.core.watch()
			return nil
		}
	}
}

// sameTotals returns why Update may not bring the settings of what was made with or
// without Config.RecordTotals.
func (s *settings) sameTotals(made bool) error {
	if s.totals == made {
		return nil
	}
	return fmt.Errorf("atomicbreaker: Config.RecordTotals %v: must be %v in Update, as it was at the beginning", s.totals, made)
}

// inherit takes over the old settings on which a breaker's state depends. It reports
// whether that changed a bound of deadlines or the windows.
func (s *settings) inherit(old *settings) (more bool) {
	s.epoch, s.queue, s.listens, s.counters = old.epoch, old.queue, old.listens, old.counters
	more = s.openBound < old.openBound || s.leaseBound < old.leaseBound
	s.openBound = max(s.openBound, old.openBound)
	s.leaseBound = max(s.leaseBound, old.leaseBound)
	if slices.Equal(s.rules.windows, old.rules.windows) && !same(s.rules.windows, old.rules.windows) {
		r := *s.rules
		r.windows = old.rules.windows
		s.rules, more = &r, true
	}
	return more
}

// Update gives the group other settings. If a setting is wrong it changes nothing,
// and returns an error that names the setting and its value. The state of all keys
// stays; see Breaker.Update. With PerKey, a stored key gets its new settings, also
// ForgetAfter and MaxOpen, when it is next called.
//
// OnStateChange replaces the listener that the group was made with, and nil silences
// it. A group that was made without OnStateChange cannot get one.
//
// An operation that runs during Update uses the settings that it read first, and so
// does SlowRate for a call that was admitted before.
//
// Update is lock-free. It takes effect by the CAS that installs the settings in
// the table.
func (g *Group[K]) Update(c GroupConfig[K]) error {
	if c.OnStateChange != nil && !g.listens {
		return errors.New("atomicbreaker: GroupConfig.OnStateChange: must be nil in Update of a group that was made without")
	}
	fresh, err := c.compile()
	if err != nil {
		return err
	}
	if err := fresh.base.sameTotals(g.counters.totals != nil); err != nil {
		return err
	}
	g.settings() // those of a zero Group
	g.update(fresh)
	return nil
}

// update is Update to settings that are valid.
func (g *groupRoot) update(fresh *groupSettings) {
	for {
		old, next := g.set.Load(), *fresh
		base := *fresh.base
		base.inherit(old.base)
		next.base = &base
		if g.set.CompareAndSwap(old, &next) {
			break
		}
	}
	if p := g.state.Load(); p != nil {
		// LP(Update): the CAS in renewSettings.
		groupStateOf(p).renewSettings()
	}
}

// watch makes a closed word of a Breaker say whether its successes count in
// windows. It follows every change of settings and every transition to closed,
// so that the later of the two finds the other.
//
// It retries only if another caller has changed the word.
func (c *core) watch() {
	for {
		s := c.set.Load()
		w := word(c.word.Load())
		if s == nil || w.mode() != closed || w.watched() == s.watchesAll() {
			return
		}
		c.word.CompareAndSwap(uint64(w), uint64(w^watched))
	}
}
