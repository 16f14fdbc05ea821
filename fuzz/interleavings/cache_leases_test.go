//go:build modelcheck

package interleavings

import (
	"fmt"
	"slices"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
)

// endLease ends the lease that the thread has held longest, if it holds one. Its
// value must not have been closed up to then.
func endLease(op string, do func(l *heldLease), want func(m *model.Cache, key, v int)) cacheOp {
	return cacheOp{Name: op, Do: func(c *cacheCaller) {
		held := c.Real.leases[c.Thread]
		if len(held) == 0 {
			return
		}
		l := held[0]
		c.Real.leases[c.Thread] = held[1:]
		v := l.Value()
		c.Once(op, func() any {
			closings := c.Real.closings[v].Load()
			do(l)
			return closings
		}, func(s *cacheModel, _ int) any {
			want(s.open, l.key, v)
			return 0
		})
	}}
}

var (
	cacheRelease = endLease("Release", func(l *heldLease) { l.Release() }, func(*model.Cache, int, int) {})

	// A value is made once, so it tells instances apart, as Discard does.
	cacheDiscard = endLease("Discard", func(l *heldLease) { l.Discard() },
		func(m *model.Cache, key, v int) { m.CompareAndDelete(key, v) })
)

// What is looked at when the threads are done.
var (
	cacheQuietLen = cacheOp{Name: "Len", Do: func(c *cacheCaller) {
		cacheOnce(c, "Len", func() int { return c.Real.Len() }, func(m *model.Cache) int { return len(m.All()) })
	}}
	cacheReleaseAll = cacheAfter("values closed while held", func(c *sharedCache) any {
		closed := 0
		for _, l := range slices.Concat(c.leases[:]...) {
			closed += int(c.closings[l.Value()].Load())
			l.Release()
		}
		return closed
	}, 0)
	cacheOverlaps = cacheAfter("functions that overlap", func(c *sharedCache) any { return c.overlaps() }, 0)
	cacheClosings = cacheAfter("values not closed as often as they should be", func(c *sharedCache) any { return c.wrongClosings() }, "")
)

func cacheAfter(what string, do func(c *sharedCache) any, want any) cacheOp {
	return cacheOp{Name: what, Do: func(c *cacheCaller) {
		c.Once(what, func() any { return do(c.Real) }, func(*cacheModel, int) any { return want })
	}}
}

// overlaps counts functions of one key that ran at one time, although nothing
// can have ended one creation before the function of the other began.
func (c *sharedCache) overlaps() (n int) {
	all, ends := slices.Concat(c.creations[:]...), slices.Concat(c.ends[:]...)
	for _, a := range all {
		for _, b := range all {
			together := a != b && a.ran && b.ran && !a.refreshes && !b.refreshes && a.key == b.key && a.began.At < b.began.At && b.began.At < a.ended.At
			if together && !slices.ContainsFunc(ends, func(e interval) bool {
				return min(a.called.At, b.called.At) < e.to && e.from < b.began.At
			}) {
				n++
			}
		}
	}
	return n
}

// wrongClosings finds a value that was not closed once although the cache had
// it and was closed, or that was closed although the cache never had it.
func (c *sharedCache) wrongClosings() string {
	want := map[int]int32{}
	if c.closes {
		for _, v := range slices.Concat(c.owned[:]...) {
			want[v]++
		}
		for _, call := range slices.Concat(c.creations[:]...) {
			if call.ran && call.err == nil {
				want[call.value]++
			}
		}
	}
	for v := range c.closings {
		if n := c.closings[v].Load(); n != want[v] {
			return fmt.Sprintf("%d was closed %d times, want %d", v, n, want[v])
		}
	}
	return ""
}
