package changeset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

func openReader(t testing.TB, js jetstream.JetStream, stream string) *changeset.Store[string] {
	t.Helper()
	r, err := changeset.Open(background, js, changeset.Options[string]{Stream: stream})
	require.NoError(t, err)
	return r
}

// follow returns the next n events behind a position.
func follow(t testing.TB, r *changeset.Store[string], after changeset.Position, n int) (events []changeset.Event[string]) {
	t.Helper()
	if n == 0 {
		return nil
	}
	for e, err := range r.Follow(within(t, 20*time.Second), after) {
		require.NoError(t, err)
		if events = append(events, e); len(events) == n {
			break
		}
	}
	return events
}

// Follow yields what was written, from any position on, records in parts as one.
func TestFollow(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := smallStream(t, js, 1)
	r := openReader(t, js, name)
	s, err := changeset.Open(background, js, changeset.Options[string]{Stream: name, Holder: "me"})
	require.NoError(t, err)
	require.NoError(t, s.Claim(background))
	calls, want := script(s)
	for _, call := range calls {
		require.NoError(t, call(background))
	}
	all := follow(t, r, changeset.Position{}, 10)
	var kinds []string
	for _, e := range all {
		kinds = append(kinds, string(e.Kind))
	}
	require.Equal(t, strings.Fields("claimed started appended appended sealed applied started started appended aborted"), kinds)
	require.Equal(t, "me", all[0].Holder)
	require.Equal(t, want[0].Entries, append(all[2].Entries, all[3].Entries...))
	require.Equal(t, cowchangeset.Manifest{Len: 3, Last: 5}, all[4].Manifest)
	require.Equal(t, uint64(5), all[5].Next)
	require.Equal(t, "c", all[7].ChangesetID)
	require.Equal(t, "a", all[7].Previous)
	require.Equal(t, "because", all[9].Reason)
	require.Equal(t, uint64(1), all[9].Ordinal)

	for i, e := range all {
		text, err := json.Marshal(e.Position)
		require.NoError(t, err)
		var at changeset.Position
		require.NoError(t, json.Unmarshal(text, &at))
		require.Equal(t, all[i+1:], append([]changeset.Event[string]{}, follow(t, r, at, len(all)-i-1)...))
	}
	var got []cowchangeset.Saved[string]
	for c, err := range r.Load(background) {
		require.NoError(t, err)
		got = append(got, c)
	}
	require.Equal(t, want, got)

	coming := make(chan changeset.Event[string], 10)
	ctx, cancel := context.WithCancel(background)
	ended := make(chan error)
	go func() {
		for e, err := range r.Follow(ctx, all[9].Position) {
			if err != nil {
				ended <- err
				return
			}
			coming <- e
		}
	}()
	other := open(t, js, name)
	require.NoError(t, other.Claim(background))
	require.Equal(t, changeset.Claimed, (<-coming).Kind)
	require.NoError(t, other.Append(background, "c", []entry{{Seq: 9, Value: "nine"}}))
	require.Equal(t, []entry{{Seq: 9, Value: "nine"}}, (<-coming).Entries)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	ctx, cancel = context.WithCancel(background)
	defer cancel()
	n := 0
	for _, err := range r.Follow(ctx, changeset.Position{}) {
		if n++; err == nil {
			cancel()
		}
	}
	require.Equal(t, 2, n, "an event, and the cause of the context's end")
	require.Eventually(t, func() bool {
		at, err := js.Stream(background, name)
		return err == nil && at.CachedInfo().State.Consumers == 0
	}, 20*time.Second, time.Millisecond, "a consumer is left")
}

// Checks C6.

// A message that is lost on the way from a consumer is read again.
func TestReadLostMessages(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := smallStream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	calls, want := script(s)
	for _, call := range calls {
		require.NoError(t, call(background))
	}
	all := follow(t, openReader(t, js, name), changeset.Position{}, 10)
	for lost := uint64(1); lost < all[9].Position.Sequence; lost++ { // the last one would show after some seconds
		times := 0
		f := &faulty{JetStream: js, skip: func(seq uint64) bool {
			if seq != lost || times > 0 {
				return false
			}
			times++
			return true
		}}
		require.Equal(t, want, saved(t, open(t, f, name)))
		require.Equal(t, 1, times)
	}
}

