package sequences

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

type revisionChange = shardedregistry.Change[string, int]

// revisionNames are the keys of FuzzRegistryWatchFrom.
var revisionNames = []string{"backup", "resize", "drain", "drill", "report"}

// FuzzRegistryWatchFrom reads a byte that says how many changes are remembered, more than one
// operation makes, and three bytes for each operation. Some begin loops over WatchFrom, at a revision from before or
// after. Each must yield what a list of all changes says.
func FuzzRegistryWatchFrom(f *testing.F) {
	// One key, also deleted and created again; several at once; loops with filters, from the
	// beginning, from the middle, from what is forgotten, and from what never was.
	f.Add([]byte{1, 0, 0, 1, 8, 0, 0, 2, 0, 2, 3, 0, 0, 9, 0, 0, 0, 0, 3, 9, 0, 3, 9, 0, 4, 9, 0, 9})
	f.Add([]byte{0, 0, 0, 1, 0, 1, 2, 0, 2, 3, 8, 4, 0, 4, 0, 0, 9, 0, 0, 5, 1, 7, 9, 4, 3, 6, 0, 9, 9, 8, 4, 9, 12, 5, 9, 1, 1})
	f.Add(slices.Concat([]byte{0}, bytes.Repeat([]byte{0, 0, 1, 9, 0, 3, 0, 2, 2, 3, 0, 0, 9, 2, 0, 9, 9, 12}, 6)))
	f.Add(slices.Concat([]byte{2, 8, 3, 0, 8, 5, 0}, bytes.Repeat([]byte{1, 0, 1, 1, 1, 2, 6, 0, 3, 6, 3, 4, 5, 0, 5, 7, 0, 0, 9, 0, 20}, 5)))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) == 0 || len(ops) > 300 {
			return
		}
		synctest.Test(t, func(t *testing.T) { revisionOps(t, 8<<(ops[0]%3), ops[1:]) })
	})
}

// revisionRun is a registry with History, and the list of its changes.
type revisionRun struct {
	t        *testing.T
	r        *shardedregistry.Registry[string, int]
	history  int
	start    shardedregistry.Revision // that of no change
	changes  []revisionChange
	watching []*revisionLoop // the first of all changes
}

// revisionLoop is a loop over WatchFrom, and what it has yielded so far.
type revisionLoop struct {
	filter *watchFilter
	cancel context.CancelFunc
	want   []revisionChange
	got    []revisionChange
	err    error
}

func revisionOps(t *testing.T, history int, ops []byte) {
	s := &revisionRun{t: t, history: history}
	s.r = shardedregistry.MustNew(shardedregistry.Config[string, int]{History: history})
	s.start = s.r.Revision()
	s.watching = []*revisionLoop{s.watch(s.start, filterOf(0, false))}
	for ; len(ops) >= 3; ops = ops[3:] {
		s.operate(ops[0]%11, int(ops[1]), int(ops[2]))
	}
	for _, w := range s.watching {
		w.cancel()
	}
	synctest.Wait()
}

// watch begins a loop, which has yielded what there is when it returns.
func (s *revisionRun) watch(after shardedregistry.Revision, filter *watchFilter) *revisionLoop {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &revisionLoop{filter: filter, cancel: cancel}
	go func() {
		for change, err := range s.r.WatchFrom(ctx, after, filter.filters()...) {
			if w.err = err; err == nil {
				w.got = append(w.got, change)
			}
		}
	}()
	synctest.Wait()
	return w
}

func (s *revisionRun) operate(op byte, which, arg int) {
	key, other := revisionNames[which%len(revisionNames)], revisionNames[(which/4+1)%len(revisionNames)]
	before := maps.Collect(s.r.All())
	switch op {
	case 0:
		s.r.Put(key, arg)
	case 1:
		s.r.Create(key, arg)
	case 2:
		s.r.Update(key, func(old int) (int, error) { return old + arg, nil })
	case 3:
		s.r.Delete(key)
	case 4:
		s.r.Clear()
	case 5:
		s.r.Replace(maps.All(map[string]int{key: arg, other: -arg}), nil)
	case 6:
		s.r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			tx.Put(other, arg)
			tx.Delete(key)
			return nil
		})
	case 7:
		s.r.DeleteFunc(func(_ string, v int) bool { return v%2 == 0 })
	case 8:
		if len(s.watching) < 4 {
			s.watching = append(s.watching, s.begin(which, arg))
		}
		return
	case 9:
		w := s.begin(which, arg)
		w.cancel()
		return
	case 10:
		if i := which % len(s.watching); i > 0 {
			s.watching[i].cancel()
			s.watching = slices.Delete(s.watching, i, i+1)
		}
		return
	}
	s.changed(before)
}

