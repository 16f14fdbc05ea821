package atomicbreaker

import (
	"errors"
	"fmt"
	"slices"
)

// Update changes the settings, or nothing if one is wrong; then the error names the setting and its
// value. Update can replace or remove a listener, but cannot add one if New had none. Failures,
// probes in flight and the end of the open time stay, with two exceptions: when a KOfN has come or
// gone, the next success or failure begins to count from zero, and windows start empty unless all
// are as before. Calls in progress use the old settings or the new.
//
// Update is lock-free. It takes effect by one CAS.
func (b *Breaker) Update(c Config) error {
	fresh, err := c.compile()
	if err != nil {
		return err
	}
	for {
		old := b.core.settings()
		if fresh.listener != nil && !old.listens {
			return errors.New("atomicbreaker: Config.OnStateChange: must be nil: Update cannot add a listener after New")
		}
		if err := fresh.sameTotals(old.totals); err != nil {
			return err
		}
		next := *fresh
		next.inherit(old)
		// LP(Update): this CAS, and for whether successes count in windows, that of watch.
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
	s.epoch, s.listens, s.counters = old.epoch, old.listens, old.counters
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

// Update is Breaker.Update for all keys. Keys that are past the old ForgetAfter leave
// first, with events to the old listener. Then Update calls PerKey for each key in the
// group; if that panics, its key keeps its settings, the others get theirs, and the panic
// goes on.
//
// Update is blocking on one bucket's mutex at a time, within that on the group's, on other calls of
// Update, and on the listener. It takes effect for absent keys by one store, and for others by one CAS each.
func (g *Group[K]) Update(c GroupConfig[K]) error {
	st := g.current()
	if c.OnStateChange != nil && !st.listens {
		return errors.New("atomicbreaker: GroupConfig.OnStateChange: must be nil: Update cannot add a listener after NewGroup")
	}
	fresh, err := c.compile()
	if err != nil {
		return err
	}
	if err := fresh.shared.sameTotals(st.counters.totals != nil); err != nil {
		return err
	}
	st.adopt(fresh.shared)
	defer st.use(fresh)
	st.sweep() // what is forgotten stays so, even if the new settings would remember it
	return nil
}

// use makes all keys go by settings.
func (g *group[K]) use(fresh *groupSettings[K]) {
	g.updating.Lock()
	fresh.shared.inherit(g.set.Load().shared)
	fresh.hashes = g.mustHash(fresh.shared)
	g.set.Store(fresh) // LP(Update): for absent keys
	g.updating.Unlock()
	forEach(g.stored(), g.renew)
}

// mustHash says what groupSettings.hashes is.
func (g *group[K]) mustHash(s *settings) bool { return s.rules.slow || g.keys.Dynamic() }

// watch makes a closed word of a Breaker say whether its successes count in
// windows. It follows every change of settings and every transition to closed,
// so that the later of the two finds the other. A result that sees one without it helps.
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
