package atomicbreaker

// A group state takes over the settings of its group, and cells those of the group
// state; see DESIGN.md. Names say what a method returns, and whether it calls PerKey:
//
//	settings                   what is stored, up to date; for a cell it may call PerKey
//	loadSettings               what is stored
//	cellSettingsWithoutPerKey  what is stored in a cell, up to date unless that takes PerKey
//	keySettings…               those of a key, with or without a cell; calls PerKey
//	renew…Settings             replaces what is stored, if it is not up to date

// stateSettings are the group's settings as a group state uses them. They never change.
type stateSettings struct {
	*groupSettings
	shared  *settings  // of all keys if PerKey is nil
	packing keyPacking // how keys travel in new permits

	// hashes says that every key must be hashed, even if none is stored, to
	// find out whether that panics; or that permits say when calls began.
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
		gs.renewSettings()
		set = gs.set.Load()
	}
	return set
}

// newStateSettings returns g as the group state uses it.
func (gs *groupState) newStateSettings(g *groupSettings) *stateSettings {
	set := &stateSettings{groupSettings: g, shared: gs.adopt(*g.base), packing: gs.packing}
	set.shared.madeFor = set.shared
	slow := set.shared.rules.slow
	if slow {
		set.packing = gs.packing.timed()
	}
	set.hashes = slow || gs.packing == packBoxed
	return set
}

// adopt returns settings with the fields that depend on the group state.
func (gs *groupState) adopt(s settings) *settings {
	s.owner, s.epoch, s.listens, s.counters, s.quota = gs, gs.epoch, gs.root.listens, &gs.root.counters, &gs.quota
	s.totals = false // the group counts them
	return &s
}

// renewSettings makes the group state go by the group's settings.
//
// It retries only if Update has replaced them, or another caller the
// group state's.
func (gs *groupState) renewSettings() {
	for {
		held, current := gs.set.Load(), gs.root.set.Load()
		if held.groupSettings == current && !held.fresh {
			return
		}
		next := gs.newStateSettings(current)
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

// keySettings returns the settings of a key. It calls PerKey.
func (ks *keyedState[K]) keySettings(k K) *settings {
	set := ks.settings()
	if !set.perKey {
		return set.shared
	}
	c := configOf[K](set.groupSettings).PerKey(k)
	return ks.compileKeySettings(set, &c)
}

// compileKeySettings returns the settings of a key from what PerKey has returned, or
// those of GroupConfig.Default if they are wrong.
func (gs *groupState) compileKeySettings(set *stateSettings, c *Config) *settings {
	base, err := c.compileKeyed()
	if err != nil {
		gs.root.counters.mine().wrong.Add(1)
		return set.shared
	}
	s := gs.adopt(*base)
	s.madeFor, s.forgetAfter, s.openLimit = set.shared, set.base.forgetAfter, set.base.openLimit
	return s
}

func (ks *keyedState[K]) keySettingsOfCell(c *cell) *settings { return ks.keySettings(ks.keyOf(c)) }

// cellSettingsWithoutPerKey is for reports and sweeps, which lose no result, slot or
// event if PerKey panics. The next call of the key gets newer ones.
func (gs *groupState) cellSettingsWithoutPerKey(c *core) *settings {
	s, set := c.set.Load(), gs.settings()
	if s.madeFor == set.shared || set.perKey {
		return s
	}
	return gs.renewCellSettings(c, s)
}

// cellSettings is core.settings for a cell of this group state.
func (gs *groupState) cellSettings(c *cell) *settings {
	s := c.set.Load()
	if s.madeFor == gs.settings().shared {
		return s
	}
	return gs.renewCellSettings(&c.core, s)
}

// renewCellSettings returns the settings of a cell, which has held, up to date. It
// calls PerKey.
//
// It retries only if the group state's settings were replaced, or another
// caller has renewed those of the cell.
func (gs *groupState) renewCellSettings(c *core, held *settings) *settings {
	for ; held.madeFor != gs.settings().shared; held = c.set.Load() {
		next := gs.keyOps.keySettingsOfCell(cellOf(c))
		if lacking := *next; lacking.inherit(held) {
			next = &lacking
		}
		c.set.CompareAndSwap(held, next)
	}
	return held
}

func (ks *keyedState[K]) keySettingsOfPermit(p Permit) *settings {
	return ks.keySettings(unpack[K](p.packing(ks.packing), p.key, p.bits))
}
