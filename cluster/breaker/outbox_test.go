package breaker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hint that replaces another is the last to be published: commands keep their order.
func TestOutboxKeepsTheOrder(t *testing.T) {
	o := newOutbox(2)
	a, b := hint{Kind: forceOpen, Key: "a"}, hint{Kind: disable, Key: "b"}
	later := hint{Kind: reset, Key: "a"}
	for _, h := range []hint{a, b, later} {
		require.True(t, o.put(h.subject("s"), h))
	}
	require.False(t, o.put("s.c.kYw", hint{Kind: reset, Key: "c"}))
	h, _ := o.take(t.Context(), "s")
	require.Equal(t, b, h)
	require.Equal(t, 2, o.len())
	o.putBack(b.subject("s"), b)
	for _, want := range []hint{b, later} {
		h, _ = o.take(t.Context(), "s")
		require.Equal(t, want, h)
	}
	o.putBack(later.subject("s"), a) // what was taken gives way to what came since
	require.True(t, o.put(a.subject("s"), later))
	h, _ = o.take(t.Context(), "s")
	require.Equal(t, later, h)
	o.done()
	require.Zero(t, o.len())

	require.True(t, o.put(a.subject("s"), a))
	h, _ = o.take(t.Context(), "s")
	require.Equal(t, a, h)
	for _, k := range []string{"b", "c"} {
		h := hint{Kind: reset, Key: k}
		require.True(t, o.put(h.subject("s"), h))
	}
	require.True(t, o.put(later.subject("s"), later), "it replaces what was taken")
	d := hint{Kind: reset, Key: "d"}
	require.False(t, o.put(d.subject("s"), d))
	o.putBack(a.subject("s"), a)
	for _, want := range []string{"b", "c", "a"} {
		h, _ = o.take(t.Context(), "s")
		require.Equal(t, hint{Kind: reset, Key: want}, h)
	}
	o.done()
	require.Zero(t, o.len())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok := o.take(ended, "s")
	require.False(t, ok)
}
