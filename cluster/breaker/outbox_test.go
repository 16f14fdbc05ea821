package breaker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hint that replaces another is the last to be published: commands keep their order. What was
// replaced while the publisher had it is not what the publisher removes.
func TestOutboxKeepsTheOrder(t *testing.T) {
	o := newOutbox()
	put := func(h hint) bool { return o.put(h.subject("s"), h) }
	first := func() string {
		h, ok := o.first(t.Context())
		require.True(t, ok)
		return h.ID
	}
	a, b := hint{Kind: forceOpen, Key: "a", ID: "1"}, hint{Kind: disable, Key: "b", ID: "2"}
	require.True(t, put(a))
	require.True(t, put(b))
	require.Equal(t, "1", first())
	require.True(t, put(hint{Kind: reset, Key: "a", ID: "3"}))
	o.remove(a.subject("s"), "1")
	require.Equal(t, 2, o.count())
	for _, want := range []hint{b, {Kind: reset, Key: "a", ID: "3"}} {
		require.Equal(t, want.ID, first())
		require.Equal(t, want.ID, first(), "until it is removed")
		o.remove(want.subject("s"), want.ID)
		o.remove(want.subject("s"), want.ID)
	}
	require.Zero(t, o.count())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok := o.first(ended)
	require.False(t, ok)
}

// There is room for all commands, for so many reports, and for what replaces one.
func TestOutboxPrefersCommands(t *testing.T) {
	o := newOutbox()
	o.most = 2
	report := func(k string) hint { return hint{Kind: tripped, Key: k, Replica: "a"} }
	put := func(h hint) bool { return o.put(h.subject("s"), h) }
	require.True(t, put(report("a")))
	require.True(t, put(report("b")))
	require.False(t, put(report("c")))
	require.True(t, put(report("b")))
	for _, k := range []string{"d", "e", "f"} {
		require.True(t, put(hint{Kind: disable, Key: k}))
	}
	require.Equal(t, 5, o.count())
	o.close()
	require.Equal(t, 5, o.drain())
	require.Zero(t, o.drain())
	require.False(t, put(hint{Kind: disable, Key: "d"}))
}
