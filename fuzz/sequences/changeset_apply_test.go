package sequences

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	cc "github.com/latchfree/latchfree/cowchangeset"
	model "github.com/latchfree/latchfree/internal/tools/model/cowchangeset"
)

// refusal is the error of an operation that the fate of a changeset forbids.
func refusal(f model.Fate) error {
	switch f {
	case model.Applying:
		return cc.ErrApplying
	case model.Applied:
		return cc.ErrApplied
	case model.Aborted:
		return cc.ErrAborted
	}
	return nil
}

// apply calls Apply or ApplyEach with a function that does all it may.
func (m *changesetMachine) apply(arg int) {
	i, ok := m.pick(arg / 8)
	if !ok {
		return
	}
	c, spec, ctx := m.sets[i], m.spec.Sets[i], context.Background()
	if arg%8 == 0 {
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errGaveUp)
		require.Equal(m.t, errGaveUp, c.Apply(ended, func(context.Context, cc.Final[int]) error { panic("called") }))
		return
	}
	var err error
	refused := spec.Apply()
	switch arg % 8 {
	case 1, 2, 3: // succeeds, fails, panics
		ran := false
		apply := func() {
			err = c.Apply(ctx, func(ctx context.Context, f cc.Final[int]) error {
				ran = true
				require.Equal(m.t, len(spec.Entries), f.Len())
				m.compareWithin(ctx, c)
				switch arg % 8 {
				case 2:
					return errGaveUp
				case 3:
					panic(errGaveUp)
				}
				return nil
			})
		}
		if ran = false; arg%8 == 3 && refused == "" {
			require.PanicsWithValue(m.t, errGaveUp, apply)
			err = errGaveUp
		} else {
			apply()
		}
		require.Equal(m.t, refused == "", ran)
	default: // fails at one of the next entries, if there are so many
		left := arg % 8 * 2
		err = c.ApplyEach(ctx, func(ctx context.Context, seq uint64, e int) error {
			require.Equal(m.t, uint64(spec.Done), seq)
			require.Equal(m.t, spec.Entries[spec.Done], e)
			m.compareWithin(ctx, c)
			if left--; left == 0 {
				return errGaveUp
			}
			spec.Done++
			return nil
		})
	}
	if refused != "" {
		require.Equal(m.t, refusal(refused), err)
		return
	}
	spec.Applied(err == nil)
	if err != nil {
		require.Equal(m.t, errGaveUp, err)
	}
	m.compareFate(c, spec)
}

// compareWithin checks what the function of an Apply can do.
func (m *changesetMachine) compareWithin(ctx context.Context, c *cc.Changeset[int]) {
	require.Equal(m.t, cc.ErrApplying, c.Apply(ctx, func(context.Context, cc.Final[int]) error { panic("called") }))
	require.Equal(m.t, cc.ErrApplying, c.Abort(ctx, nil))
	_, err := c.Record(0)
	require.Equal(m.t, cc.ErrSealed, err)
}

// abort calls Abort with and without a reason.
func (m *changesetMachine) abort(arg int) {
	i, ok := m.pick(arg / 4)
	if !ok {
		return
	}
	c, spec, ctx := m.sets[i], m.spec.Sets[i], context.Background()
	var why error
	switch arg % 4 {
	case 0:
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errGaveUp)
		require.Equal(m.t, errGaveUp, c.Abort(ended, nil))
		return
	case 1:
		why = errors.New("a reason")
	}
	was := c.Reason()
	require.Equal(m.t, refusal(spec.Abort()), c.Abort(ctx, why))
	m.compareFate(c, spec)
	switch {
	case spec.Fate != model.Aborted:
	case was != nil:
		require.Same(m.t, was, c.Reason())
	case why != nil:
		require.Same(m.t, why, c.Reason())
	default:
		require.Same(m.t, cc.ErrAborted, c.Reason())
	}
}

// compareFate checks what can be seen of a changeset that may be applied.
func (m *changesetMachine) compareFate(c *cc.Changeset[int], spec *model.Changeset) {
	want := uint64(spec.Done)
	if spec.Done == model.AllDone {
		want = cc.AllApplied
	}
	require.Equal(m.t, want, c.Applied())
	require.Equal(m.t, spec.Fate == model.Aborted, c.Reason() != nil)
}

// follow follows a changeset from some entry, as far as there are any.
func (m *changesetMachine) follow(arg int) {
	i, ok := m.pick(arg / 8)
	if !ok {
		return
	}
	c, spec := m.sets[i], m.spec.Sets[i]
	from := arg % 8 / 2
	if arg%2 == 1 {
		from = max(0, len(spec.Entries)-from)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	next := from
	if next >= len(spec.Entries) && !spec.Sealed {
		cancel() // or it would sleep
	}
	for seq, e := range c.Follow(ctx, uint64(from)) {
		require.Equal(m.t, uint64(next), seq)
		require.Equal(m.t, spec.Entries[next], e)
		if next++; next == len(spec.Entries) && !spec.Sealed {
			cancel()
		}
	}
	if len(spec.Entries) > from {
		require.Equal(m.t, len(spec.Entries), next)
	}
}
