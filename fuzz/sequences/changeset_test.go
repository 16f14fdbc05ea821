package sequences

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	cc "github.com/latchfree/latchfree/cowchangeset"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// Checks T1, T2, T3, T4.

// FuzzChangesetOps applies operations to a Tracker and its changesets, and to
// the model, and compares every result and what both hold.
//
// Every two bytes are an operation and its argument.
func FuzzChangesetOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 600 {
			return
		}
		m := &changesetMachine{t: t}
		m.spec.PruneUnapplied = len(program)%2 == 1 // of an odd program, the last byte says nothing else
		m.tracker = cc.MustNew(cc.Config[int]{PruneUnapplied: m.spec.PruneUnapplied, NewID: func(ctx context.Context) (string, error) { return m.newID(ctx) }})
		m.foreign, _ = new(cc.Tracker[int]).Start(context.Background())
		for ops := program; len(ops) >= 2; ops = ops[2:] {
			m.step(ops[0], int(ops[1]))
			m.compareLatest()
		}
		m.compareAll()
	})
}

// changesetMachine runs a program on what is fuzzed and on the model.
type changesetMachine struct {
	t       *testing.T
	tracker *cc.Tracker[int]
	spec    model.Tracker
	sets    []*cc.Changeset[int] // the tracker's, beside spec.Sets
	finals  map[int]cc.Final[int]
	foreign *cc.Changeset[int]
	newID   func(context.Context) (string, error)
	next    int // entry, so that all are distinct
}

var errGaveUp = errors.New("gave up")

func (m *changesetMachine) step(op byte, arg int) {
	switch op %= 14; op {
	case 0, 1, 2:
		m.start(op, arg)
	case 3:
		m.startAfter(arg)
	case 4, 5:
		m.next++
		r, err := m.tracker.Record(m.next)
		c := m.spec.Active()
		seq, ok := c.Record(m.next)
		m.compareReceipt(r, err, c, seq, ok)
	case 6:
		es := make([]int, arg)
		for i := range es {
			m.next++
			es[i] = m.next
		}
		r, err := m.tracker.RecordBatch(es)
		if len(es) == 0 {
			require.NoError(m.t, err)
			require.Zero(m.t, r)
			return
		}
		c := m.spec.Active()
		seq, ok := c.Record(es...)
		clear(es) // it was copied
		m.compareReceipt(r, err, c, seq, ok)
	case 7:
		if i, ok := m.pick(arg); ok {
			m.next++
			r, err := m.sets[i].Record(m.next)
			seq, ok := m.spec.Sets[i].Record(m.next)
			if !ok {
				require.Equal(m.t, cc.ErrSealed, err)
				require.Zero(m.t, r)
				return
			}
			m.compareReceipt(r, err, m.spec.Sets[i], seq, true)
		}
	case 8:
		m.seal(arg)
	case 9:
		m.compareAll()
	case 10:
		keep := 1 + arg%4
		require.Equal(m.t, m.spec.Prune(keep, len(m.spec.Sets)), m.tracker.Prune(keep))
	case 11:
		m.apply(arg)
	case 12:
		m.abort(arg)
	case 13:
		m.follow(arg)
	}
}

// pick returns the index of a changeset, if there is one.
func (m *changesetMachine) pick(arg int) (int, bool) {
	if len(m.sets) == 0 {
		return 0, false
	}
	return len(m.sets) - 1 - arg%len(m.sets), true
}

// start calls Start with a context and a NewID that do all they may.
func (m *changesetMachine) start(op byte, arg int) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	m.newID = m.numbered(ctx)
	var want error
	if op == 2 {
		switch arg % 6 {
		case 0:
			m.newID, want = gives("", nil), errors.New("cowchangeset: Config.NewID returned an empty ID")
		case 1:
			m.newID = func(context.Context) (string, error) { panic(errGaveUp) }
			require.PanicsWithValue(m.t, errGaveUp, func() { m.tracker.Start(ctx) })
			return
		case 2:
			m.newID = func(context.Context) (string, error) { runtime.Goexit(); return "", nil }
			done := make(chan struct{})
			go func() { defer close(done); m.tracker.Start(ctx) }()
			<-done
			return
		case 3:
			cancel(errGaveUp)
			want = errGaveUp
		case 4:
			m.newID = func(context.Context) (string, error) { cancel(errGaveUp); return "late", nil }
			want = errGaveUp
		case 5:
			m.newID, want = gives("unused", errGaveUp), errGaveUp
		}
	}
	c, err := m.tracker.Start(ctx)
	if want != nil {
		require.EqualError(m.t, err, want.Error())
		require.Nil(m.t, c)
		return
	}
	m.started(c, err)
}

// numbered returns a NewID that asks for the context of its Start.
func (m *changesetMachine) numbered(want context.Context) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		require.Equal(m.t, want, ctx)
		return fmt.Sprint("id-", len(m.sets)), nil
	}
}

func gives(id string, err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return id, err }
}

