package registry

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// After a function of the caller has ended the mirror's goroutine, the mirror lists again to the end,
// although nobody asks for a proof.
func testExitWhileSettled(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.Heartbeat = patience
		c.OnForeign = func(Foreign) { runtime.Goexit() }
	})
	_, err := r.Create(ctx, "purged", plan{N: 1})
	require.NoError(t, err)
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	require.NoError(t, s.Purge(ctx, jetstream.WithPurgeSubject(r.prefix+"purged"))) // without a marker
	require.NoError(t, put(kv, "=1", "no key"))
	eventually(t, func() bool { return r.Len() == 0 }, "the end of the listing")
	eventually(t, func() bool { return r.Lag().Attached }, "attached")
	require.Equal(t, uint64(2), r.Stats().Attachments)
}

// A listing that was cut short has brought the mirror forward. The next one, by a server that is behind,
// does not bring it back.
func testListingBehind(t *testing.T) {
	e := newEarly(t)
	list := func() {
		e.r.mirror.position.Store(0)
		e.a = &attachment[string, plan]{consumer: new(push.Consumer), listing: &listing[string, plan]{
			floor: e.r.mirror.shown.Load(), seen: map[string]struct{}{}, aside: map[string]change[plan]{}, foreign: map[string]uint64{},
		}}
	}
	holds := func(n int) {
		t.Helper()
		entry, ok := e.r.Lookup("a")
		require.True(t, ok)
		require.Equal(t, Entry[string, plan]{Key: "a", Value: plan{N: n}, Version: Version(n)}, entry)
	}
	list()
	require.NoError(t, e.r.receive(e.a, e.m("a", 1, 120, "")))
	holds(120)
	list()
	require.NoError(t, e.r.receive(e.a, e.m("a", 1, 110, "")))
	holds(120)
	require.NoError(t, e.r.receive(e.a, e.m("a", 2, 120, "")))
	holds(120)
	require.NoError(t, e.r.receive(e.a, e.m("b", 3, 121, "")))
	e.r.complete(e.a.listing, 121)
	holds(120)
	require.Zero(t, e.r.Stats().Resets)

	// If that is what the bucket has, it was restored.
	list()
	e.a.listing.floor = 100
	require.NoError(t, e.r.receive(e.a, e.m("a", 1, 110, "")))
	holds(120)
	require.NoError(t, e.r.receive(e.a, e.m("b", 2, 122, "")))
	e.r.complete(e.a.listing, 122)
	holds(110)
	require.Equal(t, uint64(1), e.r.Stats().Resets)
}

// Functions that end their goroutine again and again, and those that do so for one message only, take nothing else with
// them.
func testExitsAgain(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.Codec = exitAt("exit")
		c.Normalize = func(k string) (string, error) {
			if k == "exit" {
				runtime.Goexit()
			}
			return k, nil
		}
		c.OnForeign = func(Foreign) { runtime.Goexit() }
	})
	for i := range 5 {
		require.NoError(t, put(kv, "exit", "whatever"))
		require.NoError(t, put(kv, "a", `{"Owner":"exit"}`))
		require.NoError(t, put(kv, "b", fmt.Sprintf(`{"N":%d}`, i)))
		require.NoError(t, r.Sync(ctx))
		require.Equal(t, uint64(1), r.mirror.foreignKeys.Load())
		require.Equal(t, 1, r.Stats().ForeignValues)
		p, _ := r.Get("b")
		require.Equal(t, i, p.N)
	}
	require.Equal(t, uint64(2), r.Stats().Attachments, "the first of them has taken the mirror's goroutine with it")
	require.NoError(t, put(kv, "a", `{"N":7}`))
	require.NoError(t, r.Sync(ctx))
	p, _ := r.Get("a")
	require.Equal(t, 7, p.N)
}

// A listing finds markers of deletions that the mirror has forgotten. They contradict nothing.
func testForgottenMarkers(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	js, err := jetstream.New(shared.js.Conn(), jetstream.WithPublishAsyncMaxPending(1<<12))
	require.NoError(t, err)
	for i := range maxTombs + 10 {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprintf("$KV.%s.k%d", kv.Bucket(), i), Header: deletion()}, jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	r := opened[plan](t, shared.js, kv)
	require.NoError(t, r.Sync(ctx))
	deletions, _ := r.tombs.len()
	require.LessOrEqual(t, deletions, maxTombs)
	attachAgain(t, r)
	require.NoError(t, r.Sync(ctx))
	require.Zero(t, r.Stats().Resets)
}

// gate is a JetStream that knows no stream while it is closed.
type gate struct {
	jetstream.JetStream
	closed *atomic.Bool
}

func (g gate) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if g.closed.Load() {
		return nil, jetstream.ErrStreamNotFound
	}
	return g.JetStream.Stream(ctx, name)
}

// exitAt is a codec that ends the goroutine which decodes a plan of a certain owner.
type exitAt string

func (exitAt) Encode(p plan) ([]byte, error) { return JSON[plan]{}.Encode(p) }
func (e exitAt) Decode(b []byte) (plan, error) {
	p, err := JSON[plan]{}.Decode(b)
	if p.Owner == string(e) {
		runtime.Goexit()
	}
	return p, err
}

// A bucket that was made anew counts as another one until a listing of it is complete.
func testMadeAnewCutShort(t *testing.T) {
	ctx := within(t)
	js := gate{shared.js, new(atomic.Bool)}
	kv := bucket(t, shared.js)
	r := opened(t, js, kv, func(c *Config[string, plan]) { c.Codec = exitAt("exit") })
	had, err := r.Create(ctx, "old", plan{N: 1})
	require.NoError(t, err)
	js.closed.Store(true)
	require.NoError(t, shared.js.DeleteKeyValue(ctx, kv.Bucket()))
	kv, err = shared.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: kv.Bucket(), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	for range had { // so that no revision tells the buckets apart
		require.NoError(t, put(kv, "k", `{"N":2}`))
	}
	require.NoError(t, put(kv, "exit", `{"Owner":"exit"}`))
	require.NoError(t, put(kv, "k", `{"N":3}`))
	js.closed.Store(false)
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 1, r.Len())
	require.Equal(t, 1, r.Stats().ForeignValues)
	require.Equal(t, uint64(1), r.Stats().Resets)
}
