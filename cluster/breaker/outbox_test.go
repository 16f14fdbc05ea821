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
	h, _ := o.take(t.Context())
	require.Equal(t, b, h)
	require.Equal(t, 2, o.len())
	o.putBack(b.subject("s"), b)
	for _, want := range []hint{b, later} {
		h, _ = o.take(t.Context())
		require.Equal(t, want, h)
	}
	o.putBack(later.subject("s"), a) // what was taken gives way to what came since
	require.True(t, o.put(a.subject("s"), later))
	h, _ = o.take(t.Context())
	require.Equal(t, later, h)
	o.done()
	require.Zero(t, o.len())

	require.True(t, o.put(a.subject("s"), a))
	h, _ = o.take(t.Context())
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
		h, _ = o.take(t.Context())
		require.Equal(t, hint{Kind: reset, Key: want}, h)
	}
	o.done()
	require.Zero(t, o.len())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok := o.take(ended)
	require.False(t, ok)
}

// A command takes the place of the oldest report if there is no room, and no report that of
// anything; what leaves so is counted.
func TestOutboxPrefersCommands(t *testing.T) {
	o := newOutbox(2)
	report := func(k string) hint { return hint{Kind: tripped, Key: k, Replica: "a"} }
	command := func(k string) hint { return hint{Kind: disable, Key: k} }
	put := func(h hint) bool { return o.put(h.subject("s"), h) }
	require.True(t, put(report("a")))
	require.True(t, put(report("b")))
	require.False(t, put(report("c")))
	require.Zero(t, o.lost)
	require.True(t, put(command("d")), "a leaves")
	require.Equal(t, 1, o.lost)
	require.True(t, put(report("b")), "it replaces")
	require.True(t, put(command("e")), "b leaves")
	require.Equal(t, 2, o.lost)
	require.False(t, put(command("f")))
	require.True(t, put(command("d")))
	require.Equal(t, 2, o.len())
	for _, want := range []string{"e", "d"} {
		h, _ := o.take(t.Context())
		require.Equal(t, command(want), h)
	}
	o.done()
	require.True(t, put(report("a")))
	h, _ := o.take(t.Context())
	require.True(t, put(command("b")))
	require.True(t, put(command("c")))
	o.putBack(h.subject("s"), h) // one more than there is room for
	require.Equal(t, 3, o.len())
	require.True(t, put(command("d")))
	require.Equal(t, 3, o.len())
	require.Equal(t, 3, o.lost)
	o.close()
	o.drain()
	o.drain()
	require.Equal(t, 6, o.lost)
	require.Zero(t, o.len())
	require.False(t, put(command("b")))
}
