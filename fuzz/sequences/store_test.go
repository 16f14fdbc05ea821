package sequences

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	cc "github.com/latchfree/latchfree/cowchangeset"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// FuzzStoreOps applies operations to a Tracker whose store fails as the bytes
// say, and lets the process end at any point: what was acknowledged is in the
// store, what is in the store was recorded, and Resume makes the same of it.
//
// Every two bytes are an operation and its argument.
func FuzzStoreOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 400 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			m := &storeMachine{t: t, store: new(model.Store), known: map[string]*storedSet{}}
			m.resume()
			for ops := program; len(ops) >= 2; ops = ops[2:] {
				m.step(ops[0]%13, int(ops[1]))
				synctest.Wait() // what goes on in the background has ended
				m.compare()
			}
			m.store.Times = 0
			require.NoError(t, m.tracker.Flush(context.Background()))
			synctest.Wait()
			m.compare()
			for c, _ := m.tracker.Current(); c != nil; c = c.Previous() {
				require.Len(t, m.store.Set(c.ID()).Entries, len(m.known[c.ID()].entries), "flushed")
			}
			if ids := m.tracker.IDs(); len(ids) > 0 {
				require.Equal(t, ids[0], m.store.Sets[0].ID, "the first that was not forgotten")
			}
			require.Empty(t, m.store.Mistakes)
		})
	})
}

// storeMachine runs a program, and knows what must be where.
type storeMachine struct {
	t       *testing.T
	store   *model.Store
	tracker *cc.Tracker[int]
	known   map[string]*storedSet // of the tracker
	next    int                   // entry, and ID
}

// storedSet is what happened to a changeset.
type storedSet struct {
	entries []int // in memory
	durable int   // how many of them were acknowledged
	sealed  bool
	applied int // how many entries ApplyEach has applied; -1: all
	aborted bool
}

func (m *storeMachine) ok(err error) bool {
	if err != nil {
		require.ErrorIs(m.t, err, cc.ErrStore)
		require.ErrorIs(m.t, err, model.ErrStore)
	}
	return err == nil
}

func (m *storeMachine) latest() (*cc.Changeset[int], *storedSet) {
	c, _ := m.tracker.Current()
	if c == nil {
		return nil, nil
	}
	return c, m.known[c.ID()]
}

func (m *storeMachine) step(op byte, arg int) {
	ctx := context.Background()
	c, set := m.latest()
	if c == nil && op > 1 && op < 11 {
		return
	}
	switch op {
	case 0, 1:
		n, err := m.tracker.Start(ctx)
		if !m.ok(err) {
			require.Nil(m.t, n)
			return
		}
		if set != nil {
			set.sealed = true
		}
		m.known[n.ID()] = &storedSet{}
	case 2, 3:
		m.next++
		_, err := m.tracker.Record(m.next)
		m.recorded(set, err, m.next)
	case 4:
		es := make([]int, 1+arg%5)
		for i := range es {
			m.next++
			es[i] = m.next
		}
		_, err := m.tracker.RecordBatch(es)
		m.recorded(set, err, es...)
	case 5:
		f, err := c.Seal(ctx)
		set.sealed = true
		if require.Equal(m.t, len(set.entries), f.Len()); m.ok(err) {
			set.durable = len(set.entries)
			require.True(m.t, m.store.Set(c.ID()).Sealed)
		}
	case 6:
		err := c.Abort(ctx, errGaveUp)
		set.sealed = true
		if set.applied < 0 {
			require.Equal(m.t, cc.ErrApplied, err)
		} else if set.aborted = true; m.ok(err) {
			require.True(m.t, m.store.Set(c.ID()).Aborted)
		}
	case 7:
		ran := false
		err := c.Apply(ctx, func(context.Context, cc.Final[int]) error {
			ran = true
			if arg%3 == 0 {
				return errGaveUp
			}
			return nil
		})
		m.applying(c, set, err, func() {
			if ran && arg%3 != 0 {
				set.applied = -1
			}
		})
	case 8:
		err := c.ApplyEach(ctx, func(_ context.Context, _ uint64, e int) error {
			require.Equal(m.t, set.entries[set.applied], e)
			if e%7 == arg%7 {
				return errGaveUp
			}
			set.applied++
			return nil
		})
		m.applying(c, set, err, func() {
			if set.applied >= 0 && c.Applied() == cc.AllApplied { // though the store may not know it
				require.Equal(m.t, len(set.entries), set.applied)
				set.applied = -1
			}
		})
	case 9:
		if m.ok(m.tracker.Flush(ctx)) {
			for _, set := range m.known {
				set.durable = len(set.entries)
			}
		}
	case 10:
		ids := m.tracker.IDs()
		n := m.tracker.Prune(1 + arg%4)
		require.Len(m.t, m.tracker.IDs(), len(ids)-n)
		require.Subset(m.t, ids[n:], m.tracker.IDs())
		for _, id := range ids[:n] {
			if set := m.store.Set(id); set != nil {
				require.True(m.t, set.Sealed)
			}
		}
	case 11:
		m.store.Fail = []string{"Start", "Append", "Seal", "Abort", "Applied", "Prune"}[arg%6]
		m.store.Late, m.store.Times = arg/6%2 == 1, 1+arg/12%3
	case 12:
		m.crash()
	}
}

