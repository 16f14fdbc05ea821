package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// In a full bucket what makes it no larger goes on: deletions, smaller values, renewals, sync messages. A value
// that does not fit is refused, and the error says why.
func TestFullBucket(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			c := natstest.Start(t, servers)
			config := jetstream.KeyValueConfig{Bucket: "full", Storage: jetstream.MemoryStorage, Replicas: servers, MaxBytes: 32 << 10, LimitMarkerTTL: time.Minute}
			kv, err := c.JetStream().CreateKeyValue(within(t), config)
			require.NoError(t, err)
			r := opened(t, c.JetStream(), kv, func(c *Config[string, string]) { c.MaxLag = 2 * time.Second })
			fill := func(from int) (n int) {
				for n = from; ; n++ { // smaller and smaller values, until not even an empty one fits
					_, err := r.Create(within(t), key(n), strings.Repeat("x", max(0, 500-n*5)), TTL(time.Hour))
					if err != nil {
						require.ErrorIs(t, err, ErrFull)
						require.NotErrorIs(t, err, ErrUnknown)
						return n
					}
				}
			}
			n := fill(0)
			t.Log(n, "keys")
			require.NoError(t, r.Sync(within(t)))
			_, err = r.Put(within(t), key(1), strings.Repeat("y", 1000))
			require.ErrorIs(t, err, ErrFull, "it would be larger")
			v, err := r.Put(within(t), key(1), "smaller")
			require.NoError(t, err)
			_, err = r.Renew(within(t), key(1), v, time.Hour)
			require.NoError(t, err)
			e, err := r.Update(within(t), key(2), func(string) (string, error) { return "smaller", nil })
			require.NoError(t, err)
			require.NoError(t, r.DeleteIf(within(t), key(2), e.Version))
			again := fill(n)
			for i := range again {
				_, ok, err := r.Delete(within(t), key(i))
				require.NoError(t, err, i)
				require.Equal(t, i != 2, ok)
				require.Less(t, i, 1000)
			}
			require.Zero(t, r.Len())
			eventually(t, func() bool { return r.Fresh() == nil }, "fresh")
			eventually(t, func() bool { // for the next time
				ctx, cancel := context.WithTimeout(within(t), time.Second)
				defer cancel()
				m, err := kv.Get(ctx, reserveKey)
				return err == nil && len(m.Value()) == reserveSize
			}, "the reserve is there")
		})
	}
}

// reserving calls a function after each request that stores the reserve, and returns its error instead.
type reserving struct {
	jetstream.JetStream
	after func() error
}

func (j *reserving) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := j.JetStream.PublishMsg(ctx, m, opts...)
	if after := j.after; after != nil && strings.HasSuffix(m.Subject, reserveKey) {
		if e := after(); e != nil {
			return nil, e
		}
	}
	return ack, err
}

// The reserve comes back after a call that has given it up while another one stored it, and after a server that could
// not store it for a moment.
func testReserveComesBack(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.MaxBytes = 32 << 10 })
	r := opened[plan](t, shared.js, kv)
	eventually(t, func() bool { return !r.beater.refill.Load() }, "the reserve is stored")
	js := &reserving{JetStream: shared.js}
	other := &Registry[string, plan]{js: js, stream: r.stream, prefix: r.prefix, publish: r.publish, config: r.config}
	for name, after := range map[string]func() error{
		"given up":  func() error { js.after = nil; return other.spend(ctx) },
		"no leader": func() error { js.after = nil; return errors.Join(&jetstream.APIError{Code: 503}, r.spend(ctx)) },
	} {
		js.after = after
		other.beater.refill.Store(true)
		other.reserve(ctx)
		require.Nil(t, js.after, name)
		other.reserve(ctx)
		_, err := kv.Get(ctx, reserveKey)
		require.NoError(t, err, name)
	}
	require.NoError(t, r.Sync(ctx))
}
