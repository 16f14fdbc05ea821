package changeset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/storetest"
)

// The Store keeps what the documentation of cowchangeset.Store asks for.
func TestStore(t *testing.T) {
	t.Parallel()
	js := single(t)
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		name := stream(t, js, 1)
		return func() (cowchangeset.Loader[string], error) {
			return changeset.Open(background, js, changeset.Options[string]{Stream: name})
		}
	})
}

// A tracker that has used its Store keeps it, so that no second one is given its receipts.
func TestReleaseOfATracker(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	s.Release() // it was not used
	require.ErrorIs(t, s.Start(background, header{ID: "a", Ordinal: 1}), changeset.ErrUnclaimed)
	one, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	_, err = one.Start(background)
	require.NoError(t, err)
	_, err = one.Record("a")
	require.NoError(t, err)
	s.Release()
	two, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	if err == nil {
		first, _ := one.Record("of the first")
		again, err := two.Record("of the second")
		t.Fatalf("two trackers have recorded at %v and %v: %v", first, again, err)
	}
	require.ErrorIs(t, err, changeset.ErrClaimed)
	two, err = cowchangeset.Resume(background, cowchangeset.Config[string]{Store: open(t, js, name)})
	require.NoError(t, err)
	_, err = two.Record("of the second")
	require.NoError(t, err)
	_, err = one.Record("of the first")
	require.ErrorIs(t, err, changeset.ErrFenced)
}