// Follow says what has become of messages that it can no longer read.
func TestFollowErrors(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	r := openReader(t, js, name)
	s := open(t, js, name)
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	apply := func(n int) {
		for range n {
			c, err := tracker.Start(background)
			require.NoError(t, err)
			_, err = tracker.Record("x")
			require.NoError(t, err)
			require.NoError(t, c.Apply(background, func(context.Context, cowchangeset.Final[string]) error { return nil }))
		}
	}
	apply(3)
	early := follow(t, r, changeset.Position{}, 3)
	tracker.Prune(1)
	require.NoError(t, tracker.Flush(background))
	require.ErrorIs(t, loadError(r.Follow(within(t, 10*time.Second), early[2].Position)), changeset.ErrPruned)
	kept := follow(t, r, changeset.Position{}, 5)
	require.Equal(t, changeset.Started, kept[0].Kind)
	require.Equal(t, uint64(3), kept[0].Ordinal)
	require.Equal(t, changeset.Event[string]{Position: kept[4].Position, Kind: changeset.Pruned, Before: 3}, kept[4])

	at, err := js.Stream(background, name)
	require.NoError(t, err)
	require.NoError(t, at.DeleteMsg(background, kept[2].Position.Sequence))
	require.ErrorIs(t, loadError(r.Follow(within(t, 10*time.Second), kept[1].Position)), changeset.ErrCorrupt)
	odd := kept[2].Position
	odd.Token = "odd"
	require.ErrorIs(t, loadError(r.Follow(within(t, 10*time.Second), odd)), changeset.ErrRewound)

	numbers, err := changeset.Open(background, js, changeset.Options[int]{Stream: name})
	require.NoError(t, err)
	var undecodable *changeset.DecodeError
	require.True(t, errors.As(loadError(numbers.Follow(within(t, 10*time.Second), changeset.Position{})), &undecodable))
	require.Equal(t, uint64(0), undecodable.Seq)

	require.PanicsWithValue(t, "changeset: Store.Follow called with a nil context", func() { r.Follow(noContext, changeset.Position{}) })
	require.PanicsWithValue(t, "changeset: Store.Load called with a nil context", func() { r.Load(noContext) })
}

// A follower of a stream that was restored from a backup, and continued as far as it had
// come, is told so, also if a claim is all that follows.
func TestFollowContinued(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	for i := range uint64(3) {
		require.NoError(t, s.Append(background, "a", []entry{{Seq: i, Value: "lost"}}))
	}
	r := openReader(t, js, name)
	all := follow(t, r, changeset.Position{}, 5)
	restore(t, js, name, 2)
	other := open(t, js, name)
	require.NoError(t, other.Claim(background))
	for i := range uint64(2) {
		require.NoError(t, other.Append(background, "a", []entry{{Seq: 10 + i, Value: "other"}}))
	}
	require.NoError(t, open(t, js, name).Claim(background))
	require.ErrorIs(t, loadError(r.Follow(within(t, 10*time.Second), all[4].Position)), changeset.ErrRewound)
	require.Len(t, follow(t, r, all[1].Position, 4), 4, "which was in the backup")
}

// A stream that ends before the position of a follower was restored from a backup.
func TestFollowRestored(t *testing.T) {
	t.Parallel()
	natstest.NeedsLong(t, "a rewound stream is believed after 12 seconds")
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	calls, _ := script(s)
	for _, call := range calls {
		require.NoError(t, call(background))
	}
	r := openReader(t, js, name)
	all := follow(t, r, changeset.Position{}, 10)
	restore(t, js, name, 4)
	require.ErrorIs(t, loadError(r.Follow(within(t, time.Minute), all[9].Position)), changeset.ErrRewound)
	require.ErrorIs(t, s.Seal(within(t, time.Minute), "c", cowchangeset.Manifest{Len: 1}), changeset.ErrRewound)
}

// End is the position of the last event, whatever lies behind it.
func TestEnd(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := smallStream(t, js, 1)
	r := openReader(t, js, name)
	end := func() changeset.Position {
		at, err := r.End(within(t, 10*time.Second))
		require.NoError(t, err)
		return at
	}
	require.Zero(t, end())
	publish := func(subject, record string) {
		t.Helper()
		m := &nats.Msg{Subject: name + "." + subject, Header: nats.Header{"Changeset-Record": {record}}, Data: []byte("x")}
		_, err := js.PublishMsg(background, m)
		require.NoError(t, err)
	}
	publish("wish", `{"kind":"wish"}`)
	require.Zero(t, end())
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	calls, _ := script(s)
	for i, call := range calls {
		require.NoError(t, call(background))
		require.Equal(t, follow(t, r, changeset.Position{}, i+2)[i+1].Position, end())
	}
	last := end()
	publish("wish", `{"kind":"wish"}`)
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	require.NoError(t, at.DeleteMsg(background, last.Sequence+1))
	publish(last.Token, fmt.Sprintf(`{"line":%d,"kind":"aborted","ordinal":1,"id":"a","part":1,"parts":3}`, last.Line+1))
	publish(last.Token, fmt.Sprintf(`{"line":%d,"kind":"aborted","ordinal":1,"id":"a","part":2,"parts":3}`, last.Line+2))
	require.Equal(t, last, end())
	publish(last.Token, fmt.Sprintf(`{"line":%d,"kind":"aborted","ordinal":1,"id":"a","part":3,"parts":3}`, last.Line+3))
	require.Equal(t, last.Sequence+4, end().Sequence)

	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err = r.End(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, changeset.ErrUnknown)
	require.PanicsWithValue(t, "changeset: Store.End called with a nil context", func() { r.End(noContext) })
}

// End passes over a record with many parts that is not complete, although it gets each.
func TestEndBeforeParts(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	r, err := changeset.Open(background, js, changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond})
	require.NoError(t, err)
	last, err := r.End(background)
	require.NoError(t, err)
	const parts = 2000
	for i := range parts {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: name + "." + last.Token, Header: nats.Header{"Changeset-Record": {
			fmt.Sprintf(`{"line":%d,"kind":"aborted","ordinal":1,"id":"a","part":%d,"parts":%d}`, i+2, i+1, parts+1)}}})
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	end, err := r.End(within(t, 20*time.Second))
	require.NoError(t, err)
	require.Equal(t, last, end)
}
