package registry

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// late is a JetStream whose writes return when a test says so.
type late struct {
	jetstream.JetStream
	stored chan struct{}
	answer chan struct{}
}

func (l late) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := l.JetStream.PublishMsg(ctx, m, opts...)
	if m.Header.Get(nats.MsgIdHdr) != "" {
		l.stored <- struct{}{}
		<-l.answer
	}
	return ack, err
}

// A write of a new key returns when the mirror shows it, or something later. Here the mirror has passed its
// revision without it when the acknowledgement comes: the key was overwritten before the
// consumer came to it, and that is still to come.
func testCreatedInGap(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	js := late{shared.js, make(chan struct{}, 1), make(chan struct{})}
	at, on := make(chan string), make(chan struct{})
	goOn, answer := sync.OnceFunc(func() { close(on) }), sync.OnceFunc(func() { close(js.answer) })
	defer goOn()
	defer answer()
	r := opened(t, js, kv, func(c *Config[string, plan]) {
		patient(c)
		c.OnForeign = func(f Foreign) { at <- f.Key; <-on }
	})
	require.NoError(t, put(kv, "=1", "the mirror stops here"))
	require.Equal(t, "=1", <-at)
	stalled := strings.Repeat("x", 1<<19)
	for i := range 16 { // more than the consumer sends without being told to go on
		require.NoError(t, put(kv, key(i), `{"Owner":"`+stalled+`"}`))
	}
	created := make(chan error, 1)
	go func() { _, err := r.Create(ctx, "a", plan{N: 1}); created <- err }()
	<-js.stored
	require.NoError(t, put(kv, "=2", "after the new key"))
	require.NoError(t, put(kv, "=3", "and here, when it has noted the revision of that"))
	require.NoError(t, put(kv, "a", `{"N":2}`))
	for _, foreign := range []string{"=2", "=3"} {
		on <- struct{}{}
		require.Equal(t, foreign, <-at)
	}
	_, ok := r.Get("a")
	require.False(t, ok, "the mirror has not come to the key")
	answer()
	select {
	case <-created:
		t.Fatal("Create has returned, and the mirror does not show the key")
	case <-time.After(100 * time.Millisecond):
	}
	goOn()
	require.NoError(t, <-created)
	_, ok = r.Get("a")
	require.True(t, ok)
}

// A write whose request was lost, and whose key has gone back in a bucket that was made anew, ends
// without its context: nobody can say what has become of it.
func testLostRevision(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	f := &flaky{JetStream: shared.js}
	r := opened[plan](t, f, kv, func(c *Config[string, plan]) { c.Timeout = 300 * time.Millisecond })
	for i := range 5 {
		_, err := r.Put(ctx, "a", plan{N: i})
		require.NoError(t, err)
	}
	e, _ := r.Lookup("a")
	sent := f.sent.Load() // a busy server may get a message twice
	f.loseRequests.Store(1)
	result := make(chan error, 1)
	go func() { _, err := r.UpdateIf(ctx, "a", e.Version, plan{N: 9}); result <- err }()
	eventually(t, func() bool { return f.sent.Load() > sent }, "the request")
	require.NoError(t, shared.js.DeleteKeyValue(ctx, kv.Bucket()))
	_, err := shared.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: kv.Bucket(), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	require.NoError(t, put(kv, "a", `{"N":100}`))
	err = <-result
	require.ErrorIs(t, err, ErrUnknown)
	require.NoError(t, ctx.Err(), err)
	require.NoError(t, r.Sync(ctx))
	p, _ := r.Get("a")
	require.Equal(t, 100, p.N)
}

// A creation whose answer is lost is stored once, although the key has expired meanwhile, and its marker, too, and the
// bucket has forgotten the message id.
func testCreatedAndForgotten(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Second })
	s, err := shared.js.Stream(ctx, "KV_"+kv.Bucket())
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.Duplicates = 400 * time.Millisecond
	_, err = shared.js.UpdateStream(ctx, config)
	require.NoError(t, err)
	watcher, err := kv.Watch(ctx, "a", jetstream.UpdatesOnly())
	require.NoError(t, err)
	defer func() { _ = watcher.Stop() }()
	f := &flaky{JetStream: shared.js}
	r := opened[plan](t, f, kv)
	defer deaf(t, r)()
	stored := func(*nats.Msg) { f.loseRequests.Store(1 << 40) }
	f.after.Store(&stored)
	f.loseAnswers.Store(1)
	result := make(chan error, 1)
	go func() { _, err := r.Create(ctx, "a", plan{N: 1}, TTL(time.Second)); result <- err }()
	update := func() jetstream.KeyValueOp {
		e := <-watcher.Updates()
		require.NotNil(t, e, "the context has ended")
		return e.Operation()
	}
	require.Equal(t, jetstream.KeyValuePut, update())
	require.NotEqual(t, jetstream.KeyValuePut, update(), "it expires")
	eventually(t, func() bool {
		_, err := s.GetLastMsgForSubject(ctx, r.prefix+"a")
		return errors.Is(err, jetstream.ErrMsgNotFound)
	}, "the marker expires")
	f.loseRequests.Store(0)
	select {
	case e := <-watcher.Updates():
		t.Error("stored again: ", e.Operation())
	case err := <-result:
		require.ErrorIs(t, err, ErrUnknown)
	}
}