func (m *changesetMachine) started(c *cc.Changeset[int], err error) {
	require.NoError(m.t, err)
	spec := m.spec.Start(fmt.Sprint("id-", len(m.sets)))
	if n := len(m.sets); n > 0 {
		require.Same(m.t, m.sets[n-1], c.Previous())
	} else {
		require.Nil(m.t, c.Previous())
	}
	m.sets = append(m.sets, c)
	require.Equal(m.t, spec.ID, c.ID())
	require.Equal(m.t, uint64(spec.Ordinal), c.Ordinal())
}

func (m *changesetMachine) startAfter(arg int) {
	ctx := context.WithValue(context.Background(), m, arg)
	m.newID = m.numbered(ctx)
	var prev, latest *cc.Changeset[int]
	switch i, ok := m.pick(arg / 4); {
	case arg%4 == 0:
	case arg%4 == 1:
		prev = m.foreign
	case ok:
		prev = m.sets[i]
	}
	if n := len(m.sets); n > 0 {
		latest = m.sets[n-1]
	}
	c, err := m.tracker.StartAfter(ctx, prev)
	if prev != latest {
		require.Equal(m.t, cc.ErrConflict, err)
		require.Nil(m.t, c)
		return
	}
	m.started(c, err)
}

func (m *changesetMachine) seal(arg int) {
	i, ok := m.pick(arg / 4)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if arg%4 == 0 {
		cancel(errGaveUp)
		_, err := m.sets[i].Seal(ctx)
		require.Equal(m.t, errGaveUp, err)
		return
	}
	final, err := m.sets[i].Seal(ctx)
	require.NoError(m.t, err)
	m.spec.Sets[i].Seal()
	if m.finals == nil {
		m.finals = map[int]cc.Final[int]{}
	}
	if earlier, ok := m.finals[i]; ok {
		require.Equal(m.t, earlier, final)
	}
	m.finals[i] = final
}

// compareReceipt checks the result of a Record into the changeset c of the
// model, which is nil if there was no active one.
func (m *changesetMachine) compareReceipt(r cc.Receipt, err error, c *model.Changeset, seq int, ok bool) {
	if !ok {
		require.ErrorIs(m.t, err, cc.ErrNoActive)
		require.Equal(m.t, len(m.sets) > 0, errors.Is(err, cc.ErrSealed))
		require.Zero(m.t, r)
		return
	}
	require.NoError(m.t, err)
	require.Equal(m.t, cc.Receipt{ChangesetID: c.ID, Ordinal: uint64(c.Ordinal), Seq: uint64(seq)}, r)
}

// compareLatest checks what can be seen of the latest changeset.
func (m *changesetMachine) compareLatest() {
	c, open := m.tracker.Current()
	spec := m.spec.Latest()
	require.Equal(m.t, m.spec.Active() != nil, open)
	if spec == nil {
		require.Nil(m.t, c)
		return
	}
	require.Same(m.t, m.sets[len(m.sets)-1], c)
	require.Equal(m.t, len(spec.Entries), c.Len())
}

// compareAll checks everything that can be read.
func (m *changesetMachine) compareAll() {
	require.Equal(m.t, m.spec.IDs(), m.tracker.IDs())
	left := m.spec.Left()
	for n, c := range m.tracker.All() {
		require.Equal(m.t, uint64(left[0].Ordinal), n)
		require.Same(m.t, m.sets[n-1], c)
		left = left[1:]
	}
	require.Empty(m.t, left)
	trail := m.tracker.Trail()
	total := 0
	for i, c := range m.sets {
		spec := m.spec.Sets[i]
		m.compareFate(c, spec)
		if i <= m.spec.Pruned {
			require.Nil(m.t, c.Previous())
		} else {
			require.Same(m.t, m.sets[i-1], c.Previous())
		}
		total += len(spec.Entries)
		n := 0
		for seq, e := range c.Entries() {
			require.Equal(m.t, uint64(n), seq)
			require.Equal(m.t, spec.Entries[n], e)
			n++
		}
		require.Equal(m.t, len(spec.Entries), n)
		if final, ok := m.finals[i]; ok {
			require.Equal(m.t, n, final.Len())
			for seq, e := range final.All() {
				require.Equal(m.t, spec.Entries[seq], e)
				n--
			}
			require.Zero(m.t, n)
		}
		require.Equal(m.t, spec.Sealed, c.IsSealed())
		select {
		case <-c.Sealed():
			require.True(m.t, spec.Sealed)
		default:
			require.False(m.t, spec.Sealed)
		}
	}
	for i, spec := range m.spec.Sets {
		if i < m.spec.Pruned {
			total -= len(spec.Entries)
		}
	}
	require.Equal(m.t, total, trail.Len())
	for r, e := range trail.All() {
		require.Greater(m.t, r.Ordinal, uint64(m.spec.Pruned))
		spec := m.spec.Sets[r.Ordinal-1]
		require.Equal(m.t, spec.ID, r.ChangesetID)
		require.Equal(m.t, spec.Entries[r.Seq], e)
		total--
	}
	require.Zero(m.t, total)
}
