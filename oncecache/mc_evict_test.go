//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A value whose creation others have awaited may be evicted as soon as it is there,
// but not from those that hold it, and it is closed once.
func TestProtocolsOfAwaitedEntries(t *testing.T) {
	for name, call := range map[string]func(e *estate){
		"Acquire": func(e *estate) {
			l, err := e.c.Acquire(context.Background(), 1, e.make(3))
			e.wantError(err)
			if _, ok := e.c.Get(1); !ok || e.shut[l.Value()].Load() != 0 {
				e.m.Failf("%d is in use; the key has a value: %v", l.Value(), ok)
			}
			l.Release()
		},
		"GetOrCreateMany": func(e *estate) {
			_, err := e.c.GetOrCreateMany(context.Background(), []int{1}, func(context.Context, []int) (map[int]int, error) {
				e.made[3] = true
				return map[int]int{1: 3}, nil
			})
			e.wantError(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("MaxEntries is 1: GetOrCreate ∥ "+name+" of the same key ∥ Set of another"), func(m *mc.M) {
				e := settle(m, oncecache.Config[int, int]{MaxEntries: 1})
				m.Go(func() { e.c.GetOrCreate(1, func() (int, error) { return e.make(1)(nil, 1) }) })
				m.Go(func() { call(e) })
				m.Go(func() { e.set(2, 2) })
				m.Final(e.over)
			})
		})
	}
	t.Run("Acquire where nothing is closed", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "MaxEntries is 1: Acquire ∥ Set of another key"}, func(m *mc.M) {
			c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
			m.Go(func() {
				l, err := c.Acquire(context.Background(), 1, makesOne)
				if _, ok := c.Get(1); !ok || err != nil {
					m.Failf("%d is in use; the key has a value: %v, %v", l.Value(), ok, err)
				}
				l.Release()
			})
			m.Go(func() { c.Set(2, 2) })
		})
	})
}

// Callers that want leases are counted before the value can be evicted: who creates a value
// holds that very value, and so does who has joined the creation. So each call of Acquire
// creates once at most.
func TestAcquireCreatesOnce(t *testing.T) {
	for _, bound := range []struct {
		name string
		oncecache.Config[int, int]
	}{
		{"MaxEntries is 1", oncecache.Config[int, int]{MaxEntries: 1}},
		{"MaxWeight is 1", oncecache.Config[int, int]{MaxWeight: 1, Weight: func(int, int) int64 { return 1 }}},
	} {
		for name, call := range map[string]func(*oncecache.Cache[int, int]){
			"Set":         func(c *oncecache.Cache[int, int]) { c.Set(2, 2) },
			"GetOrCreate": func(c *oncecache.Cache[int, int]) { c.GetOrCreate(2, func() (int, error) { return 2, nil }) },
		} {
			t.Run(name+", "+bound.name, func(t *testing.T) {
				mc.Check(t, mc.Config{Operations: bound.name + ": Acquire ∥ " + name + " of another key"}, func(m *mc.M) {
					c := oncecache.MustNew(bound.Config)
					m.Go(func() { acquiresOnce(m, c) })
					m.Go(func() { call(c) })
				})
			})
		}
		t.Run("Acquire, "+bound.name, func(t *testing.T) {
			mc.Check(t, twice.of(bound.name+": Acquire ∥ Acquire of the same key ∥ Set of another"), func(m *mc.M) {
				c := oncecache.MustNew(bound.Config)
				for range 2 {
					m.Go(func() { acquiresOnce(m, c) })
				}
				m.Go(func() { c.Set(2, 2) })
			})
		})
	}
}

// acquiresOnce acquires key 1, and fails m if the creation is repeated, or if the value is not
// there while it is leased.
func acquiresOnce(m *mc.M, c *oncecache.Cache[int, int]) {
	created := 0
	l, err := c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) {
		created++
		return 1, nil
	})
	if _, ok := c.Get(1); !ok || err != nil || created > 1 {
		m.Failf("created %d times, %v; the key has a value: %v", created, err, ok)
	}
	l.Release()
}

// A key that is being created, and then has a value, which Set replaces while it is being
// evicted, is never absent, and Wait finds a value.
func TestProtocolsOfWaitForWhatIsEvicted(t *testing.T) {
	mc.Check(t, twice.of("MaxEntries is 1: GetOrCreate ∥ Wait ∥ it is evicted, and Set meanwhile"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1})
		begun, waits, created := atomics.MakeEvent(), atomics.MakeEvent(), atomics.MakeEvent()
		absent, replaced := false, false
		m.Go(func() {
			c.GetOrCreate(1, func() (int, error) {
				begun.Fire()
				waits.Wait()
				return 1, nil
			})
			created.Fire()
		})
		m.Go(func() {
			begun.Wait()
			v, err := c.Wait(context.Background(), 1)
			if absent = err == oncecache.ErrNotFound; !absent && (err != nil || v != 1 && v != 5) {
				m.Failf("Wait returns %d, %v", v, err)
			}
		})
		m.Go(func() {
			begun.Wait()
			waits.Fire()
			created.Wait()
			finish := oncecache.StartEviction(c, 1)
			_, replaced = c.Set(1, 5)
			finish()
		})
		m.Final(func() {
			if absent && replaced {
				m.Failf("Wait has not found the key, which was there all the time")
			}
		})
	})
}
