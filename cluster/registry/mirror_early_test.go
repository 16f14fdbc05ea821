package registry

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/internal/push"
)

// raw is a codec whose Encode returns the caller's bytes.
type raw struct{}

func (raw) Encode(v []byte) ([]byte, error) { return v, nil }
func (raw) Decode(b []byte) ([]byte, error) { return bytes.Clone(b), nil }

// A write returns when it is acknowledged and the mirror has all that came before it, although
// the server that feeds the mirror is cut off. It waits for what others have written before.
func testEarly(t *testing.T, c *natstest.Cluster) {
	ctx := within(t)
	const leader, feeder = 0, 2
	kv := bucket(t, c.JetStream(), replicated)
	c.Lead("KV_"+kv.Bucket(), leader)
	direct, err := jetstream.New(c.ConnectTo(leader))
	require.NoError(t, err)
	js := &hooked{JetStream: direct}
	r := opened(t, js, kv, func(c *Config[string, []byte]) { c.Codec, c.Heartbeat = raw{}, 10*time.Second })
	for consumerServer(t, c, r) != feeder {
		attachAgain(t, r)
	}
	attachments := r.Stats().Attachments
	other, err := js.KeyValue(ctx, kv.Bucket())
	require.NoError(t, err)
	_, err = r.Put(ctx, "first", []byte("1"))
	require.NoError(t, err)
	require.NoError(t, r.Sync(ctx))

	watching, events := make(chan struct{}), make(chan Event[string, []byte], 100)
	go func() {
		for s, e := range r.WatchSnapshot(ctx) {
			if s != nil {
				close(watching)
				continue
			}
			events <- e
		}
	}()
	<-watching
	c.Partition(feeder, false)
	defer c.Heal(feeder)
	began := time.Now()
	last := r.Revision()
	for i := range 20 {
		k := key(i % 3)
		v, err := r.Put(ctx, k, []byte(fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, last+1, v, "nobody else writes")
		e, ok := r.Lookup(k)
		require.True(t, ok)
		require.Equal(t, Entry[string, []byte]{Key: k, Value: []byte(fmt.Sprint(i)), Version: v}, e)
		require.Equal(t, v, (<-events).Version)
		eventually(t, func() bool { return r.Revision() == v }, "the mirror says so when it shows the write")
		last = v
	}
	old, ok, err := r.Delete(ctx, key(0))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "18", string(old.Value))
	require.Equal(t, Event[string, []byte]{Key: key(0), Version: last + 1, Deleted: true}, <-events)
	require.Less(t, time.Since(began), r.config.Heartbeat)

	// What another client has written before a write is shown before that.
	theirs, err := other.PutString(ctx, "theirs", "x")
	require.NoError(t, err)
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	soon := func() { time.AfterFunc(200*time.Millisecond, cancel) }
	js.after.Store(&soon)
	value := []byte("mine")
	v, err := r.Put(short, "mine", value)
	require.ErrorIs(t, err, ErrBehind)
	require.Greater(t, uint64(v), theirs)
	copy(value, "gone") // which is the caller's
	_, ok = r.Get("mine")
	require.False(t, ok)
	result := make(chan error)
	go func() { _, err := r.Put(ctx, "next", []byte("2")); result <- err }()
	select {
	case <-result:
		t.Fatal("the mirror lacks a revision")
	case <-time.After(200 * time.Millisecond):
	}
	require.Empty(t, events)
	c.Heal(feeder)
	require.NoError(t, <-result)
	for _, want := range []struct{ key, value string }{{"theirs", "x"}, {"mine", "mine"}, {"next", "2"}} {
		e := <-events
		require.Equal(t, want.key, e.Key)
		require.Equal(t, want.value, string(e.Value))
	}
	require.NoError(t, r.Sync(ctx))
	require.Empty(t, events, "no change is told twice")

	// A listing finds in the bucket what was shown early, without having seen its delivery.
	require.Equal(t, attachments, r.Stats().Attachments)
	attachAgain(t, r)
	require.Zero(t, r.Stats().Resets)
	require.Empty(t, events)
	for e := range r.Entries() {
		kve, err := kv.Get(ctx, e.Key)
		require.NoError(t, err)
		require.Equal(t, kve.Revision(), uint64(e.Version))
		require.Equal(t, kve.Value(), e.Value)
	}
}

// early is a registry that has ended, with an attachment to which a test hands what the bucket would.
type early struct {
	t *testing.T
	r *Registry[string, plan]
	a *attachment[string, plan]
	m func(subject string, consumer, stream int, id string) *nats.Msg
}

