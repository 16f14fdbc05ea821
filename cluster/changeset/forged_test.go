package changeset_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// Checks C6.

// Messages that look like records, and do not fit what is there, are damage, and no Load
// takes them for what they say.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, test := range []struct{ stray, header, body string }{
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 1\ny\n"}, // the right one
		{"stray", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 1\ny\n"},
		{"", `{"line":6,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 1\ny\n"},
		{"", `{"line":4,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":2,"id":"a","len":1,"first":1,"last":1}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"b","len":1,"first":1,"last":1}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":0,"last":1}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":2,"last":1}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","first":1,"last":1}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":2,"first":1,"last":1,"part":2,"parts":2}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":2,"first":1,"last":1,"part":3,"parts":3}`, "1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 2\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 1\nyy"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1 -1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "-1 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "1"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, ""},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}`, "2 1\ny\n"},
		{"", `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":2,"first":1,"last":2}`, "2 1\ny\n1 1\ny\n"},
		{"", `{"line":5,"kind":"sealed","ordinal":1,"id":"a","len":2,"last":0}`, ""},
		{"", `{"line":5,"kind":"sealed","ordinal":1,"id":"a","len":1,"last":1}`, ""},
		{"", `{"line":5,"kind":"started","ordinal":3,"id":"c"}`, ""},
		{"", `{"line":5,"kind":"started","ordinal":1,"id":"c"}`, ""},
		{"", `{"line":5,"kind":"started","ordinal":0,"id":"c"}`, ""},
		{"", `{"line":5,"kind":"pruned","next":3}`, ""},
		{"stray", `{"line":5,"kind":"claimed"}`, ""},
		{"stray", `{"line":5,"kind":"claimed","previous":"x"}`, ""},
		{"", `{"line":5,"kind":"other","ordinal":1,"id":"a"}`, ""},
	} {
		name := stream(t, js, 1)
		s := open(t, js, name)
		require.NoError(t, s.Claim(background))
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
		require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}, {Seq: 1, Value: "removed"}}))
		at, err := js.Stream(background, name)
		require.NoError(t, err)
		last, err := at.GetMsg(background, 3)
		require.NoError(t, err)
		require.NoError(t, at.DeleteMsg(background, 4))

		subject := last.Subject
		if test.stray != "" {
			subject = name + "." + test.stray
		}
		header := test.header
		if test.header != "" { // the lines above count the removed message
			header = fmt.Sprintf(`{"line":%c`, test.header[8]-1) + test.header[9:]
		}
		_, err = js.PublishMsg(background, &nats.Msg{Subject: subject, Header: nats.Header{"Changeset-Record": {header}}, Data: []byte(test.body)})
		require.NoError(t, err)
		err = loadError(open(t, js, name).Load(within(t, 10*time.Second)))
		if test.stray == "" && test.body == "1 1\ny\n" && test.header == `{"line":5,"kind":"appended","ordinal":1,"id":"a","len":1,"first":1,"last":1}` {
			require.ErrorContains(t, err, "invalid character 'y'", "the value is no JSON, but all else is right")
			continue
		}
		require.ErrorIs(t, err, changeset.ErrCorrupt, "%s %s %q", test.stray, test.header, test.body)
	}
}

// Checks C6.

// A foreign message that a client takes for a status of the server is one nevertheless.
func TestForeignStatus(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, status := range []string{"404", "100", "409"} {
		name := stream(t, js, 1)
		s := open(t, js, name)
		require.NoError(t, s.Claim(background))
		_, err := js.PublishMsg(background, &nats.Msg{Subject: name + ".x", Header: nats.Header{"Status": {status}}})
		require.NoError(t, err)
		err = loadError(open(t, js, name).Load(within(t, 10*time.Second)))
		require.ErrorIs(t, err, changeset.ErrForeign)
		require.ErrorContains(t, err, "message 2")
		if !long() {
			break // each takes two seconds
		}
	}
}

// Checks C1, C3, C4.

// A call that is repeated with more entries, after its acknowledgement was lost, or while
// its message is under way, adds each entry once.
func TestRepeatedWithMore(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 3} {
		js := natstest.Start(t, replicas).JetStream()
		for _, how := range []fault{unsent, unacked, late} {
			f := &faulty{JetStream: js}
			name := stream(t, js, replicas)
			s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 200 * time.Millisecond})
			require.NoError(t, err)
			require.NoError(t, s.Claim(background))
			require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
			var cancel context.CancelFunc
			f.set(func(int, *nats.Msg) fault { cancel(); return how })
			want := []entry{{Seq: 0, Value: "x"}, {Seq: 1, Value: "y"}, {Seq: 2, Value: "z"}}
			for n := range 2 {
				var ctx context.Context
				ctx, cancel = context.WithCancel(background)
				require.ErrorIs(t, s.Append(ctx, "a", want[:n+1]), changeset.ErrUnknown)
				cancel()
			}
			f.set(nil)
			f.deliver()
			require.NoError(t, s.Append(background, "a", want))
			require.Equal(t, want, saved(t, open(t, js, name))[0].Entries)
			require.Equal(t, want, saved(t, s)[0].Entries)
		}
	}
}
