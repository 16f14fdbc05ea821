package breaker_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// What the table in README.md promises in each state of the engine is checked by the tests
// of the module's root; here is what follows for hints.

// A hint that has waited is good for the rest of its time.
func TestHintsAge(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	a, b := start(t, server.JetStream(), "a", func(c *breaker.Config[string]) { c.Group.Default.OpenTimeout = 20 * time.Second }), start(t, server.JetStream(), "b")
	server.Kill(0)
	a.fail("db", 4)
	until := time.Now().Add(20 * time.Second)
	time.Sleep(3 * time.Second) // longer than an attempt to publish takes
	left := time.Until(until)
	server.Restart(0)
	b.becomes(t, "db", atomicbreaker.Open)
	js := server.JetStream()
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	var said struct{ For time.Duration }
	require.NoError(t, json.Unmarshal(m.Data, &said))
	require.LessOrEqual(t, said.For, left, "it was published later")
	require.Less(t, said.For, 18*time.Second)
	require.Greater(t, said.For, time.Second)
}

// Restored from a backup, or made anew: the replicas follow the stream as it is. Forced
// states of the backup apply again; reports count by their age.
func TestStreamRestored(t *testing.T) {
	server := natstest.Start(t, 1)
	js := server.JetStream()
	a, b := start(t, js, "a"), start(t, server.JetStream(), "b")
	a.ForceOpen("db")
	a.Disable("more")
	settle(t, "first", a, b)
	require.NoError(t, js.DeleteStream(t.Context(), "hints"))
	eventually(t, func() bool { _, err := js.Stream(t.Context(), "hints"); return err == nil }) // a follower has made another
	require.Equal(t, atomicbreaker.ForcedOpen, b.State("db"))
	b.Reset("db") // with a sequence that was met before
	a.becomes(t, "db", atomicbreaker.Closed)
	a.fail("again", 4)
	b.becomes(t, "again", atomicbreaker.Open)
}

// restorable is a server whose files can be replaced, and a replica whose follower can be
// held once it has lost the stream.
func restorable(t *testing.T) (server *natstest.Cluster, dir string, a *replica, hold func() (release func())) {
	dir = t.TempDir()
	server = natstest.Start(t, 1, func(o *natsserver.Options) { o.StoreDir = dir })
	var held atomic.Pointer[chan struct{}]
	a = start(t, server.JetStream(), "a", func(c *breaker.Config[string]) {
		c.OnError = func(err error) {
			if h := held.Load(); h != nil && strings.Contains(err.Error(), "follow stream") {
				<-*h
			}
		}
	})
	return server, dir, a, func() func() {
		h := make(chan struct{})
		held.Store(&h)
		release := sync.OnceFunc(func() { held.Store(nil); close(h) })
		t.Cleanup(release)
		return release
	}
}

// replaceFiles starts a server again with other files.
func replaceFiles(t *testing.T, server *natstest.Cluster, to, from string) {
	server.Kill(0)
	require.NoError(t, os.RemoveAll(to))
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	server.Restart(0)
	server.WaitReady()
}

// Restored from a backup, and continued by others as far as a replica had come before that
// replica is back: it meets all of it.
func TestStreamRestoredAndContinued(t *testing.T) {
	t.Parallel()
	server, dir, a, hold := restorable(t)
	a.ForceOpen("backup")
	a.hears(t, 1)
	backup := t.TempDir()
	replaceFiles(t, server, backup, dir)
	a.Reset("backup")
	a.Disable("lost")
	a.hears(t, 3)
	release := hold()
	replaceFiles(t, server, dir, backup)
	b := start(t, server.JetStream(), "b")
	b.ForceOpen("new 2")
	b.ForceOpen("new 3")
	b.ForceOpen("new 4")
	b.hears(t, 4)
	release()
	for _, k := range []string{"backup", "new 2", "new 3", "new 4"} {
		a.becomes(t, k, atomicbreaker.ForcedOpen)
	}
}

