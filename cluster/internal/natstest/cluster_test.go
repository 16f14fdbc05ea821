package natstest_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// A cluster keeps what it has acknowledged when its leader is killed, cut off, and when
// all servers start again.
func TestCluster(t *testing.T) {
	c := natstest.Start(t, 3)
	js := c.JetStream()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "b", Replicas: 3})
	require.NoError(t, err)
	put := func(key string) {
		t.Helper()
		began := time.Now()
		for {
			try, cancel := context.WithTimeout(ctx, time.Second)
			_, err := kv.PutString(try, key, key)
			cancel()
			if err == nil {
				break
			}
			require.NoError(t, ctx.Err())
		}
		t.Log(key, time.Since(began))
	}
	put("healthy")
	leader := c.StreamLeader("KV_b")
	c.Kill(leader)
	put("killed")
	c.Restart(leader)
	c.WaitReady()
	if natstest.Long() {
		cut := c.StreamLeader("KV_b")
		c.Partition(cut, true)
		put("partitioned")
		c.Heal(cut)
	} else {
		put("partitioned")
	}
	c.RestartAll()
	put("restarted")
	for _, key := range []string{"healthy", "killed", "partitioned", "restarted"} {
		require.Eventually(t, func() bool {
			e, err := kv.Get(ctx, key)
			return err == nil && string(e.Value()) == key
		}, 20*time.Second, 10*time.Millisecond, key)
	}
}