func (m *storeMachine) recorded(set *storedSet, err error, es ...int) {
	if errors.Is(err, cc.ErrNoActive) {
		require.True(m.t, set.sealed)
		return
	}
	require.False(m.t, set.sealed)
	if set.entries = append(set.entries, es...); m.ok(err) {
		set.durable = len(set.entries)
	}
}

// applying checks what Apply and ApplyEach have in common.
func (m *storeMachine) applying(c *cc.Changeset[int], set *storedSet, err error, after func()) {
	set.sealed = true
	switch {
	case set.aborted && !errors.Is(err, cc.ErrStore):
		require.Equal(m.t, cc.ErrAborted, err)
	case set.applied < 0 && err == cc.ErrApplied:
	case err == errGaveUp:
		after()
	default:
		if after(); m.ok(err) {
			require.Equal(m.t, -1, set.applied)
			require.EqualValues(m.t, uint64(cc.AllApplied), m.store.Set(c.ID()).Applied)
		}
	}
}

// crash lets go of the tracker, and goes on with what the store has.
func (m *storeMachine) crash() {
	m.store.Times = 0
	m.resume()
}

// resume makes a tracker of what the store has, and compares that with what is
// known of the one before.
func (m *storeMachine) resume() {
	id := func(context.Context) (string, error) { m.next++; return fmt.Sprint("id-", m.next), nil }
	tracker, err := cc.Resume(context.Background(), cc.Config[int]{PruneUnapplied: m.next%2 == 1, Store: m.store, NewID: id, StoreTimeout: -1})
	require.NoError(m.t, err)
	synctest.Wait() // it tells the store what is sealed
	known := map[string]*storedSet{}
	for i, saved := range m.store.Sets {
		was, set := m.known[saved.ID], &storedSet{sealed: saved.Sealed || i < len(m.store.Sets)-1, aborted: saved.Aborted}
		for _, e := range saved.Entries {
			set.entries = append(set.entries, e.Value)
		}
		set.durable = len(set.entries)
		if was != nil {
			require.GreaterOrEqual(m.t, len(set.entries), was.durable, "acknowledged and not in the store")
			require.True(m.t, slices.Equal(was.entries[:len(set.entries)], set.entries))
		} else {
			require.Empty(m.t, set.entries)
		}
		switch {
		case saved.Applied == cc.AllApplied:
			set.applied = -1
		case saved.Applied > 0:
			for _, e := range saved.Entries {
				if e.Seq < saved.Applied {
					set.applied++
				}
			}
		}
		known[saved.ID] = set
	}
	m.tracker, m.known = tracker, known
}

// compare checks that the tracker has what is known.
func (m *storeMachine) compare() {
	for c, _ := m.tracker.Current(); c != nil; c = c.Previous() {
		set := m.known[c.ID()]
		require.NotNil(m.t, set, c.ID())
		got := []int(nil)
		for _, e := range c.Entries() {
			got = append(got, e)
		}
		require.True(m.t, slices.Equal(set.entries, got), "%v, want %v", got, set.entries)
		stored := m.store.Set(c.ID()).Entries
		require.GreaterOrEqual(m.t, len(stored), set.durable)
		for i, e := range stored {
			require.Equal(m.t, set.entries[i], e.Value)
		}
		require.Equal(m.t, set.aborted, c.Reason() != nil)
	}
}
