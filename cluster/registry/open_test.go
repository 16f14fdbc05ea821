package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// put stores a value as another client does.
func put(kv jetstream.KeyValue, key, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := kv.PutString(ctx, key, value)
	return err
}

func testConfig(t *testing.T) {
	var none context.Context
	kv := bucket(t, shared.js)
	for want, c := range map[string]Config[string, int]{
		"Heartbeat": {Heartbeat: time.Millisecond},
		"Timeout":   {Timeout: -1},
		"MaxLag":    {MaxLag: time.Millisecond},
		"Indexes":   {Indexes: map[string]func(string, int) []string{"x": nil}},
	} {
		_, err := Open(within(t), shared.js, kv.Bucket(), c)
		require.ErrorContains(t, err, want)
	}
	for _, f := range []func(){
		func() { Open(none, shared.js, "b", Config[string, int]{}) },
		func() { Open(within(t), nil, "b", Config[string, int]{}) },
	} {
		require.Panics(t, f)
	}
	r := opened[int](t, shared.js, kv)
	for _, f := range []func(){
		func() { r.Create(none, "a", 1) }, func() { r.Put(none, "a", 1) },
		func() { r.Update(none, "a", func(i int) (int, error) { return i, nil }) },
		func() { r.Update(within(t), "a", nil) },
		func() { r.UpdateIf(none, "a", 1, 1) }, func() { r.Renew(none, "a", 1, time.Second) },
		func() { r.Delete(none, "a") }, func() { r.DeleteIf(none, "a", 1) },
		func() { r.Sync(none) }, func() { r.Relist(none) }, func() { r.Close(none) }, func() { r.Watch(none) },
		func() { r.WatchSnapshot(none) }, func() { r.Wait(none, "a", 0) }, func() { r.Fresh() },
		func() { r.ByIndex("nothing", "") },
	} {
		require.Panics(t, f)
	}
}

// What cannot be mirrored exactly is refused at once, whatever the context.
func testUnsuitable(t *testing.T) {
	ctx := within(t)
	for name, c := range map[string]jetstream.StreamConfig{
		"TTL":       {MaxMsgsPerSubject: 1, MaxAge: time.Hour},
		"no bucket": {},
		"discards":  {MaxMsgsPerSubject: 1, MaxBytes: 1 << 20},
		"expiry":    {MaxMsgsPerSubject: 1, AllowMsgTTL: true},
		"interest":  {MaxMsgsPerSubject: 1, Retention: jetstream.InterestPolicy},
		"elsewhere": {MaxMsgsPerSubject: 1, SubjectTransform: &jetstream.SubjectTransformConfig{Source: "$KV.unsuitable.a", Destination: "$KV.unsuitable.b"}},
		"refuses":   {MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true},
	} {
		c.Name, c.Subjects, c.Storage = "KV_unsuitable", []string{"$KV.unsuitable.>"}, jetstream.MemoryStorage
		_, err := shared.js.CreateStream(ctx, c)
		require.NoError(t, err)
		_, err = Open(ctx, shared.js, "unsuitable", Config[string, int]{})
		require.ErrorIs(t, err, ErrUnsuitable, name)
		require.NoError(t, shared.js.DeleteStream(ctx, c.Name))
	}
	_, err := Open(ctx, shared.js, "nobody", Config[string, int]{})
	require.ErrorIs(t, err, jetstream.ErrBucketNotFound)
	_, err = Open(ctx, shared.js, "no bucket", Config[string, int]{})
	require.Error(t, err)

	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.TTL, c.LimitMarkerTTL = time.Hour, time.Second })
	opened[int](t, shared.js, kv) // expiry with markers is fine
}

// Open ends with its context when nothing answers, and says why.
func testUnreachable(t *testing.T) {
	nc, err := nats.Connect("nats://127.0.0.1:1", nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, js, "b", Config[string, int]{Timeout: 10 * time.Millisecond})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	cause := errors.New("enough")
	ctx2, cancel2 := context.WithCancelCause(context.Background())
	cancel2(cause)
	_, err = Open(ctx2, js, "b", Config[string, int]{})
	require.ErrorIs(t, err, cause)
	nc.Close()
	_, err = Open(within(t), js, "b", Config[string, int]{})
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
}

// A registry whose connection is closed ends: all calls that need the bucket say so, those too
// that wait already, and reads go on.
func TestConnectionClosed(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1)
	kv := bucket(t, c.JetStream())
	js := c.JetStream()
	r := opened(t, js, kv, patient[plan])
	ctx := within(t)
	_, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	waiting := make(chan error)
	go func() { _, err := r.Wait(ctx, "b", 0); waiting <- err }()
	go func() {
		for range r.Watch(ctx) {
		}
		waiting <- r.Lag().Err
	}()
	c.Kill(0)
	for _, call := range []func() error{
		func() error { return r.Sync(ctx) },
		func() error { _, _, err := r.Delete(ctx, "b"); return err },
		func() error { _, err := r.Put(ctx, "a", plan{}); return err },
	} {
		go func() { waiting <- call() }()
	}
	time.Sleep(10 * time.Millisecond) // those that have not begun yet get the same error
	js.Conn().Close()
	for range 5 {
		err := <-waiting
		require.ErrorIs(t, err, nats.ErrConnectionClosed)
		require.ErrorIs(t, err, ErrClosed)
	}
	require.ErrorIs(t, r.Sync(ctx), nats.ErrConnectionClosed)
	_, ok, err := r.Delete(ctx, "b")
	require.False(t, ok)
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	_, ok = r.Get("a")
	require.True(t, ok)
	c.Restart(0) // for the end of the test
}

