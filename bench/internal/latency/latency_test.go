package latency

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogram(t *testing.T) {
	h, more := New(), New()
	for i := range 900 {
		h.Add(time.Duration(i+1) * time.Microsecond)
	}
	for i := range 100 {
		more.Add(time.Duration(i+901) * time.Microsecond)
	}
	more.Add(0)
	more.Add(time.Hour)
	h.Merge(more)
	require.EqualValues(t, 1002, h.Count())
	require.InEpsilon(t, time.Minute, h.Max(), 0.001, "more than a minute is a minute")
	p50, known := h.Quantile(0.5)
	require.True(t, known)
	require.InEpsilon(t, 501*time.Microsecond, p50, 0.005)
	_, known = h.Quantile(0.99)
	require.True(t, known)
	_, known = h.Quantile(0.999)
	require.False(t, known, "one of 1,002 lies beyond")
}

func TestQuantile_KnownFromFiveBeyond(t *testing.T) {
	h := New()
	for range 49_999 {
		h.Add(1)
	}
	_, known := h.Quantile(0.9999)
	require.False(t, known)
	h.Add(1)
	_, known = h.Quantile(0.9999)
	require.True(t, known)
}

func TestClosed_CountsWhatCounts(t *testing.T) {
	var calls, counted atomic.Int64
	h := Closed(3, 5*time.Millisecond, func(_, i int) bool {
		calls.Add(1)
		if i%2 == 0 {
			counted.Add(1)
		}
		return i%2 == 0
	})
	require.Equal(t, counted.Load(), h.Count())
	require.Less(t, h.Count(), calls.Load())
}

// One call that takes long makes all wait that are due meanwhile, though a
// closed loop would not have made them.
func TestOpen_CountsWaitingBehindASlowCall(t *testing.T) {
	const slow = 20 * time.Millisecond
	h := Open(1, 40*time.Millisecond, 1000, func(_, i int) bool {
		if i == 0 {
			Burn(slow)
		}
		return true
	})
	require.EqualValues(t, 40, h.Count(), "one for each millisecond, late or not")
	require.GreaterOrEqual(t, h.Max(), slow)
	p75, known := h.Quantile(0.75)
	require.True(t, known)
	require.GreaterOrEqual(t, p75, slow/4, "the tenth call is due after 10 ms and waits for 10 more")
}

// The slow code of a call's own user is nothing that others wait for.
func TestOpen_GoesOnAfterWhatDoesNotCount(t *testing.T) {
	h := Open(1, 40*time.Millisecond, 1000, func(_, i int) bool {
		if i == 0 {
			Burn(20 * time.Millisecond)
		}
		return i > 0
	})
	require.LessOrEqual(t, h.Count(), int64(21))
}

// What cannot be served is neither left out nor waited for.
func TestOpen_EndsUnderTooMuchLoad(t *testing.T) {
	var calls atomic.Int64
	h := Open(1, 10*time.Millisecond, 100_000, func(int, int) bool {
		calls.Add(1)
		Burn(time.Millisecond)
		return true
	})
	require.EqualValues(t, 1000, h.Count())
	require.Less(t, calls.Load(), int64(100))
	p50, _ := h.Quantile(0.5)
	require.Greater(t, p50, 10*time.Millisecond)
}

func TestCapacity(t *testing.T) {
	c := Capacity(2, 10*time.Millisecond, func(int, int) bool {
		Burn(time.Millisecond)
		return true
	})
	require.Positive(t, c)
	require.LessOrEqual(t, c, 2000.0)
}

func TestBurst_MeasuresFromItsStart(t *testing.T) {
	bursts := make(map[int]bool)
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	h := Burst(5, time.Millisecond, func(burst int) {
		<-gate
		bursts[burst] = true
		gate <- struct{}{}
		Burn(100 * time.Microsecond)
	})
	require.EqualValues(t, 5*len(bursts), h.Count())
	p50, _ := h.Quantile(0.5)
	if h.Count() >= 10 {
		require.GreaterOrEqual(t, p50, 100*time.Microsecond)
	}
}
