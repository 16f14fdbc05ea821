//go:build !modelcheck

package oncecache

import "testing"

// What comes while it is looked at whether leases hold an entry decides whether
// it goes: a lease always, and a use if the one who asks minds.
func TestMarkDoom(t *testing.T) {
	keep := func(m *mark) {
		if !m.keep(nil) {
			panic("cannot be kept before it is doomed")
		}
	}
	keepUnused := func(m *mark) {
		if !m.keepUnused(nil) {
			panic("cannot be kept before it is doomed")
		}
	}
	touch, nothing := func(m *mark) { m.touch(nil) }, func(*mark) {}
	sieve, idle := uint32(usedForSieve), uint32(usedForIdle)
	for name, tt := range map[string]struct {
		before, meanwhile func(*mark)
		leased            bool
		asks              uint32
		doomed            bool
		left              uint32 // of the mark
	}{
		"new":                                {nothing, nothing, false, sieve, true, probed | doomed},
		"used, and the sieve asks":           {touch, nothing, false, sieve, false, usedForBoth},
		"used, and the sweep asks":           {touch, nothing, false, idle, false, usedForBoth},
		"used, and nobody asks":              {touch, nothing, false, 0, true, usedForBoth | probed | doomed},
		"used since the sweep, not the hand": {func(m *mark) { m.touch(nil); m.asked(usedForSieve) }, nothing, false, sieve, true, usedForIdle | probed | doomed},
		"held until now, for the sieve":      {(*mark).held, nothing, false, sieve, true, usedForIdle | probed | doomed},
		"held until now, for the sweep":      {(*mark).held, nothing, false, idle, false, usedForIdle},
		"leased":                             {nothing, nothing, true, sieve, false, 0},
		"leased and used":                    {touch, nothing, true, 0, false, usedForBoth},
		"used meanwhile":                     {nothing, touch, false, sieve, false, usedForBoth},
		"used meanwhile, and nobody asks":    {nothing, touch, false, 0, true, usedForBoth | probed | doomed},
		"leased meanwhile":                   {nothing, keep, false, sieve, false, usedForBoth},
		"leased meanwhile, and nobody asks":  {nothing, keep, false, 0, false, usedForBoth},
		"leased again meanwhile":             {keep, keep, false, 0, false, usedForBoth},
		"held without use meanwhile":         {nothing, keepUnused, false, sieve, false, 0},
		"the same, and nobody asks":          {touch, keepUnused, false, 0, false, usedForBoth},
		"held without use before":            {keepUnused, nothing, false, sieve, true, probed | doomed},
	} {
		var m mark
		tt.before(&m)
		got := m.doom(func() bool { tt.meanwhile(&m); return tt.leased }, tt.asks, 0)
		if got != tt.doomed || m.isDoomed() != tt.doomed {
			t.Errorf("%s: doom returns %t, and it is doomed %t", name, got, m.isDoomed())
		}
		if left := m.used.Load(); left != tt.left {
			t.Errorf("%s: the mark is %04b, want %04b", name, left, tt.left)
		}
	}
}

// What is doomed stays so, and nobody can hold it.
func TestMarkIsDoomedForGood(t *testing.T) {
	for name, try := range map[string]func(*mark) (kept bool){
		"keep":       func(m *mark) bool { return m.keep(nil) },
		"keepUnused": func(m *mark) bool { return m.keepUnused(nil) },
		"touch":      func(m *mark) bool { m.touch(nil); return m.keep(nil) },
		"held":       func(m *mark) bool { m.held(); return m.keep(nil) },
		"asked":      func(m *mark) bool { m.touch(nil); m.asked(usedForSieve); m.asked(usedForIdle); return m.keep(nil) },
	} {
		var m mark
		if !m.doom(func() bool { return false }, 0, idle) {
			t.Fatal("not doomed")
		}
		if try(&m) || !m.isDoomed() {
			t.Errorf("%s: kept, or not doomed any more", name)
		}
	}
}

// Each of those who ask learns of a use once, and takes nothing from the other.
func TestMarkAsked(t *testing.T) {
	var m mark
	for range 3 {
		if m.asked(usedForSieve) || m.asked(usedForIdle) {
			t.Error("used by nobody")
		}
		m.touch(nil)
		m.touch(nil)
		if !m.asked(usedForIdle) || m.asked(usedForIdle) || !m.asked(usedForSieve) || m.asked(usedForSieve) {
			t.Error("a use is not told once to each")
		}
		m.held()
		if m.asked(usedForSieve) || !m.asked(usedForIdle) {
			t.Error("the end of a lease is no use for the sieve, and one for the sweep")
		}
		if !m.keep(nil) || !m.asked(usedForSieve) || !m.asked(usedForIdle) {
			t.Error("to come to hold it is a use")
		}
		if !m.keepUnused(nil) || m.asked(usedForSieve) || m.asked(usedForIdle) {
			t.Error("to hold it without use is a use")
		}
	}
}