func newEarly(t *testing.T) early {
	r := opened[plan](t, shared.js, bucket(t, shared.js))
	require.NoError(t, r.Close(within(t)))
	sub, err := r.conn.SubscribeSync(r.conn.NewInbox())
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	r.mirror.position.Store(100)
	r.mirror.shown.Store(100)
	return early{t, r, &attachment[string, plan]{consumer: new(push.Consumer)}, func(k string, consumer, stream int, id string) *nats.Msg {
		m := &nats.Msg{Subject: r.prefix + k, Sub: sub, Reply: fmt.Sprintf("$JS.ACK.s.c.1.%d.%d.1.0", stream, consumer), Data: []byte(fmt.Sprintf(`{"N":%d}`, stream))}
		if id != "" {
			m.Header = nats.Header{nats.MsgIdHdr: {id}}
		}
		return m
	}}
}

// acknowledged hands over a write of the registry.
func (e early) acknowledged(k string, revision int, id string) {
	m := e.m(k, 0, revision, id)
	e.r.acknowledged(e.a, storedWrite{&nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Header}, uint64(revision), e.r.mirror.attached.Load()})
}

// shows checks what the mirror has come to.
func (e early) shows(position int, keys map[string]int, gaps uint64) {
	e.t.Helper()
	require.Equal(e.t, uint64(position), e.r.mirror.position.Load())
	require.Equal(e.t, Version(position), e.r.Revision())
	got := map[string]int{}
	for x := range e.r.Entries() {
		got[x.Key] = x.Value.N
		require.Equal(e.t, Version(x.Value.N), x.Version)
	}
	require.Equal(e.t, keys, got)
	require.Equal(e.t, gaps, e.r.mirror.gaps.Load())
}

// What was acknowledged in an earlier attachment may not be in the bucket any more, which was restored
// since: the revision may be that of another message.
func testEarlyFromBefore(t *testing.T) {
	e := newEarly(t)
	gaps := e.r.mirror.gaps.Load()
	m := e.m("a", 0, 101, e.r.id+".1a")
	before := storedWrite{&nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Header}, 101, e.r.mirror.attached.Load()}
	e.r.mirror.attached.Add(1)
	e.r.acknowledged(e.a, before)
	e.shows(100, map[string]int{}, gaps)
	require.Empty(t, e.a.early.waiting)
	require.NoError(t, e.r.receive(e.a, e.m("b", 1, 101, "")))
	e.shows(101, map[string]int{"b": 101}, gaps)
}

// Acknowledged writes are shown in the order of the revisions, each once, whichever of acknowledgement and
// delivery comes first. They hide no gap, and make none.
func testEarlyWrites(t *testing.T) {
	e := newEarly(t)
	gaps := e.r.mirror.gaps.Load()
	id := func(n int) string { return e.r.id + "." + strconv.FormatInt(int64(n), 36) }
	receive := func(k string, consumer, stream int, id string) {
		t.Helper()
		require.NoError(t, e.r.receive(e.a, e.m(k, consumer, stream, id)))
	}
	e.acknowledged("a", 103, id(40)) // 101 and 102 are missing
	e.acknowledged("b", 102, id(41))
	e.shows(100, map[string]int{}, gaps)
	receive("c", 1, 101, "")
	e.shows(103, map[string]int{"a": 103, "b": 102, "c": 101}, gaps)
	e.acknowledged("a", 103, id(40)) // again: a duplicate's acknowledgement
	require.Empty(t, e.a.early.waiting)
	receive("b", 2, 102, id(41))
	receive("a", 3, 103, id(40))
	e.shows(103, map[string]int{"a": 103, "b": 102, "c": 101}, gaps)
	require.Empty(t, e.a.early.shown)

	// The consumer passes over what is overwritten: this is a gap only if the mirror lacks it.
	e.acknowledged("a", 104, id(42))
	receive("a", 4, 105, "")
	e.shows(105, map[string]int{"a": 105, "b": 102, "c": 101}, gaps)
	require.Empty(t, e.a.early.shown)
	e.acknowledged("b", 107, id(43))
	receive("a", 5, 109, "")
	e.shows(109, map[string]int{"a": 109, "b": 102, "c": 101}, gaps+1)
	require.Empty(t, e.a.early.waiting)
	e.acknowledged("b", 110, id(44))
	e.acknowledged("b", 111, id(45))
	receive("b", 6, 111, id(45))
	e.shows(111, map[string]int{"a": 109, "b": 111, "c": 101}, gaps+1)
	require.Empty(t, e.a.early.shown)

	// A delivery tells the calls that wait, whatever is shown already, and a lost one is noticed.
	e.acknowledged("b", 112, id(46))
	require.ErrorIs(t, e.r.receive(e.a, e.m("b", 8, 112, id(46))), push.ErrMissed)

	// While the mirror lists, only deliveries count.
	e.a.listing = &listing[string, plan]{seen: map[string]struct{}{}}
	e.acknowledged("b", 113, id(47))
	e.shows(112, map[string]int{"a": 109, "b": 112, "c": 101}, gaps+1)
}