// A command that was stored, and lost with the backup before its replica has met it, is
// lost there, too.
func TestOwnCommandIsLost(t *testing.T) {
	t.Parallel()
	server, dir, a, hold := restorable(t)
	a.ForceOpen("backup")
	a.hears(t, 1)
	backup := t.TempDir()
	release := hold()
	replaceFiles(t, server, backup, dir)
	a.Reset("backup")
	b := start(t, server.JetStream(), "b")
	b.becomes(t, "backup", atomicbreaker.Closed)
	eventually(t, func() bool { return a.Hints().Waiting == 0 })
	replaceFiles(t, server, dir, backup)
	release()
	a.becomes(t, "backup", atomicbreaker.ForcedOpen)
	b.becomes(t, "backup", atomicbreaker.ForcedOpen)
}

// A replica that was away while a Trip has ended a forced state hears of that, also when the
// time of the Trip has passed; that opens nothing any more.
func TestTripEndsForcedStateLate(t *testing.T) {
	t.Parallel()
	server, _, a, hold := restorable(t)
	js := server.JetStream()
	b := start(t, js, "b")
	b.ForceOpen("db")
	b.Disable("usual")
	a.becomes(t, "usual", atomicbreaker.Disabled)
	release := hold()
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	for name := range stream.ConsumerNames(t.Context()).Name() {
		require.NoError(t, stream.DeleteConsumer(t.Context(), name))
	}
	eventually(t, func() bool { return !a.Hints().Connected })
	for _, key := range []string{"db", "other"} { // as b would, unless the time had passed before it could
		subject := "hints.c.k" + base64.RawURLEncoding.EncodeToString([]byte(key))
		_, err := js.Publish(t.Context(), subject, fmt.Appendf(nil, `{"kind":"trip","key":%q,"replica":"c","for":%d}`,
			base64.StdEncoding.EncodeToString([]byte(key)), 10*time.Millisecond))
		require.NoError(t, err)
	}
	b.Trip("usual", 0)
	eventually(t, func() bool { return b.Hints().Waiting == 0 })
	time.Sleep(20 * time.Millisecond)
	release()
	a.becomes(t, "db", atomicbreaker.HalfOpen)
	a.becomes(t, "usual", atomicbreaker.Open)
	require.Equal(t, atomicbreaker.Closed, a.State("other"))
}

// A command that waits for the engine when the replica begins is not applied again when it
// is met, as no other command for its key was.
func TestOwnCommandWaitsForEngine(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	js := server.JetStream()
	server.Kill(0)
	a := launch(t, js, "a")
	a.Reset("db")
	a.fail("db", 4)
	require.Equal(t, atomicbreaker.Open, a.State("db"))
	server.Restart(0)
	a.hears(t, 2)
	require.Equal(t, atomicbreaker.Open, a.State("db"))
	require.Zero(t, a.Hints().Applied)
}

// A message that the client takes for a status of the server, and drops, is met
// nevertheless, and keeps none from being met.
func TestForeignStatus(t *testing.T) {
	t.Parallel()
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "hints.x", Header: nats.Header{"Status": {"409"}}})
	require.NoError(t, err)
	a.ForceOpen("db")
	b := start(t, js, "b")
	b.becomes(t, "db", atomicbreaker.ForcedOpen)
	require.ErrorContains(t, b.errors(), "foreign message on hints.x")
	b.ForceOpen("next")
	a.becomes(t, "next", atomicbreaker.ForcedOpen)
	b.Reset("next")
	a.becomes(t, "next", atomicbreaker.Closed)
}

// A consumer that an operator has deleted is replaced.
func TestConsumerDeleted(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	for range 2 {
		names := stream.ConsumerNames(t.Context())
		for name := range names.Name() {
			require.NoError(t, stream.DeleteConsumer(t.Context(), name))
		}
		a.ForceOpen("db")
		b.becomes(t, "db", atomicbreaker.ForcedOpen)
		a.Reset("db")
		b.becomes(t, "db", atomicbreaker.Closed)
	}
}