// A user who may not use the bucket gets an error that says what failed.
func TestPermissions(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "x"},
			{Username: "nobody", Password: "x", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"x"}}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
			{Username: "reader", Password: "x", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"$JS.>"}}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	})
	user := func(name string) jetstream.JetStream {
		return c.JetStream(nats.UserInfo(name, "x"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	}
	kv := bucket(t, user("all"))
	for _, name := range []string{"nobody", "reader"} {
		js := user(name)
		err := inTime(200*time.Millisecond, func(err error) bool { return errors.Is(err, nats.ErrPermissionViolation) }, func(ctx context.Context, d time.Duration) error {
			_, err := Open(ctx, js, kv.Bucket(), Config[string, int]{Timeout: d / 4})
			return err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorIs(t, err, nats.ErrPermissionViolation, name)
		require.ErrorContains(t, err, map[string]string{"nobody": "no information about stream", "reader": "no sync message"}[name])
	}
}

func testTooLarge(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.MaxValueSize = 1000 })
	r := opened[string](t, shared.js, kv)
	for _, n := range []int{1000, 2 << 20} { // over the bucket's limit, over the server's
		_, err := r.Create(ctx, "a", strings.Repeat("x", n))
		require.ErrorIs(t, err, ErrTooLarge)
	}
	v, err := r.Create(ctx, "a", "small")
	require.NoError(t, err)
	_, err = r.UpdateIf(ctx, "a", v, strings.Repeat("x", 1000))
	require.ErrorIs(t, err, ErrTooLarge)
	e, _ := r.Lookup("a")
	require.Equal(t, v, e.Version)
	_, err = r.Create(ctx, strings.Repeat("k", 3000), "")
	require.ErrorIs(t, err, ErrInvalidKey)
	long := strings.Repeat("k", maxKey)
	_, err = r.Create(ctx, long, "")
	require.NoError(t, err)

	full := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.MaxBytes = 4000 })
	r = opened[string](t, shared.js, full)
	var refused error
	for i := 0; refused == nil && i < 100; i++ {
		_, refused = r.Create(ctx, key(i), strings.Repeat("x", 200))
	}
	require.ErrorContains(t, refused, "maximum bytes")
	require.NoError(t, r.Sync(ctx), "a full bucket can be proved current")
	require.NotErrorIs(t, refused, ErrUnknown)
}

// After Close nothing runs, and all who wait are told.
func testClose(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	f := &flaky{JetStream: shared.js}
	r, err := Open(ctx, f, kv.Bucket(), Config[string, int]{})
	require.NoError(t, err)
	v, err := r.Create(ctx, "a", 1)
	require.NoError(t, err)
	f.loseRequests.Store(1 << 40)
	errs := make(chan error)
	go func() { _, err := r.Put(ctx, "a", 2); errs <- err }()
	eventually(t, func() bool { return f.sent.Load() == 2 }, "the write")
	go func() { _, err := r.Wait(ctx, "a", v); errs <- err }()
	go func() {
		for range r.Watch(ctx) {
		}
		errs <- ErrClosed
	}()
	require.NoError(t, r.Close(ctx))
	for range 3 {
		require.ErrorIs(t, <-errs, ErrClosed)
	}
	require.NoError(t, r.Close(ctx))
	got, ok := r.Get("a")
	require.True(t, ok)
	require.Equal(t, 1, got)
	for _, f := range []func() error{
		func() error { _, err := r.Create(ctx, "b", 1); return err },
		func() error { _, _, err := r.Delete(ctx, "a"); return err },
		func() error { return r.Sync(ctx) },
	} {
		require.ErrorIs(t, f(), ErrClosed)
	}
	require.ErrorIs(t, r.Lag().Err, ErrClosed)
	require.True(t, shared.js.Conn().IsConnected())
}

// A Close whose context ends while a function of Config runs leaves it behind, and
// returns.
func testCloseBlocked(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	block, running := make(chan struct{}), make(chan struct{})
	r, err := Open(ctx, shared.js, kv.Bucket(), Config[string, int]{OnForeign: func(Foreign) { close(running); <-block }})
	require.NoError(t, err)
	require.NoError(t, put(kv, "a", "no number"))
	<-running
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Close(short), context.DeadlineExceeded)
	close(block)
	require.NoError(t, r.Close(ctx))
}
