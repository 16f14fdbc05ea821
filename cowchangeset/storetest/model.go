package storetest

import (
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// model is what a store should have, in the plainest words. Each method returns whether
// a store should accept the call.
type model struct {
	first uint64 // the ordinal of the first changeset that was not pruned
	sets  []*cowchangeset.Saved[string]
}

func (m *model) find(id string) *cowchangeset.Saved[string] {
	for _, c := range m.sets {
		if c.ID == id && c.Ordinal >= m.first {
			return c
		}
	}
	return nil
}

func (m *model) latest() uint64 { return uint64(len(m.sets)) }

func (m *model) id(ordinal uint64) string {
	if ordinal == 0 || ordinal > m.latest() {
		return ""
	}
	return m.sets[ordinal-1].ID
}

// last returns the Seq of the last entry, or 0.
func last(c *cowchangeset.Saved[string]) uint64 {
	if len(c.Entries) == 0 {
		return 0
	}
	return c.Entries[len(c.Entries)-1].Seq
}

func (m *model) start(h cowchangeset.Header) bool {
	if c := m.find(h.ID); c != nil {
		return c.Header == h
	}
	latest := m.find(m.id(m.latest()))
	replaces := latest != nil && h.Ordinal == m.latest() && !latest.Sealed && len(latest.Entries) == 0
	if h.ID == "" || h.Ordinal != m.latest()+1 && !replaces || h.Previous != m.id(h.Ordinal-1) {
		return false
	}
	m.sets = append(m.sets[:h.Ordinal-1], &cowchangeset.Saved[string]{Header: h})
	return true
}

func (m *model) append(id string, entries []cowchangeset.Entry[string]) bool {
	c := m.find(id)
	if c == nil {
		return false
	}
	fresh := slices.DeleteFunc(slices.Clone(entries), func(e cowchangeset.Entry[string]) bool {
		return len(c.Entries) > 0 && e.Seq <= last(c)
	})
	if len(fresh) > 0 && c.Sealed {
		return false
	}
	c.Entries = append(c.Entries, fresh...)
	return true
}

// gone reports whether there is no such changeset, and a late call about it may be.
func (m *model) gone(id string) (gone, allowed bool) {
	return m.find(id) == nil, m.first > 1 && id != ""
}

func (m *model) seal(id string, manifest cowchangeset.Manifest) bool {
	if gone, allowed := m.gone(id); gone {
		return allowed
	}
	c := m.find(id)
	if manifest.Len != len(c.Entries) || manifest.Last != last(c) {
		return false
	}
	c.Sealed = true
	return true
}

func (m *model) abort(id, reason string) bool {
	if gone, allowed := m.gone(id); gone {
		return allowed
	}
	c := m.find(id)
	if !c.Sealed || c.Aborted && c.Reason != reason {
		return false
	}
	c.Aborted, c.Reason = true, reason
	return true
}

func (m *model) applied(id string, next uint64) bool {
	if gone, allowed := m.gone(id); gone {
		return allowed
	}
	c := m.find(id)
	if c.Sealed {
		c.Applied = max(c.Applied, next)
	}
	return c.Sealed
}

// pruned says that the store has forgotten what is below first; it returns whether it
// may.
func (m *model) pruned(first, before uint64) bool {
	for ; m.first < first; m.first++ {
		if c := m.sets[m.first-1]; m.first >= before || m.first == m.latest() || !c.Sealed {
			return false
		}
	}
	return m.first == first
}
