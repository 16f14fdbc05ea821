package changeset_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
)

// A call whose outcome was unknown, and that has taken effect, succeeds when it is repeated,
// also if another call has found out meanwhile that the Store is fenced.
func TestRepeatedWhenFenced(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	f := &faulty{JetStream: js}
	one, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 10 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, one.Claim(background))
	require.NoError(t, one.Start(background, header{ID: "a", Ordinal: 1}))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	f.set(func(n int, _ *nats.Msg) fault {
		if n == 1 { // the second time
			cancel()
		}
		return unacked
	})
	append := func(ctx context.Context, n int) error {
		return one.Append(ctx, "a", []entry{{Seq: 0, Value: "x"}, {Seq: 1, Value: "y"}}[:n])
	}
	require.ErrorIs(t, append(ctx, 1), changeset.ErrUnknown)
	f.set(nil)
	two := open(t, js, name)
	require.NoError(t, two.Claim(background))
	require.ErrorIs(t, one.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}), changeset.ErrFenced)
	require.NoError(t, append(background, 1), "it is in the trail")
	require.ErrorIs(t, append(background, 2), changeset.ErrFenced)
	require.Len(t, saved(t, two)[0].Entries, 1)
	require.NoError(t, two.Append(background, "a", []entry{{Seq: 1, Value: "of two"}}))
	require.ErrorIs(t, append(background, 2), changeset.ErrFenced)
}

// So it does if a Load has found out, of a trail that the later writer has pruned.
func TestRepeatedWhenLoadIsFenced(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	f := &faulty{JetStream: js}
	one, err := changeset.Open(background, f, changeset.Options[string]{Stream: name})
	require.NoError(t, err)
	require.NoError(t, one.Claim(background))
	require.NoError(t, one.Start(background, header{ID: "a", Ordinal: 1}))
	require.NoError(t, one.Seal(background, "a", cowchangeset.Manifest{}))
	require.NoError(t, one.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}))
	two, err := changeset.Open(background, js, changeset.Options[string]{Stream: name})
	require.NoError(t, err)
	append := func(ctx context.Context) error { return one.Append(ctx, "b", []entry{{Seq: 0, Value: "x"}}) }
	f.set(func(int, *nats.Msg) fault { return unacked })
	ctx, cancel := context.WithTimeout(background, 60*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, append(ctx), changeset.ErrUnknown)
	f.set(nil)
	require.NoError(t, two.Claim(background))
	require.NoError(t, two.Prune(background, 2))
	require.ErrorIs(t, loadError(one.Load(within(t, 10*time.Second))), changeset.ErrFenced)
	require.NoError(t, append(background), "it is in the trail")
	require.Len(t, saved(t, two)[0].Entries, 1)
}
