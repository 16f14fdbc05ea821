package breaker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What ends a state is worth publishing for as long as that state may last elsewhere.
func TestWhatEndsAStateOutlivesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, k := range []kind{halfOpen, reset, resetAll, forceOpen, disable} {
			require.Zero(t, hint{Kind: k}.dated().until, k)
		}
		began := time.Now()
		longest := hint{Kind: tripped, For: 24 * time.Hour}
		require.Equal(t, longest.kept(), hint{Kind: recovered}.dated().until.Sub(began))
		require.Equal(t, time.Second, hint{Kind: trip, For: time.Second}.dated().until.Sub(began))
		require.Equal(t, usualTrip, hint{Kind: trip}.dated().until.Sub(began))
		require.Zero(t, hint{Kind: trip, For: -1}.dated().until)
	})
}
