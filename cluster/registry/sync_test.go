package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// What was acknowledged before Sync is shown after it, also where a key was overwritten
// before the consumer came to it, so that the mirror jumps over revisions.
func testSyncOverGaps(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	stop := make(chan struct{})
	defer close(stop)
	big := `{"Owner":"` + strings.Repeat("x", 4000) + `"}`
	for i := range 3 { // who overwrite keys all the time, with much to send
		js, err := jetstream.New(shared.cluster.Connect())
		require.NoError(t, err)
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					_, _ = js.PublishAsync(r.publish+key(100*i+n%20), []byte(big))
				}
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	for n := range 30 {
		// The oldest of them is the one that a mirror without proof would miss.
		rev, err := kv.PutString(ctx, key(n%60), `{"N":2}`)
		require.NoError(t, err)
		require.NoError(t, r.Sync(ctx))
		e, ok := r.Lookup(key(n % 60))
		require.True(t, ok)
		require.GreaterOrEqual(t, uint64(e.Version), rev)
	}
	t.Logf("%d gaps, %+v", r.mirror.gaps.Load(), r.Stats())
}


// While the bucket is away the mirror says so: reads go on, Fresh fails after MaxLag, writes
// end with their contexts, and all is well again when the bucket is back.
func TestAway(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1)
	kv := bucket(t, c.JetStream())
	r := opened(t, c.JetStream(), kv, func(c *Config[string, plan]) { c.MaxLag = 300 * time.Millisecond })
	ctx := within(t)
	v, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	require.NoError(t, r.Fresh())
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		require.Less(t, r.Lag().Proven, 5*time.Second, "beats prove it")
	}
	l := r.Lag()
	require.True(t, l.Attached)
	require.GreaterOrEqual(t, l.Revision, v)

	c.CutClients(0, true)
	eventually(t, func() bool { return errors.Is(r.Fresh(), ErrStale) }, "stale")
	p, ok := r.Get("a")
	require.True(t, ok)
	require.Equal(t, 1, p.N)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Sync(short), ErrUnavailable)
	_, err = r.Put(short, "a", plan{N: 2})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable), err)
	eventually(t, func() bool { return !r.Lag().Attached && r.Lag().Err != nil }, "the mirror notices")
	require.Equal(t, 1, r.Len())

	c.CutClients(0, false)
	require.NoError(t, r.Sync(ctx))
	eventually(t, func() bool { return r.Fresh() == nil && r.Lag().Attached && r.Lag().Err == nil }, "fresh again")
	_, err = r.Put(ctx, "a", plan{N: 3})
	require.NoError(t, err)

	c.Kill(0)
	short, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = r.Put(short, "a", plan{N: 4})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	c.Restart(0) // with memory storage: the bucket is gone
	c.WaitReady()
	eventually(t, func() bool { return errors.Is(r.Lag().Err, jetstream.ErrBucketNotFound) }, "the bucket is gone")
	p, _ = r.Get("a")
	require.Equal(t, 3, p.N)
}
