//go:build !modelcheck

package oncecache

import "testing"

func kept(m *mark, isUse bool) bool {
	ok, _ := m.keep(isUse)
	return ok
}

// What comes while it is looked at whether leases hold an entry decides whether
// it goes: a lease always, and a use if the one who asks minds.
func TestMarkDoom(t *testing.T) {
	keep := func(m *mark) {
		if !kept(m, true) {
			panic("cannot be kept before it is doomed")
		}
	}
	keepUnused := func(m *mark) {
		if !kept(m, false) {
			panic("cannot be kept before it is doomed")
		}
	}
	touch, nothing := (*mark).Touch, func(*mark) {}
	sieve, idle := uint32(usedForSieve), uint32(usedForIdle)
	for name, tt := range map[string]struct {
		before, meanwhile func(*mark)
		leased            bool
		asks              uint32
		doomed            bool
		left              uint32 // of the mark
	}{
		"new":                      {nothing, nothing, false, sieve, true, probed | doomed},
		"used, and the sieve asks": {touch, nothing, false, sieve, false, usedForBoth},
		"used, and the timer asks": {touch, nothing, false, idle, false, usedForBoth},
		"used, and nobody asks":    {touch, nothing, false, 0, true, usedForBoth | probed | doomed},
		"used since the timer asked, not the hand": {func(m *mark) { m.touch(); m.asked(usedForSieve) }, nothing, false, sieve, true, usedForIdle | probed | doomed},
		"held until now, for the sieve":            {(*mark).held, nothing, false, sieve, true, usedForIdle | probed | doomed},
		"held until now, for the timer":            {(*mark).held, nothing, false, idle, false, usedForIdle},
		"leased":                                   {nothing, nothing, true, sieve, false, 0},
		"leased and used":                          {touch, nothing, true, 0, false, usedForBoth},
		"used meanwhile":                           {nothing, touch, false, sieve, false, usedForBoth},
		"used meanwhile, and nobody asks":          {nothing, touch, false, 0, true, usedForBoth | probed | doomed},
		"leased meanwhile":                         {nothing, keep, false, sieve, false, usedForBoth},
		"leased meanwhile, and nobody asks":        {nothing, keep, false, 0, false, usedForBoth},
		"leased again meanwhile":                   {keep, keep, false, 0, false, usedForBoth},
		"held without use meanwhile":               {nothing, keepUnused, false, sieve, false, 0},
		"the same, and it was used before":         {touch, keepUnused, false, 0, false, usedForBoth},
		"held without use before":                  {keepUnused, nothing, false, sieve, true, probed | doomed},
	} {
		var m mark
		tt.before(&m)
		got := m.doom(func() bool { tt.meanwhile(&m); return tt.leased }, tt.asks, 0)
		if got != tt.doomed || m.is(doomed) != tt.doomed {
			t.Errorf("%s: doom returns %t, and it is doomed %t", name, got, m.is(doomed))
		}
		if left := m.bits.Load(); left != tt.left {
			t.Errorf("%s: the mark is %05b, want %05b", name, left, tt.left)
		}
	}
}

// What is doomed stays so, and nobody can hold it.
func TestMarkIsDoomedForGood(t *testing.T) {
	for name, try := range map[string]func(*mark) bool{
		"keep":       func(m *mark) bool { return kept(m, true) },
		"keepUnused": func(m *mark) bool { return kept(m, false) },
		"touch":      func(m *mark) bool { m.touch(); return kept(m, true) },
		"held":       func(m *mark) bool { m.held(); return kept(m, true) },
		"asked":      func(m *mark) bool { m.touch(); m.asked(usedForSieve); m.asked(usedForIdle); return kept(m, true) },
	} {
		var m mark
		if !m.doom(func() bool { return false }, 0, idle) {
			t.Fatal("not doomed")
		}
		if try(&m) || !m.is(doomed) {
			t.Errorf("%s: kept, or not doomed any more", name)
		}
	}
}

// Each of those who ask learns of a use once, and takes nothing from the other.
func TestMarkAsked(t *testing.T) {
	m := new(mark)
	for range 3 {
		if m.asked(usedForSieve) || m.asked(usedForIdle) {
			t.Error("used by nobody")
		}
		m.touch()
		m.touch()
		if !m.asked(usedForIdle) || m.asked(usedForIdle) || !m.asked(usedForSieve) || m.asked(usedForSieve) {
			t.Error("a use is not told once to each")
		}
		m.held()
		if m.asked(usedForSieve) || !m.asked(usedForIdle) {
			t.Error("the end of a lease is no use for the sieve, and one for the timer")
		}
		if !kept(m, true) || !m.asked(usedForSieve) || !m.asked(usedForIdle) {
			t.Error("to come to hold it is a use")
		}
		if !kept(m, false) || m.asked(usedForSieve) || m.asked(usedForIdle) {
			t.Error("to hold it without use is a use")
		}
	}
}

// What has expired stays so: nobody gets it, holds it or renews it any more.
func TestMarkHasExpired(t *testing.T) {
	var m mark
	m.touch()
	m.bits.Or(due)
	m.bits.Or(expired)
	if live, renew := m.touch(); live || renew {
		t.Errorf("live %t, renew %t after it has expired", live, renew)
	}
	for _, isUse := range []bool{false, true} {
		if ok, renew := m.keep(isUse); ok || renew {
			t.Errorf("kept %t, renew %t after it has expired", ok, renew)
		}
	}
	if m.inUse() || !m.isExpired() || !m.isOver() {
		t.Errorf("the mark is %08b", m.bits.Load())
	}
}

// One use of what is due renews it. What is no use does not.
func TestMarkIsDueOnce(t *testing.T) {
	for name, use := range map[string]func(*mark) (live, renew bool){
		"touch": (*mark).touch,
		"keep":  func(m *mark) (live, renew bool) { return m.keep(true) },
	} {
		for _, before := range []uint32{0, usedForBoth} {
			var m mark
			m.bits.Store(before | due)
			m.held()
			if _, renew := m.keep(false); renew || m.inUse() {
				t.Errorf("%s: a lease that is no use renews: %t; the mark is %08b", name, renew, m.bits.Load())
			}
			for i := range 3 {
				if live, renew := use(&m); !live || renew != (i == 0) {
					t.Errorf("%s %d after %08b: live %t, renew %t", name, i, before, live, renew)
				}
			}
			if !m.inUse() {
				t.Errorf("%s: the mark is %08b, so that each use looks again", name, m.bits.Load())
			}
		}
	}
}