// changed compares what the loops have yielded with what an operation has changed, each key
// once, in an order that the first loop tells.
func (s *revisionRun) changed(before map[string]int) {
	synctest.Wait()
	first := s.watching[0]
	told := first.got[len(s.changes):]
	after := s.r.Snapshot()
	require.Equal(s.t, s.start+shardedregistry.Revision(len(first.got)), s.r.Revision())
	now := map[string]bool{}
	for i, c := range told {
		require.Equal(s.t, s.start+shardedregistry.Revision(len(s.changes)+i+1), c.Revision)
		require.False(s.t, now[c.Key], "%s is told of twice", c.Key)
		now[c.Key] = true
		if e, ok := after.Lookup(c.Key); ok {
			require.Equal(s.t, shardedregistry.Event[string, int]{Key: c.Key, Value: e.Value, Version: e.Version}, c.Event)
		} else {
			require.Contains(s.t, before, c.Key)
			require.Equal(s.t, shardedregistry.Event[string, int]{Key: c.Key, Value: before[c.Key], Version: c.Version, Deleted: true}, c.Event)
		}
	}
	for _, key := range revisionNames {
		old, was := before[key]
		if e, is := after.Lookup(key); was != is || old != e.Value {
			require.True(s.t, now[key], "nobody is told of %s", key)
		}
	}
	s.changes = append(s.changes, told...)
	for _, w := range s.watching[1:] {
		w.want = append(w.want, s.yields(len(s.changes)-len(told), w.filter)...)
		s.compare(w)
	}
}

// yields returns what a loop yields of all changes after so many.
func (s *revisionRun) yields(read int, filter *watchFilter) (all []revisionChange) {
	for _, c := range s.changes[read:] {
		if filter.accepts(c.Key) {
			all = append(all, c)
		}
	}
	return all
}

// compare compares what a loop has yielded. When it sleeps, its caller can go on after a change
// that is not long ago.
func (s *revisionRun) compare(w *revisionLoop) {
	require.NoError(s.t, w.err)
	at, changes := s.start, []revisionChange(nil)
	for i, c := range w.got {
		require.True(s.t, i == 0 || c.Revision > at, "%+v comes after revision %d", c, at)
		if at = c.Revision; !c.Bookmark {
			changes = append(changes, c)
		} else {
			require.Equal(s.t, revisionChange{Revision: at, Bookmark: true}, c)
		}
	}
	require.Equal(s.t, w.want, changes)
	if last := s.start + shardedregistry.Revision(len(s.changes)); len(w.got) > 0 {
		require.Less(s.t, int(last-at), max(1, s.history/8))
	}
}

// begin begins a loop, and compares what it yields to begin with.
func (s *revisionRun) begin(which, arg int) *revisionLoop {
	filter := filterOf(byte(which), true)
	last := s.start + shardedregistry.Revision(len(s.changes))
	oldest := max(s.start, last-shardedregistry.Revision(min(len(s.changes), s.history)))
	from := s.start + shardedregistry.Revision(arg) - 2 // sometimes before all, or after
	if arg == 0 {
		from = 0
	}
	w := s.watch(from, filter)
	switch {
	case from == 0:
		w.want = s.yields(int(oldest-s.start), filter)
	case from < s.start || from > last:
		require.Equal(s.t, &shardedregistry.UnknownRevisionError{Revision: from}, w.err)
		require.Empty(s.t, w.got)
		return s.watch(last, filter)
	case from < oldest:
		require.Equal(s.t, &shardedregistry.CompactedError{Revision: from, Oldest: oldest}, w.err)
		require.Empty(s.t, w.got)
		return s.watch(last, filter)
	default:
		w.want = s.yields(int(from-s.start), filter)
	}
	s.compare(w)
	return w
}
