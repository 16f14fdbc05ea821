package changeset_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
)

// life makes n changesets, of which those with an even ordinal are applied, and the
// others aborted. The last one is open.
func life(t testing.TB, tracker *cowchangeset.Tracker[string], n int) {
	for i := range n {
		c, err := tracker.Start(background)
		require.NoError(t, err)
		_, err = tracker.Record("x")
		require.NoError(t, err)
		switch {
		case i == n-1:
		case c.Ordinal()%2 == 0:
			require.NoError(t, c.Apply(background, func(context.Context, cowchangeset.Final[string]) error { return nil }))
		default:
			require.NoError(t, c.Abort(background, errOnPurpose))
		}
	}
}

// Checks C7.

// A purge that fails is made up for by the next Prune, in this process or in the next.
// Until then the trail is whole: a stream has too many messages, but not too few.
func TestPruneInterrupted(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, same := range []bool{true, false} {
		name := stream(t, js, 1)
		f := &faulty{JetStream: js, purging: &jetstream.APIError{Code: 400, Description: "on purpose"}}
		s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 10 * time.Millisecond})
		require.NoError(t, err)
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
		require.NoError(t, err)
		life(t, tracker, 6)
		tracker.Prune(3)
		require.ErrorContains(t, tracker.Flush(background), "on purpose")
		require.EqualValues(t, 1, first(t, f, name), "nothing is purged")
		require.Len(t, saved(t, open(t, js, name)), 3, "but 3 are pruned")
		f.purging = nil
		if !same {
			s = open(t, js, name)
			tracker, err = cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
			require.NoError(t, err)
			require.Len(t, tracker.IDs(), 3)
			require.NoError(t, s.Prune(background, 4))
		}
		require.NoError(t, tracker.Flush(background))
		require.Greater(t, first(t, f, name), uint64(10))
		require.Len(t, saved(t, s), 3)
		require.NoError(t, s.Seal(background, "pruned", cowchangeset.Manifest{}), "late news of a pruned one")
		life(t, tracker, 2)
		require.Len(t, saved(t, open(t, js, name)), 5)
	}
}

func first(t testing.TB, f *faulty, name string) uint64 {
	at, err := f.JetStream.Stream(background, name)
	require.NoError(t, err)
	return at.CachedInfo().State.FirstSeq
}

// The latest changeset stays, and what is not sealed. Whether others may go that are neither
// applied nor aborted is the tracker's matter.
func TestPruneKeeps(t *testing.T) {
	t.Parallel()
	js := single(t)
	s := open(t, js, stream(t, js, 1))
	require.ErrorIs(t, s.Prune(background, 5), changeset.ErrUnclaimed)
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	require.NoError(t, s.Prune(background, 5), "nothing to prune")
	for range 3 {
		_, err := tracker.Start(background)
		require.NoError(t, err)
	}
	require.NoError(t, tracker.Flush(background))
	require.Zero(t, tracker.Prune(1))
	require.Len(t, saved(t, s), 3)
	require.NoError(t, s.Prune(background, 9))
	require.Len(t, saved(t, s), 1)
}

// Checks C6.

// A trail whose beginning was purged by somebody else is damaged.
func TestForeignPurge(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	life(t, tracker, 4)
	require.NoError(t, tracker.Flush(background))
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	for seq := uint64(2); seq <= at.CachedInfo().State.LastSeq; seq++ {
		require.NoError(t, at.DeleteMsg(background, seq-1))
		require.ErrorIs(t, loadError(open(t, js, name).Load(within(t, 10*time.Second))), changeset.ErrCorrupt, "before %d", seq)
	}
}

// Checks C7.

// A Load beside a Prune begins again with what is kept, wherever it was.
func TestLoadBesidePrune(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, at := range []uint64{1, 256} {
		name := stream(t, js, 1)
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: open(t, js, name)})
		require.NoError(t, err)
		life(t, tracker, 100)
		require.NoError(t, tracker.Flush(background))
		pruned := false
		r := openReader(t, &faulty{JetStream: js, skip: func(seq uint64) bool {
			if seq == at && !pruned {
				pruned = true
				tracker.Prune(1)
				require.NoError(t, tracker.Flush(background))
			}
			return false
		}}, name)
		var ordinals []uint64
		for c, err := range r.Load(within(t, 20*time.Second)) {
			require.NoError(t, err)
			ordinals = append(ordinals, c.Ordinal)
		}
		require.Equal(t, []uint64{100}, ordinals)
	}
}

// Checks C7.

// A Store whose trail another one has taken, and pruned, before it has read it, is
// fenced: the trail is not damaged.
func TestFencedByPrune(t *testing.T) {
	t.Parallel()
	js := single(t)
	for before := range 4 { // changesets that are there when the first one claims; the last of 3 is kept
		name := stream(t, js, 1)
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: open(t, js, name)})
		require.NoError(t, err)
		life(t, tracker, before)
		require.NoError(t, tracker.Flush(background))
		first := open(t, js, name)
		require.NoError(t, first.Claim(background))
		tracker, err = cowchangeset.Resume(background, cowchangeset.Config[string]{Store: open(t, js, name)})
		require.NoError(t, err)
		if before == 1 || before == 2 {
			c, _ := tracker.Current()
			require.NoError(t, c.Abort(background, errOnPurpose))
		}
		if before < 3 {
			life(t, tracker, 3)
		}
		tracker.Prune(1)
		require.NoError(t, tracker.Flush(background))
		require.ErrorIs(t, loadError(first.Load(within(t, 10*time.Second))), changeset.ErrFenced)
		require.ErrorIs(t, first.Start(within(t, 10*time.Second), header{ID: "x", Ordinal: 1}), changeset.ErrFenced)
	}
}

// A purge that failed is not made up for in a stream that was restored from a backup
// meanwhile, or that another Store has continued then: its sequences are others.
func TestPruneRestored(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, continued := range []bool{false, true} {
		name := stream(t, js, 1)
		f := &faulty{JetStream: js, purging: &jetstream.APIError{Code: 400, Description: "on purpose"}}
		s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 10 * time.Millisecond})
		require.NoError(t, err)
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
		require.NoError(t, err)
		life(t, tracker, 6)
		require.NoError(t, tracker.Flush(background))
		require.ErrorContains(t, s.Prune(background, 6), "on purpose")
		f.purging = nil
		restore(t, js, name, 5)
		if continued {
			other, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: open(t, js, name)})
			require.NoError(t, err)
			life(t, other, 10)
			require.NoError(t, other.Flush(background))
			require.ErrorIs(t, s.Prune(background, 6), changeset.ErrFenced)
		} else {
			prune := func(ctx context.Context) error { return s.Prune(ctx, 6) }
			require.ErrorIs(t, inTime(200*time.Millisecond, changeset.ErrRewound, prune), changeset.ErrRewound)
		}
		require.EqualValues(t, 1, first(t, f, name), "nothing is purged")
	}
}
