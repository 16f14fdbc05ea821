package changeset_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	js := single(t)
	for want, o := range map[string]changeset.Options[string]{
		`changeset: Options.Stream "": must not be empty`:                                {},
		`changeset: Options.MaxEntry -1: must not be negative`:                           {Stream: "S", MaxEntry: -1},
		`changeset: Options.Holder "\xff": must be UTF-8, at most 1024 bytes`:            {Stream: "S", Holder: "\xff"},
		`changeset: Options.AckWait -1ns: must not be negative`:                          {Stream: "S", AckWait: -1},
		`changeset: Open: changeset: stream cannot keep a trail: there is no stream "S"`: {Stream: "S"},
		`changeset: Open: nats: invalid stream name: "a.b" (stream "a.b")`:               {Stream: "a.b"},
	} {
		_, err := changeset.Open(within(t, 10*time.Second), js, o)
		require.EqualError(t, err, want)
		_, err = changeset.Open(within(t, 10*time.Second), js, o)
		require.Error(t, err)
	}
	require.PanicsWithValue(t, "changeset: Open called with a nil context", func() { changeset.Open[int](noContext, js, changeset.Options[int]{}) })
	require.PanicsWithValue(t, "changeset: Open called with a nil JetStream", func() { changeset.Open[int](background, nil, changeset.Options[int]{}) })
	require.PanicsWithValue(t, "changeset: Open called with a nil context", func() { changeset.Open[int](noContext, js, changeset.Options[int]{}) })
	require.PanicsWithValue(t, "changeset: Open called with a nil JetStream", func() { changeset.Open[int](background, nil, changeset.Options[int]{}) })
}

// Each setting that would lose or refuse records is an error that names it, unless the
// options allow it.
func TestStreamSettings(t *testing.T) {
	t.Parallel()
	js := single(t)
	type config = jetstream.StreamConfig
	for i, test := range []struct {
		name   string
		change func(*config)
		want   string // part of the error
	}{
		{"none", func(*config) {}, ""},
		{"limits", func(c *config) { c.MaxBytes, c.MaxMsgs, c.MaxMsgSize = 1<<20, 1000, 4096 }, ""},
		{"direct", func(c *config) { c.AllowDirect = true }, ""},
		{"compressed", func(c *config) { c.Compression = jetstream.S2Compression }, ""},
		{"no purge", func(c *config) { c.DenyPurge, c.DenyDelete = true, true }, ""},
		{"consumers", func(c *config) {
			c.ConsumerLimits = jetstream.StreamConsumerLimits{InactiveThreshold: 30 * time.Second, MaxAckPending: 1}
		}, ""},
		{"short consumers", func(c *config) { c.ConsumerLimits.InactiveThreshold = 29 * time.Second }, "InactiveThreshold 29s"},
		{"age", func(c *config) { c.MaxAge = time.Hour }, "MaxAge 1h0m0s"},
		{"old messages", func(c *config) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 100 }, "MaxMsgs 100"},
		{"old bytes", func(c *config) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 }, "MaxBytes 1048576"},
		{"old of a subject", func(c *config) { c.MaxMsgsPerSubject = 5 }, "MaxMsgsPerSubject 5"},
		{"memory", func(c *config) { c.Storage = jetstream.MemoryStorage }, "storage Memory"},
		{"work queue", func(c *config) { c.Retention = jetstream.WorkQueuePolicy }, "retention WorkQueue"},
		{"interest", func(c *config) { c.Retention = jetstream.InterestPolicy }, "retention Interest"},
		{"no acknowledgements", func(c *config) { c.NoAck = true }, "NoAck"},
		{"rollup", func(c *config) { c.AllowRollup = true }, "AllowRollup"},
		{"asynchronous", func(c *config) { c.PersistMode = jetstream.AsyncPersistMode }, "PersistMode"},
		{"two subjects", func(c *config) { c.Subjects = append(c.Subjects, "x.*") }, "must be one"},
		{"literal subject", func(c *config) { c.Subjects = []string{"x.literal"} }, "must be one"},
		{"wide subject", func(c *config) { c.Subjects = []string{"x.wide.>"} }, "must be one"},
		{"two wildcards", func(c *config) { c.Subjects = []string{"x.*.*"} }, "must be one"},
		{"transform", func(c *config) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Name + ".*", Destination: "y.{{wildcard(1)}}"}
		}, "transform"},
		{"mirror", func(c *config) { c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "X"} }, "must be one"},
		{"sources", func(c *config) { c.Sources = []*jetstream.StreamSource{{Name: "X"}} }, "sources"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := fmt.Sprint("CHECKED", i)
			c := changeset.StreamConfig(name, 1)
			test.change(&c)
			require.Eventually(t, func() bool { // a server removes the directory of the last stream's kind meanwhile
				_, err := js.CreateStream(background, c)
				return err == nil
			}, 20*time.Second, time.Millisecond)
			defer js.DeleteStream(background, name) // of subjects that others use
			_, err := changeset.Open(background, js, changeset.Options[string]{Stream: name})
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, changeset.ErrStream)
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// A stream that is full refuses records, and loses none. When it has room, the tracker's
// next call continues.
func TestFullStream(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	c := changeset.StreamConfig(name, 1)
	c.MaxMsgs = 3
	_, err := js.UpdateStream(background, c)
	require.NoError(t, err)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
	err = s.Append(background, "a", []entry{{Seq: 1, Value: "y"}})
	require.ErrorContains(t, err, "maximum messages exceeded")
	require.NotErrorIs(t, err, changeset.ErrUnknown)
	c.MaxMsgs = -1
	_, err = js.UpdateStream(background, c)
	require.NoError(t, err)
	require.NoError(t, s.Append(background, "a", []entry{{Seq: 1, Value: "y"}, {Seq: 2, Value: "z"}}))
	require.Len(t, saved(t, s)[0].Entries, 3)
}

