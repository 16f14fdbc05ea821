package atomicbreaker

import "fmt"

// How a book takes over the settings of its group, and its cells those of the
// book; see DESIGN.md.

// bookSettings are what a book makes of the group's settings. They never change.
type bookSettings struct {
	*groupSettings
	settings *settings // of all keys if PerKey is nil
	carry    carry     // how keys travel in new permits

	// hashes says that every key must be hashed, even if none is stored: to
	// find out whether that panics, or to count keys; or that permits say when
	// calls began.
	hashes bool

	// fresh says that nobody has gone by them yet. Who comes first takes those
	// that the group has then, so that none goes by settings that Update has
	// replaced before ResetAll has put the book in its place.
	fresh bool
}

// biases reports whether calls of absent keys have to look at them, so that linked
// is biased.
func (s *bookSettings) biases() bool { return s.hashes || s.fresh }

// settings returns what the book goes by.
func (b *pages) settings() *bookSettings {
	set := b.set.Load()
	if set.fresh {
		b.renew()
		set = b.set.Load()
	}
	return set
}

// settingsOf returns what the book makes of settings.
func (b *pages) settingsOf(of *groupSettings) *bookSettings {
	set := &bookSettings{groupSettings: of, settings: b.adopt(*of.base), carry: b.kind}
	set.settings.of = set.settings
	slow := set.settings.rules.slow
	if slow {
		set.carry = b.kind.timed()
	}
	set.hashes = slow || b.kind == carryBoxed || b.quota != nil
	return set
}

// adopt returns settings with what depends on the book.
func (b *pages) adopt(s settings) *settings {
	s.owner, s.epoch, s.listens, s.ledger, s.quota = b, b.epoch, b.of.hears, &b.of.ledger, b.quota
	return &s
}

// renew makes the book go by the group's settings.
//
// It goes round again only if Update has replaced them, or another caller the
// book's.
func (b *pages) renew() {
	for {
		held, of := b.set.Load(), b.of.set.Load()
		if held.groupSettings == of && !held.fresh {
			return
		}
		next := b.settingsOf(of)
		// linked is never too low: it goes up before keys must be hashed, and
		// down after.
		if next.hashes {
			b.linked.Add(biased)
		}
		drop := next.hashes
		if b.set.CompareAndSwap(held, next) {
			drop = held.biases()
		}
		if drop {
			b.linked.Add(-biased)
		}
	}
}

// settingsFor returns the settings of a key. It runs user code.
func (b *book[K]) settingsFor(k K) *settings {
	set := b.settings()
	if !set.perKey {
		return set.settings
	}
	c := configOf[K](set.groupSettings).PerKey(k)
	s, err := b.ofKey(set, &c)
	if err != nil {
		panic(fmt.Sprintf("%v (from GroupConfig.PerKey for key %v)", err, k))
	}
	return s
}

// ofKey returns the settings of a key, by what PerKey has returned.
func (b *pages) ofKey(set *bookSettings, c *Config) (*settings, error) {
	base, err := c.compileKeyed(nil)
	if err != nil {
		return nil, err
	}
	s := b.adopt(*base)
	s.of, s.forgetAfter, s.openRate = set.settings, set.base.forgetAfter, set.base.openRate
	return s, nil
}

func (b *book[K]) settingsOfKey(c *cell) *settings { return b.settingsFor(b.keyOf(c)) }

// settingsHeld returns the settings of a cell, up to date unless that takes user
// code. Who reports or sweeps asks for these, so that a PerKey that panics loses
// no result, slot or event; the next call of the key asks for newer ones.
func (b *pages) settingsHeld(c *cell) *settings {
	s, set := c.set.Load(), b.settings()
	if s.of == set.settings || set.perKey {
		return s
	}
	return b.renewed(&c.core, s)
}

// settingsNow returns the settings of a cell, up to date. It may run user code.
func (b *pages) settingsNow(c *cell) *settings {
	s := c.set.Load()
	if s.of == b.settings().settings {
		return s
	}
	return b.renewed(&c.core, s)
}

// held is owner.held.
func (b *pages) held(c *core) *settings { return b.settingsHeld(cellOf(c)) }

// renewed is owner.renewed.
//
// It goes round again only if the book's settings were replaced, or another
// caller has renewed those of the cell.
func (b *pages) renewed(c *core, held *settings) *settings {
	for ; held.of != b.settings().settings; held = c.set.Load() {
		next := b.shelf.settingsOfKey(cellOf(c))
		if lacking := *next; lacking.inherit(held) {
			next = &lacking
		}
		c.set.CompareAndSwap(held, next)
	}
	return held
}

func (b *pages) absentSettings(p Permit) *settings { return b.shelf.packedSettings(p) }

func (b *book[K]) packedSettings(p Permit) *settings {
	return b.settingsFor(unpack[K](p.carried(b.kind), p.key, p.bits))
}
