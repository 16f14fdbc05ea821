package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// A key keeps no memory of the message that has brought it, which begins with the bucket's name.
func testStoredKey(t *testing.T) {
	e := newEarly(t)
	m := e.m("plan", 1, 101, "")
	require.NoError(t, e.r.receive(e.a, m))
	at := uintptr(unsafe.Pointer(unsafe.StringData(m.Subject)))
	for k := range e.r.All() {
		key := uintptr(unsafe.Pointer(unsafe.StringData(k)))
		require.Equal(t, "plan", k)
		require.False(t, at <= key && key < at+uintptr(len(m.Subject)))
	}
	require.Equal(t, 1, e.r.Len())
	runtime.KeepAlive(m)
}

// Changes of other clients come in, however they are made.
func testOtherClients(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.History = 5 })
	require.NoError(t, put(kv, "old", `{"N":1}`))
	require.NoError(t, put(kv, "old", `{"N":2}`))
	require.NoError(t, put(kv, "gone", `{"N":1}`))
	require.NoError(t, kv.Delete(ctx, "gone"))
	r := opened[plan](t, shared.js, kv)
	require.Equal(t, 1, r.Len())
	p, _ := r.Get("old")
	require.Equal(t, 2, p.N)
	rev, err := kv.Create(ctx, "new", []byte(`{"N":3}`))
	require.NoError(t, err)
	e, err := r.Wait(ctx, "new", 0)
	require.NoError(t, err)
	require.Equal(t, rev, uint64(e.Version))
	_, err = kv.Update(ctx, "new", []byte(`{"N":4}`), rev)
	require.NoError(t, err)
	e, err = r.Wait(ctx, "new", e.Version)
	require.NoError(t, err)
	require.Equal(t, 4, e.Value.N)
	require.NoError(t, kv.Purge(ctx, "new"))
	_, err = r.Wait(ctx, "new", e.Version)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = r.Create(ctx, "gone", plan{})
	require.NoError(t, err)
	_, err = r.Create(ctx, "new", plan{})
	require.NoError(t, err)
	_, err = r.Create(ctx, "odd key: ü*>.", plan{N: 7})
	require.NoError(t, err)
	got, err := kv.Get(ctx, "odd=20key=3A=20=C3=BC=2A=3E=2E")
	require.NoError(t, err)
	require.JSONEq(t, `{"Owner":"","N":7}`, string(got.Value()))
}

// A key that is removed without a marker is still shown, until the mirror lists again. A
// write that comes upon it makes it do so.
func testPurgedUnnoticed(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	// After a request without an answer nobody could say what has become of a write.
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) { c.Timeout = patience })
	v, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	_, err = r.Create(ctx, "b", plan{N: 2})
	require.NoError(t, err)
	_, _, err = r.Delete(ctx, "b")
	require.NoError(t, err)
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	purge := func(key string) { require.NoError(t, s.Purge(ctx, jetstream.WithPurgeSubject(r.prefix+key))) }
	purge("a")
	purge("b")
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 1, r.Len(), "this is the limit that the documentation names")
	_, err = r.UpdateIf(ctx, "a", v, plan{})
	require.ErrorIs(t, err, ErrNotFound)
	require.Zero(t, r.Len())
	require.Zero(t, r.Stats().Resets)

	v, err = r.Create(ctx, "a", plan{N: 3}) // nothing is left in the bucket
	require.NoError(t, err)
	_, err = r.Create(ctx, "c", plan{N: 3})
	require.NoError(t, err)
	purge("c")
	require.NoError(t, r.Relist(ctx))
	_, ok := r.Get("c")
	require.False(t, ok)
	require.Equal(t, 1, r.Len())
	_, err = r.Create(ctx, "c", plan{N: 3})
	require.NoError(t, err)
	purge("c")
	_, _, err = r.Delete(ctx, "c")
	require.NoError(t, err)
	_, err = r.Create(ctx, "b", plan{N: 4})
	require.NoError(t, err)
	purge("a")
	v2, err := r.Put(ctx, "a", plan{N: 5})
	require.NoError(t, err)
	require.Greater(t, v2, v)
	purge("a")
	_, err = r.Update(ctx, "a", func(p plan) (plan, error) { return p, nil })
	require.ErrorIs(t, err, ErrNotFound)
	_, err = r.Put(ctx, "a", plan{N: 6})
	require.NoError(t, err)
	purge("a")
	_, ok, err = r.Delete(ctx, "a")
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, 1, r.Len())
}