// A claim that was given up while there was no connection does not take the trail when
// there is one again.
func TestClaimGivenUp(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1)
	name := stream(t, c.JetStream(), 1)
	owner := open(t, c.JetStream(), name)
	require.NoError(t, owner.Claim(background))
	require.NoError(t, owner.Start(background, header{ID: "a", Ordinal: 1}))
	js := c.JetStream()
	f := &faulty{JetStream: js}
	other, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 50 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	f.set(func(n int, _ *nats.Msg) fault {
		if n == 0 {
			c.Kill(0)
			time.AfterFunc(250*time.Millisecond, cancel)
			return unsent
		}
		return none
	})
	require.ErrorIs(t, other.Claim(ctx), changeset.ErrUnknown)
	require.False(t, js.Conn().IsConnected())
	c.Restart(0)
	require.Eventually(t, js.Conn().IsConnected, 20*time.Second, time.Millisecond)
	require.NoError(t, js.Conn().Flush())
	require.NoError(t, owner.Append(within(t, 20*time.Second), "a", []entry{{Seq: 0, Value: "x"}}))
}

// Calls end with their context when no server answers, and say so.
func TestServersAway(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1)
	js := c.JetStream()
	name := stream(t, js, 1)
	o := changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond}
	s, err := changeset.Open(background, js, o)
	require.NoError(t, err)
	require.NoError(t, s.Claim(within(t, 20*time.Second)))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	next, err := changeset.Open(background, js, o)
	require.NoError(t, err)
	c.Kill(0)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	for _, err := range []error{
		s.Append(short(), "a", []entry{{Seq: 0, Value: "x"}}),
		loadError(s.Load(short())),
		func() error {
			_, err := changeset.Open(short(), js, changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond})
			return err
		}(),
	} {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.ErrorIs(t, next.Claim(short()), changeset.ErrUnknown)
	c.Restart(0)
	require.NoError(t, next.Claim(within(t, 20*time.Second)))
	require.NoError(t, next.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
	require.Len(t, saved(t, next)[0].Entries, 1)
}

func loadError[V any](seq func(func(V, error) bool)) (failed error) {
	for _, err := range seq {
		failed = err
	}
	return failed
}

// A user who may not publish gets an error that says so.
func TestPermissions(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 1, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "p"},
			{Username: "reader", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"$JS.API.>"}}}},
			{Username: "blind", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.*"}}}},
		}
	})
	js := c.JetStream(nats.UserInfo("all", "p"))
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))

	denied := c.JetStream(nats.UserInfo("reader", "p"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	r, err := changeset.Open(background, denied, changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond})
	require.NoError(t, err)
	require.Len(t, saved(t, r), 1)
	require.ErrorIs(t, inTime(100*time.Millisecond, nats.ErrPermissionViolation, r.Claim), nats.ErrPermissionViolation)
	blind := openReader(t, c.JetStream(nats.UserInfo("blind", "p"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})), name)
	err = inTime(100*time.Millisecond, nats.ErrPermissionViolation, func(ctx context.Context) error { return loadError(blind.Load(ctx)) })
	require.ErrorIs(t, err, nats.ErrPermissionViolation)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = nats.Connect(c.URL(), nats.UserInfo("all", "wrong"))
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

// Values that cannot be kept are errors of their own.
func TestValidate(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s, err := changeset.Open(background, js, changeset.Options[any]{Stream: name, MaxEntry: 10})
	require.NoError(t, err)
	require.NoError(t, s.Validate("short"))
	require.ErrorIs(t, s.Validate("too long for it"), changeset.ErrValue)
	require.ErrorIs(t, s.Validate(func() {}), changeset.ErrValue)

	type refuses struct{ T time.Duration }
	odd, err := changeset.Open(background, js, changeset.Options[oddly]{Stream: name})
	require.NoError(t, err)
	require.ErrorIs(t, odd.Validate(oddly{}), changeset.ErrValue)
	fine, err := changeset.Open(background, js, changeset.Options[refuses]{Stream: name})
	require.NoError(t, err)
	require.NoError(t, fine.Validate(refuses{1}))
}

// oddly is written as something that it cannot be read from.
type oddly struct{}

func (oddly) MarshalText() ([]byte, error) { return []byte("odd"), nil }
