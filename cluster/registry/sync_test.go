package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// What was acknowledged before Sync is shown after it, also where a key was overwritten
// before the consumer came to it. Here that stalls, because the mirror does not take what
// it sends, at a moment when key a is at a revision before the sync message, and the consumer goes
// on when it is at one after it.
func testSyncOverGaps(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	at, on := make(chan string), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(on) })
	defer goOn()
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		patient(c)
		c.OnForeign = func(f Foreign) { at <- f.Key; <-on }
	})
	_, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	require.NoError(t, put(kv, "=1", "the mirror stops here"))
	require.Equal(t, "=1", <-at)
	stalled := strings.Repeat("x", 1<<19)
	for i := range 16 { // more than the consumer sends without being told to go on
		require.NoError(t, put(kv, key(i), `{"Owner":"`+stalled+`"}`))
	}
	acknowledged, err := kv.PutString(ctx, "a", `{"N":2}`)
	require.NoError(t, err)
	synced := make(chan error, 1)
	go func() { synced <- r.Sync(ctx) }()
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	eventually(t, func() bool {
		m, err := s.GetLastMsgForSubject(ctx, r.prefix+r.syncKey)
		return err == nil && m.Sequence > acknowledged
	}, "the sync message")
	for i := range 50 { // so that the mirror looks at the beat before it stops
		require.NoError(t, put(kv, key(100+i), `{}`))
	}
	require.NoError(t, put(kv, "=2", "and here, after the sync message"))
	require.NoError(t, put(kv, "a", `{"N":3}`))
	on <- struct{}{}
	require.Equal(t, "=2", <-at)
	e, _ := r.Lookup("a")
	require.Less(t, uint64(e.Version), acknowledged, "the mirror is past the sync message, and has not come to the key")
	select {
	case <-synced:
		t.Fatal("Sync has returned")
	default:
	}
	goOn()
	require.NoError(t, <-synced)
	e, _ = r.Lookup("a")
	require.Greater(t, uint64(e.Version), acknowledged)
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
	eventually(t, func() bool { return r.Fresh() == nil }, "fresh")
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		require.Less(t, r.Lag().Proven, 5*time.Second, "beats prove it")
	}
	eventually(t, func() bool { return r.Lag().Attached }, "attached") // a busy server may be taken for silent
	require.GreaterOrEqual(t, r.Lag().Revision, v)

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

// Close ends what waits for a server that is away.
func TestCloseWhileAway(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1)
	js := c.JetStream()
	kv, err := js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	r := opened[plan](t, js, kv)
	_, err = r.Put(within(t), "a", plan{N: 1})
	require.NoError(t, err)
	c.Kill(0)
	calls := map[string]func() error{
		"Put":  func() error { _, err := r.Put(within(t), "a", plan{N: 2}); return err },
		"Sync": func() error { return r.Sync(within(t)) },
		"Wait": func() error { _, err := r.Wait(within(t), "b", 0); return err },
	}
	errs := make(chan error, len(calls))
	for name, call := range calls {
		go func() {
			if err := call(); !errors.Is(err, ErrClosed) {
				errs <- fmt.Errorf("%s: %w", name, err)
				return
			}
			errs <- nil
		}()
	}
	time.Sleep(50 * time.Millisecond) // so that they wait
	require.NoError(t, r.Close(within(t)))
	for range calls {
		require.NoError(t, <-errs)
	}
}