// A bucket that is deleted and made again is another one, although its revisions are the
// same. The mirror stays as it was meanwhile.
func testMadeAnew(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	for i := range 5 {
		_, err := r.Create(ctx, key(i), plan{N: i})
		require.NoError(t, err)
	}
	last := r.Revision()
	require.NoError(t, shared.js.DeleteKeyValue(ctx, kv.Bucket()))
	eventually(t, func() bool { return !r.Lag().Attached }, "the mirror notices")
	require.Equal(t, 5, r.Len())
	kv, err := shared.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: kv.Bucket(), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	require.NoError(t, put(kv, key(0), `{"N":100}`))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 1, r.Len())
	p, _ := r.Get(key(0))
	require.Equal(t, 100, p.N)
	require.Less(t, r.Revision(), last+100)
	require.Equal(t, uint64(1), r.Stats().Resets)
	_, err = r.Create(ctx, key(1), plan{N: 101})
	require.NoError(t, err)
	_, err = r.Update(ctx, key(0), func(p plan) (plan, error) { p.N++; return p, nil })
	require.NoError(t, err)
}

// A server whose files were restored from a backup has a bucket with the same creation
// time and with revisions that it has already given. What the mirror has of the lost ones
// must go, whether or not the revisions have gone past it meanwhile.
func TestRestored(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]int{"behind": 0, "ahead": 20} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			dir, backup := t.TempDir(), t.TempDir()
			c := natstest.Start(t, 1, func(o *server.Options) { o.StoreDir = dir })
			kv := bucket(t, c.JetStream(), func(k *jetstream.KeyValueConfig) { k.Storage = jetstream.FileStorage })
			r := opened[plan](t, c.JetStream(), kv)
			for i := range 5 {
				_, err := r.Create(ctx, key(i), plan{"before", i})
				require.NoError(t, err)
			}
			c.Kill(0)
			copyDir(t, backup, dir)
			c.Restart(0)
			c.WaitReady()
			for i := range 3 { // which the backup does not have
				_, err := r.Put(ctx, key(i), plan{"lost", i})
				require.NoError(t, err)
				_, err = r.Create(ctx, key(10+i), plan{"lost", i})
				require.NoError(t, err)
			}
			_, _, err := r.Delete(ctx, key(4))
			require.NoError(t, err)
			require.NoError(t, r.Sync(ctx))

			block := make(chan struct{})
			unblock := sync.OnceFunc(func() { close(block) })
			defer unblock()
			r.config.OnForeign = func(Foreign) { <-block } // so that the mirror does not see it early
			require.NoError(t, put(kv, "foreign", ""))
			c.Kill(0)
			require.NoError(t, os.RemoveAll(dir))
			copyDir(t, dir, backup)
			c.Restart(0)
			c.WaitReady()
			for i := range more {
				require.NoError(t, put(kv, key(20+i), `{"Owner":"after"}`))
			}
			unblock()
			require.NoError(t, r.Sync(ctx))
			got := map[string]plan{}
			for k, p := range r.All() {
				got[k] = p
			}
			want := map[string]plan{}
			for i := range 5 {
				want[key(i)] = plan{"before", i}
			}
			for i := range more {
				want[key(20+i)] = plan{"after", 0}
			}
			require.Equal(t, want, got)
			require.Equal(t, uint64(1), r.Stats().Resets)
			_, err = r.Create(ctx, key(10), plan{})
			require.NoError(t, err)
		})
	}
}

func copyDir(t *testing.T, to, from string) {
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	}))
}

// While the mirror lists again it shows what it had: it is never empty, and no key goes back.
func testListAgain(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	const keys = 100
	for i := range keys {
		require.NoError(t, put(kv, key(i), `{"N":0}`))
	}
	require.NoError(t, r.Sync(ctx))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // who changes keys meanwhile
		defer close(stopped)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				_, _ = kv.PutString(context.Background(), key(n%keys), `{"N":1}`)
			}
		}
	}()
	seen := make(map[string]Version)
	for range 10 {
		before := r.Stats().Attachments
		r.listAgain()
		for r.Stats().Attachments == before || !r.mirror.settled.Load() {
			n := 0
			for e := range r.Entries() {
				n++
				require.GreaterOrEqual(t, e.Version, seen[e.Key])
				seen[e.Key] = e.Version
			}
			require.Equal(t, keys, n)
		}
	}
	close(stop)
	<-stopped
	require.Zero(t, r.Stats().Resets)
	require.NoError(t, r.Sync(ctx))
	for i := range keys {
		e, err := kv.Get(ctx, key(i))
		require.NoError(t, err)
		got, _ := r.Lookup(key(i))
		require.Equal(t, e.Revision(), uint64(got.Version))
	}
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	eventually(t, func() bool {
		info, err := s.Info(ctx)
		return err == nil && info.State.Consumers == 1
	}, "old consumers are deleted")
}

