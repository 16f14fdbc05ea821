package registry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// A stream has so many mirrors as consumers, 1,000 unless somebody says more. One more gets
// an error that says so, and attaches when there is room.
func testTooManyMirrors(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	s, err := shared.js.Stream(ctx, "KV_"+kv.Bucket())
	require.NoError(t, err)
	c := s.CachedInfo().Config
	c.MaxConsumers = 1
	_, err = shared.js.UpdateStream(ctx, c)
	require.NoError(t, err)
	first := opened[plan](t, shared.js, kv)
	var api *jetstream.APIError
	err = inTime(100*time.Millisecond, func(err error) bool { return errors.As(err, &api) }, func(ctx context.Context, _ time.Duration) error {
		_, err := Open(ctx, shared.js, kv.Bucket(), Config[string, plan]{})
		return err
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorAs(t, err, &api)
	require.ErrorContains(t, err, "maximum consumers limit reached")
	require.NoError(t, first.Close(ctx))
	opened[plan](t, shared.js, kv)
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
	server := -1
	eventually(t, func() bool {
		var names []string
		for name := range s.ConsumerNames(context.Background()).Name() {
			names = append(names, name)
		}
		if len(names) == 1 { // those that were given up are deleted
			server = c.ConsumerServer(r.stream, names[0])
		}
		return server >= 0
	}, "the consumer")
	return server
}
