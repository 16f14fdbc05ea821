package report

import (
	"regexp"
	"slices"
)

// LossGroup is what is lost for one reason.
type LossGroup struct {
	Title  string
	Reason string
	Lost   []*Comparison
}

// reason is why something is lost.
type reason struct {
	title, why string
	match      func(c *Comparison) bool
}

// reasons says why we lose what we lose. The first that matches holds.
var reasons = []reason{
	{"Against less", "The other has no versions, no closing or no single creation: it is the floor, not a way to do the same.",
		func(c *Comparison) bool {
			return slices.Contains([]string{"xsync", "pointer", "atomics", "counters", "mutexcounters", "rwmutexcounters", "syncmapcounters"}, c.Other.Impl)
		}},
	{"At one CPU", "Nobody waits for a lock, so that nothing pays for what readers without locks need: an entry of its own for each key, and atomic operations.",
		func(c *Comparison) bool { return c.Case.CPU == 1 }},
	{"Creating and deleting keys", "Readers take no lock, so each key has an entry of its own, with its state, that is allocated, published and unlinked.",
		named(`^(CacheCreate|CacheMix|CacheMany|CacheRefresh|RegistryChurn|RegistryExpiry|RegistryCreateDelete)$`)},
	{"All change one word", "A CAS that fails is tried again, where a lock lets the others sleep.",
		named(`^(RegistryUpdateHot|RegistryUpdateIf)$`)},
	{"All keys at once", "A lock keeps everybody out. Here others go on, so each key is read or written by itself.",
		named(`^(RegistrySnapshot|RegistryUpdateDuringSnapshots|RegistryClear|RegistryReplace|RegistryTransact|RegistryWatched)$`)},
	{"Changesets and slices", "What is recorded or appended is published by atomic operations of its own, so that readers take no lock.",
		named(`^(Tracker|Changeset|Slice)`)},
	{"Other", "These have no reason in common.", func(*Comparison) bool { return true }},
}

// againstLess reports whether the other does less than we do.
func (c *Comparison) againstLess() bool { return reasons[0].match(c) }

func named(pattern string) func(*Comparison) bool {
	expr := regexp.MustCompile(pattern)
	return func(c *Comparison) bool { return expr.MatchString(c.Op.Name) }
}

// LossGroups returns the losses by reason, the largest of each first.
func (r *Report) LossGroups() []LossGroup {
	groups := make([]LossGroup, len(reasons))
	for _, c := range r.Losses() {
		i := slices.IndexFunc(reasons, func(why reason) bool { return why.match(c) })
		groups[i].Title, groups[i].Reason = reasons[i].title, reasons[i].why
		groups[i].Lost = append(groups[i].Lost, c)
	}
	return slices.DeleteFunc(groups, func(g LossGroup) bool { return len(g.Lost) == 0 })
}