// If the bucket delivers something else than it has acknowledged, the mirror lists again.
func testEarlyOvertaken(t *testing.T) {
	for name, other := range map[string]func(e early, id string) *nats.Msg{
		"key":              func(e early, id string) *nats.Msg { return e.m("b", 1, 101, id) },
		"id":               func(e early, id string) *nats.Msg { return e.m("a", 1, 101, id+"0") },
		"no id":            func(e early, id string) *nats.Msg { return e.m("a", 1, 101, "") },
		"before the first": func(e early, id string) *nats.Msg { return e.m("a", 1, 100, id) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEarly(t)
			id := e.r.id + ".1"
			e.acknowledged("a", 101, id)
			require.ErrorIs(t, e.r.receive(e.a, other(e, id)), errOther)
		})
	}
	// What tells messages apart is the call, for those of this registry alone, and the time for others.
	e := newEarly(t)
	for id, want := range map[string]int64{
		"": 7, "x": 7, e.r.id: 7, e.r.id + ".": 7, e.r.id + ".0": 7, e.r.id + ".-1": 7, e.r.id + ".?": 7, e.r.id + "x1": 7, "x" + e.r.id + ".1": 7,
		e.r.id + ".1": -1, e.r.id + ".10": -36,
	} {
		require.Equal(t, want, e.r.stamp(nats.Header{nats.MsgIdHdr: {id}}, 7), id)
	}
}

// elsewhere is a JetStream in which another stream stores what is written.
type elsewhere struct{ jetstream.JetStream }

func (f elsewhere) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if m.Header.Get(nats.MsgIdHdr) != "" {
		return &jetstream.PubAck{Stream: "another", Sequence: 1}, nil
	}
	return f.JetStream.PublishMsg(ctx, m, opts...)
}

// An acknowledgement of another stream is none.
func testStoredElsewhere(t *testing.T) {
	r := opened[plan](t, elsewhere{shared.js}, bucket(t, shared.js))
	_, err := r.Put(within(t), "a", plan{})
	require.ErrorContains(t, err, "stream another has stored the message")
}

// A bucket is restored, and others bring it to the revision that the mirror had, before that notices. A write
// that is shown then does not hide the contradiction.
func TestRestoredUnnoticed(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	dir, backup := t.TempDir(), t.TempDir()
	c := natstest.Start(t, 1, func(o *server.Options) { o.StoreDir = dir })
	kv := bucket(t, c.JetStream(), func(k *jetstream.KeyValueConfig) { k.Storage = jetstream.FileStorage })
	r := opened(t, c.JetStream(), kv, func(c *Config[string, plan]) { c.Heartbeat = time.Second })
	_, err := r.Create(ctx, "kept", plan{"before", 0})
	require.NoError(t, err)
	c.Kill(0)
	copyDir(t, backup, dir)
	c.Restart(0)
	c.WaitReady()
	attachAgain(t, r)
	var had Version
	for i := range 5 {
		had, err = r.Create(ctx, key(i), plan{"lost", i})
		require.NoError(t, err)
	}
	attachments := r.Stats().Attachments

	c.Kill(0)
	require.NoError(t, os.RemoveAll(dir))
	copyDir(t, dir, backup)
	c.Restart(0)
	c.WaitReady()
	want := map[string]plan{"kept": {"before", 0}}
	for i := 10; ; i++ {
		rev, err := kv.PutString(ctx, key(i), `{"Owner":"after"}`)
		require.NoError(t, err)
		require.LessOrEqual(t, rev, uint64(had))
		want[key(i)] = plan{"after", 0}
		if rev == uint64(had) {
			break
		}
	}
	v, err := r.Create(ctx, "mine", plan{"mine", 0})
	require.NoError(t, err)
	require.Equal(t, had+1, v)
	want["mine"] = plan{"mine", 0}
	t.Log("attached again before the write:", r.Stats().Attachments > attachments)
	require.NoError(t, r.Sync(ctx))
	got := map[string]plan{}
	for k, p := range r.All() {
		got[k] = p
	}
	require.Equal(t, want, got)
	require.Equal(t, uint64(1), r.Stats().Resets)
}
