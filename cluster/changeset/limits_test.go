package changeset_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

// Checks C5.

// An entry, and a batch, may be longer than a message can be.
func TestLongRecords(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	_, err = tracker.Start(background)
	require.NoError(t, err)
	long := strings.Repeat("x", int(js.Conn().MaxPayload())*5/2)
	_, err = tracker.Record(long)
	require.NoError(t, err)
	batch := make([]string, 3000)
	for i := range batch {
		batch[i] = long[:1000]
	}
	_, err = tracker.RecordBatch(batch)
	require.NoError(t, err)
	_, err = tracker.Record(strings.Repeat("x", 16<<20))
	require.ErrorIs(t, err, cowchangeset.ErrRefused)
	require.ErrorIs(t, err, changeset.ErrValue)
	entries := loaded(t, js, name)[0].Entries
	require.Len(t, entries, 1+len(batch))
	require.Equal(t, long, entries[0].Value)
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	require.Greater(t, at.CachedInfo().State.Msgs, uint64(2+3+3))
}

// Records of streams with long names fit into messages, however long the IDs are.
func TestLongNames(t *testing.T) {
	t.Parallel()
	js := single(t)
	c := changeset.StreamConfig(strings.Repeat("N", 200), 1)
	c.MaxMsgSize = 16 << 10
	_, err := js.CreateStream(background, c)
	require.NoError(t, err)
	s := open(t, js, c.Name)
	require.NoError(t, s.Claim(background))
	a, b := strings.Repeat("\x01", 1024), strings.Repeat("\u2028", 341)
	require.NoError(t, s.Start(background, header{ID: a, Ordinal: 1}))
	for n := range 40 { // around the length of a message
		require.NoError(t, s.Append(background, a, []entry{{Seq: uint64(n), Value: strings.Repeat("x", 8000+100*n)}}))
	}
	require.NoError(t, s.Seal(background, a, cowchangeset.Manifest{Len: 40, Last: 39}))
	require.NoError(t, s.Start(background, header{ID: b, Ordinal: 2, Previous: a}))
	all := saved(t, open(t, js, c.Name))
	require.Len(t, all, 2)
	require.Len(t, all[0].Entries, 40)
	require.Equal(t, b, all[1].ID)
	require.ErrorIs(t, s.Start(background, header{ID: strings.Repeat("x", 1025), Ordinal: 3, Previous: b}), changeset.ErrConflict)
	require.ErrorIs(t, s.Start(background, header{ID: "\xff", Ordinal: 3, Previous: b}), changeset.ErrConflict)
}

// Checks C5.

// A stream whose messages have become shorter refuses one call, and gets more of them with the next, unless they are so
// short that no record fits.
func TestShorterMessages(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	long := strings.Repeat("x", 20000)
	var want []entry
	for i, size := range []int32{-1, 10000, 2000, 900} {
		c := changeset.StreamConfig(name, 1)
		c.MaxMsgSize = size
		_, err := js.UpdateStream(background, c)
		require.NoError(t, err)
		want = append(want, entry{Seq: uint64(i), Value: long})
		if err := s.Append(background, "a", want); i > 0 {
			require.ErrorIs(t, err, jetstream.ErrStreamMessageExceedsMaximum)
		}
		require.NoError(t, s.Append(background, "a", want))
		require.Equal(t, want, saved(t, s)[0].Entries)
	}
	c := changeset.StreamConfig(name, 1)
	c.MaxMsgSize = 200
	_, err := js.UpdateStream(background, c)
	require.NoError(t, err)
	require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 9, Value: long}}), jetstream.ErrStreamMessageExceedsMaximum)
	require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 9, Value: long}}), changeset.ErrStream)
	c.MaxMsgSize = -1
	_, err = js.UpdateStream(background, c)
	require.NoError(t, err)
	want = append(want, entry{Seq: 9, Value: long})
	require.ErrorIs(t, s.Append(background, "a", want), changeset.ErrStream)
	require.NoError(t, s.Append(background, "a", want))
	require.Equal(t, want, saved(t, open(t, js, name))[0].Entries)
}