// The servers lose their leader, and all start again: hints flow as soon as there is one.
func TestLeaderLost(t *testing.T) {
	t.Parallel()
	natstest.NeedsLong(t, "elections take up to 20 seconds")
	server := natstest.Start(t, 3)
	a, b := start(t, server.JetStream(), "a", threefold), start(t, server.JetStream(), "b", threefold)
	a.ForceOpen("one")
	b.becomes(t, "one", atomicbreaker.ForcedOpen)
	server.Kill(server.StreamLeader("hints"))
	began := time.Now()
	a.ForceOpen("two")
	b.becomes(t, "two", atomicbreaker.ForcedOpen)
	t.Log("heard after", time.Since(began))
	server.RestartAll()
	began = time.Now()
	b.Reset("one")
	a.becomes(t, "one", atomicbreaker.Closed)
	t.Log("heard after", time.Since(began))
	require.Equal(t, atomicbreaker.ForcedOpen, b.State("two"))
}

func threefold(c *breaker.Config[string]) { c.StreamReplicas = 3 }

// A stream with other settings is not used, and reported; it is used as soon as it is right.
func TestForeignStream(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	for name, c := range map[string]jetstream.StreamConfig{
		"MaxMsgsPerSubject is -1, must be 1": {Subjects: []string{"hints.>"}, AllowMsgTTL: true},
		"AllowMsgTTL is off":                 {Subjects: []string{"hints.>"}, MaxMsgsPerSubject: 1},
		`subjects are ["other"]`:             {Subjects: []string{"other"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true},
		"DiscardNewPerSubject is on":         {Subjects: []string{"hints.>"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true},
		"retention is Interest":              {Subjects: []string{"hints.>"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true, Retention: jetstream.InterestPolicy},
		"MaxAge is 1h0m0s":                   {Subjects: []string{"hints.>"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true, MaxAge: time.Hour},
		"MaxMsgs is 100":                     {Subjects: []string{"hints.>"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true, MaxMsgs: 100},
	} {
		t.Run(name, func(t *testing.T) {
			c.Name = "hints"
			eventually(t, func() bool { // a server removes the directory of the last stream's kind meanwhile
				_, err := js.CreateStream(t.Context(), c)
				return err == nil
			})
			a := launch(t, js, "a")
			eventually(t, func() bool { err := a.errors(); return err != nil && strings.Contains(err.Error(), name) })
			a.fail("db", 4)
			require.Equal(t, atomicbreaker.Open, a.State("db"))
			require.NoError(t, js.DeleteStream(t.Context(), "hints"))
			b := start(t, js, "b")
			b.becomes(t, "db", atomicbreaker.Open)
			a.Close()
			b.Close()
			require.NoError(t, js.DeleteStream(t.Context(), "hints"))
		})
	}
}

// A hint that is too large for the stream is dropped, and keeps no others waiting.
func TestHintTooLarge(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	c := stream.CachedInfo().Config
	c.MaxMsgSize = 500
	_, err = js.UpdateStream(t.Context(), c)
	require.NoError(t, err)
	a.ForceOpen(strings.Repeat("x", 1000))
	a.ForceOpen("db")
	b.becomes(t, "db", atomicbreaker.ForcedOpen)
	eventually(t, func() bool { h := a.Hints(); return h.Dropped == 1 && h.Published == 1 && h.Waiting == 0 })
	require.ErrorIs(t, a.errors(), jetstream.ErrStreamMessageExceedsMaximum)
}

// Messages that are none of this package are reported and skipped.
func TestForeignMessages(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	for subject, payload := range map[string]string{
		"hints.s.kZGI.b":   "no JSON",
		"hints.c.kZGI":     `{"kind":"explode","key":"ZGI="}`,
		"hints.c.kZGIx":    `{"kind":"forceOpen","key":"ZGI="}`,
		"hints.else":       `{"kind":"forceOpen","key":"ZGI=","replica":"b"}`,
		"hints.s.kZGI.b.c": `{"kind":"tripped","key":"ZGI=","replica":"c"}`,
	} {
		_, err := js.Publish(t.Context(), subject, []byte(payload))
		require.NoError(t, err)
	}
	a.hears(t, 5)
	require.Equal(t, atomicbreaker.Closed, a.State("db"))
	eventually(t, func() bool {
		err := a.errors()
		return err != nil && strings.Count(err.Error(), "foreign message on hints.") == 5
	})
	b := start(t, js, "b")
	b.ForceOpen("db")
	a.becomes(t, "db", atomicbreaker.ForcedOpen)
}

// Reports whose open time is odd open nothing for long, or nothing.
func TestForgedTimes(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	for i, d := range []time.Duration{-1, 0, 1 << 62} {
		payload := fmt.Sprintf(`{"kind":"tripped","key":"ZGI=","replica":"b","for":%d}`, d)
		_, err := js.Publish(t.Context(), "hints.s.kZGI.b", []byte(payload))
		require.NoError(t, err)
		a.hears(t, int64(i+1))
		require.LessOrEqual(t, a.Snapshot("db").RetryAfter, 30*time.Second)
	}
	a.becomes(t, "db", atomicbreaker.Open)
}

// A function that ends its goroutine ends no exchange of hints.
func TestFunctionsThatExit(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	var errs, events atomic.Int64
	a := start(t, js, "a", func(c *breaker.Config[string]) {
		c.OnError = func(error) { errs.Add(1); runtime.Goexit() }
		c.Group.OnStateChange = func(string, atomicbreaker.Event) { events.Add(1); runtime.Goexit() }
	})
	b := start(t, js, "b")
	_, err := js.Publish(t.Context(), "hints.else", nil)
	require.NoError(t, err)
	b.ForceOpen("one")
	a.becomes(t, "one", atomicbreaker.ForcedOpen)
	b.Disable("two")
	a.becomes(t, "two", atomicbreaker.Disabled)
	require.Positive(t, errs.Load())
	eventually(t, func() bool { return events.Load() == 2 })
	done := make(chan struct{})
	go func() { defer close(done); a.ForceOpen("three") }() // which exits, too
	<-done
	b.becomes(t, "three", atomicbreaker.ForcedOpen)
}

// One that is told again and again that the engine is away does not keep a processor busy.
func TestErrorsThatExit(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	var errs atomic.Int64
	a := start(t, server.JetStream(), "a", func(c *breaker.Config[string]) {
		c.OnError = func(err error) {
			errs.Add(1)
			runtime.Goexit()
		}
	})
	server.Kill(0)
	a.Disable("db")
	eventually(t, func() bool { return errs.Load() > 1 })
	before, began := errs.Load(), time.Now()
	time.Sleep(200 * time.Millisecond)
	require.Less(t, errs.Load()-before, 50*time.Since(began).Milliseconds()/200)
}

// The last message of the stream may be gone when a replica comes.
func TestLastMessageIsGone(t *testing.T) {
	t.Parallel()
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	a.ForceOpen("kept")
	a.ForceOpen("gone")
	a.hears(t, 2)
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), 2))
	b := start(t, js, "b")
	require.Equal(t, atomicbreaker.ForcedOpen, b.State("kept"))
	require.NoError(t, stream.DeleteMsg(t.Context(), 1))
	start(t, js, "c")
}

// Wrong credentials are reported.
func TestNoPermission(t *testing.T) {
	server := natstest.Start(t, 1)
	nc, err := nats.Connect(server.URL())
	require.NoError(t, err)
	nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	a := launch(t, js, "a")
	eventually(t, func() bool {
		err := a.errors()
		return err != nil && strings.Contains(err.Error(), "connection closed")
	})
	a.fail("db", 4)
	require.Equal(t, atomicbreaker.Open, a.State("db"))
}

// A healthy call of a Group costs what it costs in an atomicbreaker.Group.
func TestHealthyCallAllocates(t *testing.T) {
	server := natstest.Start(t, 1)
	server.Kill(0)
	a := launch(t, server.JetStream(), "a")
	ctx, call := context.Background(), func(context.Context) error { return nil }
	require.Zero(t, testing.AllocsPerRun(100, func() { a.Do(ctx, "db", call) }))
}
