package atomicbreaker

import "fmt"

// How a group state takes over the settings of its group, and its cells those of the
// group state; see DESIGN.md.

// stateSettings are the group's settings as a group state uses them. They never change.
type stateSettings struct {
	*groupSettings
	settings *settings  // of all keys if PerKey is nil
	packing  keyPacking // how keys travel in new permits

	// hashes says that every key must be hashed, even if none is stored: to
	// find out whether that panics, or to count keys; or that permits say when
	// calls began.
	hashes bool

	// fresh says that nobody has used them yet. The first user takes the settings
	// that the group has then, so that nobody uses settings that Update has
	// replaced before ResetAll has put the group state in its place.
	fresh bool
}

// biases reports whether calls of absent keys have to look at them, so that linked
// is biased.
func (s *stateSettings) biases() bool { return s.hashes || s.fresh }

// settings returns the settings of the group state.
func (gs *groupState) settings() *stateSettings {
	set := gs.set.Load()
	if set.fresh {
		gs.renew()
		set = gs.set.Load()
	}
	return set
}

// settingsOf returns settings of the group as the group state uses them.
func (gs *groupState) settingsOf(of *groupSettings) *stateSettings {
	set := &stateSettings{groupSettings: of, settings: gs.adopt(*of.base), packing: gs.packing}
	set.settings.of = set.settings
	slow := set.settings.rules.slow
	if slow {
		set.packing = gs.packing.timed()
	}
	set.hashes = slow || gs.packing == packBoxed || gs.quota != nil
	return set
}

// adopt returns settings with the fields that depend on the group state.
func (gs *groupState) adopt(s settings) *settings {
	s.owner, s.epoch, s.listens, s.counters, s.quota = gs, gs.epoch, gs.of.listens, &gs.of.counters, gs.quota
	return &s
}

// renew makes the group state go by the group's settings.
//
// It retries only if Update has replaced them, or another caller the
// group state's.
func (gs *groupState) renew() {
	for {
		held, of := gs.set.Load(), gs.of.set.Load()
		if held.groupSettings == of && !held.fresh {
			return
		}
		next := gs.settingsOf(of)
		// linked is never too low: it goes up before keys must be hashed, and
		// down after.
		if next.hashes {
			gs.linked.Add(biased)
		}
		drop := next.hashes
		if gs.set.CompareAndSwap(held, next) {
			drop = held.biases()
		}
		if drop {
			gs.linked.Add(-biased)
		}
	}
}

// settingsFor returns the settings of a key. It runs user code.
func (ks *keyedState[K]) settingsFor(k K) *settings {
	set := ks.settings()
	if !set.perKey {
		return set.settings
	}
	c := configOf[K](set.groupSettings).PerKey(k)
	s, err := ks.ofKey(set, &c)
	if err != nil {
		panic(fmt.Sprintf("%v (from GroupConfig.PerKey for key %v)", err, k))
	}
	return s
}

// ofKey returns the settings of a key from the Config that PerKey has returned.
func (gs *groupState) ofKey(set *stateSettings, c *Config) (*settings, error) {
	base, err := c.compileKeyed()
	if err != nil {
		return nil, err
	}
	s := gs.adopt(*base)
	s.of, s.forgetAfter, s.openRate = set.settings, set.base.forgetAfter, set.base.openRate
	return s, nil
}

func (ks *keyedState[K]) settingsOfKey(c *cell) *settings { return ks.settingsFor(ks.keyOf(c)) }

// settingsHeld returns the settings of a cell, up to date unless that takes user
// code. Reports and sweeps use these, so that a PerKey that panics loses no result,
// slot or event. The next call of the key gets newer ones.
func (gs *groupState) settingsHeld(c *core) *settings {
	s, set := c.set.Load(), gs.settings()
	if s.of == set.settings || set.perKey {
		return s
	}
	return gs.renewed(c, s)
}

// settingsNow returns the settings of a cell, up to date. It may run user code.
func (gs *groupState) settingsNow(c *cell) *settings {
	s := c.set.Load()
	if s.of == gs.settings().settings {
		return s
	}
	return gs.renewed(&c.core, s)
}

// renewed returns the settings of a cell, which has held, up to date. It runs user
// code.
//
// It retries only if the group state's settings were replaced, or another
// caller has renewed those of the cell.
func (gs *groupState) renewed(c *core, held *settings) *settings {
	for ; held.of != gs.settings().settings; held = c.set.Load() {
		next := gs.keyOps.settingsOfKey(cellOf(c))
		if lacking := *next; lacking.inherit(held) {
			next = &lacking
		}
		c.set.CompareAndSwap(held, next)
	}
	return held
}

func (ks *keyedState[K]) packedSettings(p Permit) *settings {
	return ks.settingsFor(unpack[K](p.packing(ks.packing), p.key, p.bits))
}