// A silent server is left after some heartbeats.
func testSilent(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	attachments := r.Stats().Attachments
	names := s.ConsumerNames(ctx)
	for name := range names.Name() {
		require.NoError(t, s.DeleteConsumer(ctx, name))
	}
	require.NoError(t, put(kv, "a", `{"N":1}`))
	began := time.Now()
	_, err = r.Wait(ctx, "a", 0)
	require.NoError(t, err)
	t.Log(time.Since(began))
	require.Greater(t, r.Stats().Attachments, attachments)
}

// A mirror that could not run for some heartbeats, as in a process that was stopped, does not
// take that for silence of the server.
func testHeldUp(t *testing.T) {
	const heartbeat = 3 * minHeartbeat / 2
	kv := bucket(t, shared.js)
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.Heartbeat = heartbeat
		c.OnForeign = func(Foreign) { time.Sleep(4 * heartbeat) }
	})
	for i := range 3 { // one that did would do so every other time
		require.NoError(t, put(kv, fmt.Sprint("=", i), "no key"))
		require.NoError(t, r.Sync(within(t)))
	}
	require.Equal(t, uint64(1), r.Stats().Attachments)
}

// A marker that has expired before the consumer came to it leaves a gap, and nothing that would replace what the mirror
// shows. So after a gap the mirror lists again, unless it was proved exact less than the life of a marker ago.
func testExpiredInGap(t *testing.T) {
	ctx := within(t)
	for _, life := range []time.Duration{time.Second, time.Hour} {
		kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = life })
		r := opened[plan](t, shared.js, kv)
		s, err := shared.js.Stream(ctx, r.stream)
		require.NoError(t, err)
		_, err = r.Create(ctx, "a", plan{N: 1})
		require.NoError(t, err)
		gaps, attached := r.mirror.gaps.Load(), r.Stats().Attachments
		for name := range s.ConsumerNames(ctx).Name() {
			_, err := s.PauseConsumer(ctx, name, time.Now().Add(patience))
			require.NoError(t, err)
			if life == time.Second {
				require.NoError(t, kv.Purge(ctx, "a", jetstream.PurgeTTL(life)))
				eventually(t, func() bool {
					_, err := s.GetLastMsgForSubject(ctx, r.prefix+"a")
					return errors.Is(err, jetstream.ErrMsgNotFound)
				}, "the marker expires")
			}
			for range 2 {
				require.NoError(t, put(kv, "b", `{}`))
			}
			_, err = s.ResumeConsumer(ctx, name)
			require.NoError(t, err)
		}
		require.NoError(t, r.Sync(ctx))
		require.Greater(t, r.mirror.gaps.Load(), gaps)
		require.Zero(t, r.Stats().Resets)
		_, ok := r.Get("a")
		if life == time.Second {
			require.False(t, ok)
		} else if r.Stats().Attachments != attached {
			t.Error("it has listed again:", r.status.failure())
		}
	}
}

// A delivery that has not come is noticed by the next one, or by a heartbeat, and the
// mirror lists again.
func testLostDelivery(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	for _, m := range []*nats.Msg{
		{Header: nats.Header{"Status": {"100"}, "Nats-Last-Consumer": {"999999"}}},
		{Header: nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}},
	} {
		before := r.Stats().Attachments
		var inbox string
		eventually(t, func() bool {
			for info := range s.ListConsumers(ctx).Info() {
				inbox = info.Config.DeliverSubject
			}
			return r.Lag().Attached && inbox != ""
		}, "the consumer")
		m.Subject = inbox
		require.NoError(t, r.conn.PublishMsg(m))
		eventually(t, func() bool { return r.Stats().Attachments > before && r.Lag().Attached }, "another attachment")
	}
	// What is nothing of the kind does no harm.
	require.NoError(t, put(kv, "a", `{"N":1}`))
	_, err = r.Wait(ctx, "a", 0)
	require.NoError(t, err)
}

// A listing finds out what has another time or another revision than the mirror, whoever is
// newer.
func testContradiction(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	v, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	h, _ := r.inner.Get("a")
	for i, wrong := range []held[plan]{
		{Value: plan{N: 2}, Version: v, Stamp: h.Stamp + 1},
		{Value: plan{N: 3}, Version: v + 1000, Stamp: h.Stamp},
	} {
		_, err = r.inner.Put("a", wrong)
		require.NoError(t, err)
		attachAgain(t, r)
		e, _ := r.Lookup("a")
		require.Equal(t, Entry[string, plan]{Key: "a", Value: plan{N: 1}, Version: v}, e)
		require.Equal(t, uint64(i+1), r.Stats().Resets)
	}
	// The mirror holds a key for deleted that the bucket has, with a lower revision: Create
	// must not overwrite it.
	r.tombs.set("a", tomb{revision: uint64(v) + 1000, expect: uint64(v) + 1000})
	r.inner.Delete("a")
	_, err = r.Create(ctx, "a", plan{N: 4})
	require.ErrorIs(t, err, ErrExists)
	e, err := kv.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, uint64(v), e.Revision())
}
