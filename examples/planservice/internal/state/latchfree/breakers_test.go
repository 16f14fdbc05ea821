package latchfree_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
)

// A breaker shows its failures in a row in all of its states.
func TestFailuresOfAnOpenBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := latchfree.NewBreakers(3, time.Second, nil, latchfree.Local)
		require.NoError(t, err)
		call := func(result error) {
			done, err := b.Allow("s")
			require.NoError(t, err)
			done(result)
		}
		shows := func(state string, failures int) {
			t.Helper()
			got := b.Get("s")
			assert.Equal(t, state, got.State)
			assert.Equal(t, failures, got.Failures)
		}
		down := errors.New("down")
		shows("Closed", 0)
		for i := range 2 {
			call(down)
			shows("Closed", i+1)
		}
		call(down)
		shows("Open", 3)
		time.Sleep(time.Second)
		shows("HalfOpen", 3)
		call(down) // the probe
		shows("Open", 4)
		time.Sleep(2 * time.Second)
		done, err := b.Allow("s")
		require.NoError(t, err)
		shows("HalfOpen", 4)
		done(nil)
		shows("Closed", 0)
	})
}
