//go:build modelcheck

package interleavings

import (
	"slices"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	cc "github.com/latchfree/latchfree/cowchangeset"
)

// Each target finds one operation that is done in two steps, though each step
// is right: what it has read may be out of date by the time it writes. Four are
// what was reported of a Python service.

// lengthFirst appends where it has just seen the end.
type lengthFirst struct{ cc.Slice[int] }

func (s *lengthFirst) Append(items ...int) int {
	n := s.Len()
	s.Slice.Append(items...)
	return n
}

func TestSliceInterleavingsFindBroken(t *testing.T) {
	seedsReject(t, "FuzzSliceInterleavings", sliceProgram(func() slicer { return new(lengthFirst) }))
}

// setsWhatItHasSeen replaces an item in what it has just loaded.
type setsWhatItHasSeen struct{ cc.Slice[int] }

func (s *setsWhatItHasSeen) Set(i, item int) {
	items := slices.Clone(s.Load())
	items[i] = item
	s.Update(func([]int) []int { return items })
}

func TestSliceInterleavingsFindBrokenSet(t *testing.T) {
	seedsReject(t, "FuzzSliceInterleavings", sliceProgram(func() slicer { return new(setsWhatItHasSeen) }))
}

// overwriting creates what it has just seen to be absent.
type overwriting struct{ registry }

func (r overwriting) Create(name string, value int) (version, error) {
	if _, ok := r.Get(name); ok {
		return r.registry.Create(name, value)
	}
	return r.Put(name, value)
}

func TestRegistryInterleavingsFindBroken(t *testing.T) {
	seedsReject(t, "FuzzRegistryInterleavings", registryProgram(func() registry { return overwriting{newRegistry()} }))
}

// stale records into the changeset that was just the current one.
type stale struct{ tracker }

func (t stale) Record(e int) (cc.Receipt, error) {
	if c, open := t.Current(); open {
		return c.Record(e)
	}
	return t.tracker.Record(e)
}

func TestChangesetInterleavingsFindBroken(t *testing.T) {
	seedsReject(t, "FuzzChangesetInterleavings", changesetProgram(func(c cc.Config[int]) tracker { return stale{newTracker(c)} }))
}

// counting prunes what it has just counted, and not what it then finds.
type counting struct{ tracker }

func (t counting) Prune(keep int) int {
	n := max(0, len(t.IDs())-keep)
	t.tracker.Prune(keep)
	return n
}

func TestChangesetInterleavingsFindBrokenPrune(t *testing.T) {
	seedsReject(t, "FuzzChangesetInterleavings", changesetProgram(func(c cc.Config[int]) tracker { return counting{newTracker(c)} }))
}

// twice creates what it has just seen to be absent.
type twice struct{ cache }

func (c twice) GetOrCreate(k int, create func() (int, error)) (int, error) {
	if v, ok := c.Get(k); ok {
		return v, nil
	}
	v, err := create()
	if err != nil {
		return 0, err
	}
	c.Set(k, v)
	return v, nil
}

func TestCacheInterleavingsFindBroken(t *testing.T) {
	seedsReject(t, "FuzzCacheInterleavings", cacheProgram(func(c cacheConfig) cache { return twice{newCache(c)} }))
}

// closing closes what it has just seen to be open.
type closing struct{ breakers }

func (b closing) RecordSuccess(k string) ab.Verdict {
	if b.State(k) == ab.Closed {
		return b.breakers.RecordSuccess(k)
	}
	b.Reset(k)
	return ab.Recovered
}

func TestBreakerInterleavingsFindBroken(t *testing.T) {
	seedsReject(t, "FuzzBreakerInterleavings", breakerProgram(func(s breakerSetup, hear func(string, ab.Event)) breakers {
		return closing{newBreakers(s, hear)}
	}))
}

// trying opens what it has just seen to be half-open.
type trying struct{ breakers }

func (b trying) RecordFailure(k string) ab.Verdict {
	if b.State(k) != ab.HalfOpen {
		return b.breakers.RecordFailure(k)
	}
	b.Trip(k, 0)
	return ab.Tripped
}

func TestBreakerInterleavingsFindBrokenCommands(t *testing.T) {
	seedsReject(t, "FuzzBreakerInterleavings", breakerProgram(func(s breakerSetup, hear func(string, ab.Event)) breakers {
		return trying{newBreakers(s, hear)}
	}))
}
