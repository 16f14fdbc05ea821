package registry

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// With AtLeader, the server that leads the bucket feeds the mirror. A mirror that others
// feed would pass one time in 22.
func testAtLeader(t *testing.T, c *natstest.Cluster) {
	kv := bucket(t, c.JetStream(), replicated)
	r := opened(t, c.JetStream(), kv, func(c *Config[string, int]) { c.AtLeader = true })
	there := 0
	for range 5 {
		if consumerServer(t, c, r) == c.StreamLeader(r.stream) {
			there++
		}
		attachAgain(t, r)
	}
	require.GreaterOrEqual(t, there, 4)
}

// attachAgain returns when r is attached once more.
func attachAgain[V any](t testing.TB, r *Registry[string, V]) {
	was := r.Stats().Attachments
	r.listAgain()
	eventually(t, func() bool { return r.Stats().Attachments > was && r.Lag().Attached }, "another attachment")
}

// consumerServer returns the number of the server that feeds r, whose bucket nobody else
// follows.
func consumerServer[V any](t testing.TB, c *natstest.Cluster, r *Registry[string, V]) int {
	s, err := r.js.Stream(within(t), r.stream)
	require.NoError(t, err)
	var names []string
	eventually(t, func() bool {
		names = names[:0]
		for name := range s.ConsumerNames(context.Background()).Name() {
			names = append(names, name)
		}
		return len(names) == 1
	}, "those that were given up are deleted")
	return c.ConsumerServer(r.stream, names[0])
}