// Messages that are longer than the servers let clients send by now are read.
func TestLowerMaxPayload(t *testing.T) {
	t.Parallel()
	size, payload := 10<<20, int32(12<<20)
	c := natstest.Start(t, 1, func(o *server.Options) { o.MaxPayload = payload })
	js := c.JetStream()
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	want := []entry{{Seq: 0, Value: strings.Repeat("x", size)}, {Seq: 1, Value: "y"}}
	require.NoError(t, s.Append(background, "a", want[:1]))
	c.Kill(0)
	payload = 1 << 20
	c.Restart(0)
	require.NoError(t, s.Append(within(t, 20*time.Second), "a", want))
	require.Equal(t, want, saved(t, open(t, c.JetStream(), name))[0].Entries)
}

// The permissions that the package's documentation lists are enough.
func TestLeastPermissions(t *testing.T) {
	t.Parallel()
	api := func(name string) []string {
		return []string{
			"$JS.API.STREAM.INFO." + name, "$JS.API.STREAM.MSG.GET." + name,
			"$JS.API.CONSUMER.CREATE." + name + ".>", "$JS.API.CONSUMER.MSG.NEXT." + name + ".*", "$JS.API.CONSUMER.DELETE." + name + ".*",
		}
	}
	inbox := &server.SubjectPermission{Allow: []string{"_INBOX.>"}}
	c := natstest.Start(t, 1, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "p"},
			{Username: "writer", Password: "p", Permissions: &server.Permissions{Subscribe: inbox,
				Publish: &server.SubjectPermission{Allow: append(api("LEAST"), "LEAST.*", "$JS.API.STREAM.PURGE.LEAST")}}},
			{Username: "reader", Password: "p", Permissions: &server.Permissions{Subscribe: inbox,
				Publish: &server.SubjectPermission{Allow: api("LEAST")}}},
		}
	})
	_, err := c.JetStream(nats.UserInfo("all", "p")).CreateStream(background, changeset.StreamConfig("LEAST", 1))
	require.NoError(t, err)
	denied := make(chan error, 100)
	note := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })
	writing := c.JetStream(nats.UserInfo("writer", "p"), note)
	s := open(t, writing, "LEAST")
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	life(t, tracker, 20)
	tracker.Prune(2)
	require.NoError(t, tracker.Flush(background))
	reading := c.JetStream(nats.UserInfo("reader", "p"), note)
	r := openReader(t, reading, "LEAST")
	follow(t, r, changeset.Position{}, 5)
	require.NoError(t, loadError(r.Load(background)))
	require.Len(t, saved(t, s), 2)
	require.NoError(t, writing.Conn().Flush())
	require.NoError(t, reading.Conn().Flush())
	require.Empty(t, denied)
}

// bad is a codec that panics, or ends the goroutine.
type bad struct {
	changeset.JSON[string]
}

func (b bad) Encode(s string) ([]byte, error) {
	switch s {
	case "panic":
		panic("on purpose")
	case "exit":
		runtime.Goexit()
	}
	return b.JSON.Encode(s)
}

// Checks C8.

// A codec that panics or ends its goroutine leaves the Store as it was.
func TestBadCodec(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s, err := changeset.Open(background, js, changeset.Options[string]{Stream: name, Codec: bad{}})
	require.NoError(t, err)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	require.Panics(t, func() { s.Append(background, "a", []entry{{Seq: 0, Value: "panic"}}) })
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		s.Append(background, "a", []entry{{Seq: 0, Value: "exit"}})
	}()
	<-exited
	for range s.Load(background) {
		func() {
			defer func() { recover() }()
			for range s.Load(background) {
				panic("a loop's body")
			}
		}()
	}
	require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
	require.Equal(t, []entry{{Seq: 0, Value: "x"}}, saved(t, s)[0].Entries)
}

// Numbers in an any come back as they were, also those that a float64 has not.
func TestNumbers(t *testing.T) {
	t.Parallel()
	var codec changeset.JSON[any]
	for _, n := range []any{int64(1<<53 + 1), uint64(1<<64 - 1), int64(-1 << 63), 0.1} {
		encoded, err := codec.Encode(map[string]any{"id": n})
		require.NoError(t, err)
		decoded, err := codec.Decode(encoded)
		require.NoError(t, err)
		again, err := codec.Encode(decoded)
		require.NoError(t, err)
		require.Equal(t, string(encoded), string(again))
	}
	for _, bad := range []string{"", "{", "1 2", "1,", "nul"} {
		_, err := codec.Decode([]byte(bad))
		require.Error(t, err, bad)
	}
}
