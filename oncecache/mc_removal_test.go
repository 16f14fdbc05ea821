//go:build modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A bureau is a cache of several keys whose listener notes what it is told, and whose
// callers note what they have removed. Each value is made once, and told once, with the
// reason of whoever has removed it.
type bureau struct {
	m       *mc.M
	c       *oncecache.Cache[int, int]
	made    [10]mc.Tally
	told    [10]mc.Tally
	reasons [10]oncecache.Reason
	removed [10]oncecache.Reason // by a call that has returned the value
	closed  [10]mc.Tally
}

func listen(m *mc.M, config oncecache.Config[int, int]) *bureau {
	b := &bureau{m: m}
	config.OnRemove = func(_, v int, why oncecache.Reason, err error) {
		if b.told[v].Add(1); config.Close != nil && b.closed[v].Value() != 1 {
			m.Failf("%d is told before it is closed", v)
		}
		b.reasons[v] = why
	}
	if config.Close != nil {
		config.Close = func(_, v int) error { b.closed[v].Add(1); return nil }
	}
	b.c = oncecache.MustNew(config)
	return b
}

func (b *bureau) removes(v int, why oncecache.Reason, ok bool) {
	if !ok {
		return
	}
	if b.removed[v] != 0 {
		b.m.Failf("%d was removed twice", v)
	}
	b.removed[v] = why
}

func (b *bureau) set(k, v int) {
	b.made[v].Add(1)
	old, ok := b.c.Set(k, v)
	b.removes(old, oncecache.ReasonReplaced, ok)
}

func (b *bureau) delete(k int) {
	old, ok := b.c.Delete(k)
	b.removes(old, oncecache.ReasonDeleted, ok)
}

// hold acquires the value of a key, or makes v, and ends the lease.
func (b *bureau) hold(k, v int, discard bool) {
	l, err := b.c.Acquire(context.Background(), k, func(context.Context, int) (int, error) { b.made[v].Add(1); return v, nil })
	if err != nil {
		return
	}
	if got := l.Value(); b.told[got].Value() != 0 {
		b.m.Failf("%d is in use, and told", got)
	}
	if discard {
		l.Discard()
	} else {
		l.Release()
	}
}

func (b *bureau) create(k, v int) {
	b.c.GetOrCreate(k, func() (int, error) { b.made[v].Add(1); return v, nil })
}

func (b *bureau) refresh(k, v int) {
	b.c.Refresh(context.Background(), k, func(context.Context, int, int, bool) (int, error) { b.made[v].Add(1); return v, nil })
}

// over closes the cache. Others are the reasons that no call returns.
func (b *bureau) over(others ...oncecache.Reason) {
	if err := b.c.Close(context.Background()); err != nil {
		b.m.Failf("Close returns %v", err)
	}
	for v := range b.made {
		if made, told := b.made[v].Value(), b.told[v].Value(); made != told {
			b.m.Failf("%d was made %d times and told %d times", v, made, told)
		}
		known := b.removed[v] == b.reasons[v]
		for _, why := range append(others, oncecache.ReasonClosed) {
			known = known || b.removed[v] == 0 && b.reasons[v] == why
		}
		if !known {
			b.m.Failf("%d was removed by %v, and told %v", v, b.removed[v], b.reasons[v])
		}
	}
	if n := oncecache.Pending(b.c); n != 0 {
		b.m.Failf("%d are pending", n)
	}
}

// Whoever is first of those that evict, delete, replace, discard and close a value, and
// whether it was made in time: the listener is told once, with the reason of the first,
// after the last lease and after Close.
func TestProtocolsOfRemovals(t *testing.T) {
	type threads = []func(*bureau)
	set := func(k, v int) func(*bureau) { return func(b *bureau) { b.set(k, v) } }
	deletes := func(b *bureau) { b.delete(1) }
	evicted, lost := oncecache.ReasonEvicted, oncecache.ReasonDiscarded
	closes := func(int, int) error { return nil }
	for _, tt := range []struct {
		name    string
		close   func(int, int) error
		explore extent
		threads threads
		others  []oncecache.Reason
	}{
		{"evict ∥ Delete", nil, everything, threads{set(2, 2), deletes}, []oncecache.Reason{evicted}},
		{"evict ∥ Set", nil, twice, threads{set(2, 2), set(1, 3)}, []oncecache.Reason{evicted}},
		{"evict ∥ Delete ∥ Set", nil, twice, threads{set(2, 2), deletes, set(1, 3)}, []oncecache.Reason{evicted}},
		{"evict ∥ Delete, with Close", closes, everything, threads{set(2, 2), deletes}, []oncecache.Reason{evicted}},
		{"Delete ∥ Set ∥ a lease", nil, twice, threads{deletes, set(1, 3), func(b *bureau) { b.hold(1, 4, false) }}, []oncecache.Reason{lost, evicted}},
		{"Discard ∥ Delete", nil, everything, threads{func(b *bureau) { b.hold(1, 4, true) }, deletes}, []oncecache.Reason{lost}},
		{"Delete ∥ a sweep", nil, everything, threads{deletes, func(b *bureau) { oncecache.SweepIdle(b.c) }}, []oncecache.Reason{oncecache.ReasonIdle}},
		{"Set ∥ Close", nil, twice, threads{set(1, 3), func(b *bureau) { _ = b.c.Close(context.Background()) }}, []oncecache.Reason{lost}},
		{"a creation ∥ Delete ∥ Set", nil, twice, threads{func(b *bureau) { b.delete(1); b.create(1, 4) }, deletes, set(1, 3)}, []oncecache.Reason{lost, evicted}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of(fmt.Sprint("MaxEntries is 1: ", tt.name)), func(m *mc.M) {
				b := listen(m, oncecache.Config[int, int]{MaxEntries: 1, Close: tt.close})
				b.set(1, 1)
				for _, f := range tt.threads {
					m.Go(func() { f(b) })
				}
				m.Final(func() { b.over(tt.others...) })
			})
		})
	}
}
