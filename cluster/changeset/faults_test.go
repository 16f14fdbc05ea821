package changeset_test

import (
	"context"
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

// saved returns what Load yields. A minute of a storm leaves 700,000 entries, which takes a
// second or three on two cores, and ten times as long if others have them.
func saved(t testing.TB, s cowchangeset.Loader[string]) (all []cowchangeset.Saved[string]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, 2*time.Minute)
	defer cancel()
	for c, err := range s.Load(ctx) {
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

// script is the calls of a short life, and what they leave.
func script(s *changeset.Store[string]) ([]func(context.Context) error, []cowchangeset.Saved[string]) {
	long := strings.Repeat("long", 3000)
	calls := []func(context.Context) error{
		func(ctx context.Context) error { return s.Start(ctx, header{ID: "a", Ordinal: 1}) },
		func(ctx context.Context) error { return s.Append(ctx, "a", []entry{{Seq: 1, Value: "x"}}) },
		func(ctx context.Context) error {
			return s.Append(ctx, "a", []entry{{Seq: 1, Value: "x"}, {Seq: 4, Value: long}, {Seq: 5, Value: "y"}})
		},
		func(ctx context.Context) error {
			return s.Seal(ctx, "a", cowchangeset.Manifest{Len: 3, Last: 5})
		},
		func(ctx context.Context) error { return s.Applied(ctx, "a", 5) },
		func(ctx context.Context) error { return s.Start(ctx, header{ID: "b", Ordinal: 2, Previous: "a"}) },
		func(ctx context.Context) error { return s.Start(ctx, header{ID: "c", Ordinal: 2, Previous: "a"}) },
		func(ctx context.Context) error { return s.Append(ctx, "c", []entry{{Seq: 0, Value: ""}}) },
		func(ctx context.Context) error { return s.Abort(ctx, "a", "because") },
	}
	left := []cowchangeset.Saved[string]{
		{Header: header{ID: "a", Ordinal: 1}, Entries: []entry{{Seq: 1, Value: "x"}, {Seq: 4, Value: long}, {Seq: 5, Value: "y"}}, Sealed: true, Applied: 5, Aborted: true, Reason: "because"},
		{Header: header{ID: "c", Ordinal: 2, Previous: "a"}, Entries: []entry{{Seq: 0, Value: ""}}},
	}
	return calls, left
}

// smallStream makes a stream whose messages are so short that script needs several for
// one record.
func smallStream(t testing.TB, js jetstream.JetStream, replicas int) string {
	t.Helper()
	name := stream(t, js, replicas)
	config := changeset.StreamConfig(name, replicas)
	config.MaxMsgSize = 6000
	config.AllowDirect = replicas > 1 // so that replicas answer that may be behind
	_, err := js.UpdateStream(background, config)
	require.NoError(t, err)
	return name
}

// Checks C1, C3, C4.

// Whichever message, or acknowledgement, is lost or late, once or until the call's
// context ends: the calls that are repeated leave what they should, once.
func TestLostMessages(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint("replicas=", replicas), func(t *testing.T) {
			js := natstest.Start(t, replicas).JetStream()
			for _, how := range []fault{unsent, unacked, late} {
				for _, times := range []int{1, 3} { // attempts: one, or all of a call
					for n, more := 0, true; more; n++ {
						if replicas == 3 && !long() && n != 2*int(how)+times {
							more = n < 12
							continue
						}
						more = lostMessages(t, js, smallStream(t, js, replicas), how, n, times)
					}
				}
			}
		})
	}
}

func lostMessages(t *testing.T, js jetstream.JetStream, name string, how fault, n, times int) (reached bool) {
	wait := 8 * time.Millisecond
	if replicasOf(t, js, name) > 1 {
		wait = 80 * time.Millisecond
	}
	f := &faulty{JetStream: js}
	s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: wait})
	require.NoError(t, err)
	f.set(func(i int, _ *nats.Msg) fault {
		if i >= n && i < n+times {
			reached = true
			return how
		}
		return none
	})
	require.NoError(t, s.Claim(background))
	calls, want := script(s)
	for i, call := range calls {
		for tries := 0; ; tries++ {
			ctx, cancel := context.WithTimeout(background, wait*time.Duration(5+tries)/2)
			err := call(ctx)
			cancel()
			if err == nil {
				break
			}
			require.ErrorIs(t, err, context.DeadlineExceeded, "call %d", i)
			if times == 3 && how == late {
				f.deliver() // between this call and the next one
			}
		}
	}
	f.deliver()
	require.Equal(t, want, saved(t, s))
	other := open(t, js, name)
	require.NoError(t, other.Claim(background))
	require.Equal(t, want, saved(t, other))
	return reached
}

func replicasOf(t testing.TB, js jetstream.JetStream, name string) int {
	s, err := js.Stream(background, name)
	require.NoError(t, err)
	return s.CachedInfo().Config.Replicas
}

// Checks C2.

// A claim fences the calls of the Store before it, those under way too: a message that
// arrives after the claim is refused, and one that arrives before it is kept.
func TestFenced(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, before := range []bool{true, false} {
		f := &faulty{JetStream: js}
		name := stream(t, js, 1)
		one, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 10 * time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, one.Claim(background))
		require.NoError(t, one.Start(background, header{ID: "a", Ordinal: 1}))
		ctx, cancel := context.WithCancel(background)
		f.set(func(n int, _ *nats.Msg) fault {
			if n == 1 { // the second time
				cancel()
			}
			return late
		})
		require.ErrorIs(t, one.Append(ctx, "a", []entry{{Seq: 0, Value: "under way"}}), changeset.ErrUnknown)
		cancel()
		f.set(nil)
		if before {
			f.deliver()
		}
		two, err := changeset.Open(background, js, changeset.Options[string]{Stream: name, Holder: "two"})
		require.NoError(t, err)
		require.NoError(t, two.Claim(background))
		f.deliver()
		entries := saved(t, two)[0].Entries
		require.Equal(t, before, len(entries) == 1)

		if before { // and its success is found out
			require.NoError(t, one.Append(background, "a", []entry{{Seq: 0, Value: "under way"}}))
		}
		for range 2 {
			err = one.Append(background, "a", []entry{{Seq: 0, Value: "again"}, {Seq: 1, Value: "more"}})
			require.ErrorIs(t, err, changeset.ErrFenced)
			require.ErrorContains(t, err, `"two"`)
		}
		require.NoError(t, two.Append(background, "a", []entry{{Seq: 7, Value: "two's"}}))
		require.Len(t, saved(t, two)[0].Entries, len(entries)+1)

		again := open(t, js, name)
		require.NoError(t, again.Claim(background))
		require.NoError(t, again.Append(background, "a", []entry{{Seq: 8, Value: "one's"}}))
		require.ErrorIs(t, two.Append(background, "a", []entry{{Seq: 9, Value: "late"}}), changeset.ErrFenced)
	}
}

// A call whose message is stored, and whose acknowledgement is lost, succeeds also if
// another Store claims the trail before the call has found out; and fails with ErrFenced
// only if it has changed nothing.
func TestFencedUnderWay(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, how := range []fault{unacked, unsent} {
		name := stream(t, js, 1)
		f := &faulty{JetStream: js}
		one, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 100 * time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, one.Claim(background))
		require.NoError(t, one.Start(background, header{ID: "a", Ordinal: 1}))
		two := open(t, js, name)
		f.set(func(n int, _ *nats.Msg) fault {
			if n > 0 {
				return none
			}
			return how
		})
		appended := make(chan error)
		go func() { appended <- one.Append(background, "a", []entry{{Seq: 0, Value: "x"}}) }()
		at, err := js.Stream(background, name)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			info, err := at.Info(background)
			return err == nil && f.n > 0 && (how == unsent || info.State.LastSeq == 3)
		}, 20*time.Second, time.Millisecond)
		require.NoError(t, two.Claim(background))
		err = <-appended
		if entries := saved(t, two)[0].Entries; len(entries) > 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, changeset.ErrFenced)
		}
		require.ErrorIs(t, one.Append(background, "a", []entry{{Seq: 1, Value: "y"}}), changeset.ErrFenced)
	}
}

// Checks C5.

// A record whose last part never comes does not count, whoever writes next.
func TestUnfinishedParts(t *testing.T) {
	t.Parallel()
	js := single(t)
	value := strings.Repeat("part", 5000)
	for _, same := range []bool{true, false} {
		for lost := range 4 {
			name := smallStream(t, js, 1)
			f := &faulty{JetStream: js}
			s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 10 * time.Millisecond})
			require.NoError(t, err)
			require.NoError(t, s.Claim(background))
			require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
			ctx, cancel := context.WithCancel(background)
			f.set(func(n int, _ *nats.Msg) fault {
				if n > lost {
					cancel()
				}
				if n >= lost {
					return unsent
				}
				return none
			})
			require.ErrorIs(t, s.Append(ctx, "a", []entry{{Seq: 0, Value: value}}), changeset.ErrUnknown)
			cancel()
			f.set(nil)
			if !same {
				s = open(t, js, name)
				require.NoError(t, s.Claim(background))
			}
			require.Empty(t, saved(t, s)[0].Entries)
			want := []entry{{Seq: 0, Value: value}, {Seq: 1, Value: "more"}}
			require.NoError(t, s.Append(background, "a", want))
			require.NoError(t, s.Seal(background, "a", cowchangeset.Manifest{Len: 2, Last: 1}))
			require.Equal(t, want, saved(t, s)[0].Entries)
		}
	}
}

// Checks C6.

// Load has an error for a message that no Store has published, and for those that were
// removed. A foreign message that is removed costs nothing.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, text := range []string{"", "{}", `{"line":1}x`, `{"line":3,"part":2,"parts":1}`, `{"line":3,"parts":1}`} {
		name := stream(t, js, 1)
		s := open(t, js, name)
		require.NoError(t, s.Claim(background))
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		m := &nats.Msg{Subject: name + ".stray", Header: nats.Header{}, Data: []byte("stray")}
		if text != "" {
			m.Header.Set("Changeset-Record", text)
		}
		_, err := js.PublishMsg(background, m)
		require.NoError(t, err)

		append := func() error { return s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}) }
		require.ErrorIs(t, append(), changeset.ErrForeign)
		require.ErrorContains(t, append(), "message 3")
		other := open(t, js, name)
		require.ErrorIs(t, other.Claim(background), changeset.ErrForeign)
		for _, err := range other.Load(background) {
			require.ErrorIs(t, err, changeset.ErrForeign)
		}
		at, err := js.Stream(background, name)
		require.NoError(t, err)
		require.NoError(t, at.DeleteMsg(background, 3))
		require.Len(t, saved(t, other), 1, "without a claim, and with a removed message at the end")
		require.NoError(t, append())
		require.NoError(t, other.Claim(background))
		require.Len(t, saved(t, other)[0].Entries, 1)
	}
}

// A stream whose only message was foreign, and is removed, cannot be told from one whose
// trail was purged.
func TestForeignAlone(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	_, err := js.Publish(background, name+".stray", nil)
	require.NoError(t, err)
	s := open(t, js, name)
	require.ErrorIs(t, s.Claim(background), changeset.ErrForeign)
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	require.NoError(t, at.DeleteMsg(background, 1))
	require.ErrorIs(t, s.Claim(background), changeset.ErrCorrupt)
	restore(t, js, name, 0)
	require.NoError(t, s.Claim(background))
}

// Checks C6.

// A removed record is noticed, wherever it was.
func TestRemovedMessages(t *testing.T) {
	t.Parallel()
	js := single(t)
	for seq := range uint64(6) {
		name := stream(t, js, 1)
		s := open(t, js, name)
		require.NoError(t, s.Claim(background))
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		for i := range uint64(3) {
			require.NoError(t, s.Append(background, "a", []entry{{Seq: i, Value: "x"}}))
		}
		at, err := js.Stream(background, name)
		require.NoError(t, err)
		if seq == 0 {
			require.NoError(t, at.Purge(background))
		} else {
			require.NoError(t, at.DeleteMsg(background, seq))
		}
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		if seq == 5 {
			require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 3, Value: "x"}}), changeset.ErrCorrupt)
		}
		other := open(t, js, name)
		claimed := other.Claim(background)
		for _, err = range other.Load(ctx) {
		}
		cancel()
		switch seq {
		case 0:
			require.ErrorIs(t, claimed, changeset.ErrCorrupt)
			require.ErrorIs(t, err, changeset.ErrCorrupt)
		case 5: // the last one: nobody can know, but the writer
			require.NoError(t, claimed)
			require.NoError(t, err)
			require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 3, Value: "x"}}), changeset.ErrFenced)
		default:
			require.NoError(t, claimed)
			require.ErrorIs(t, err, changeset.ErrCorrupt)
		}
	}
}

// A writer whose stream is taken back to an earlier state, as from a backup, and then
// continued by another one up to the same length, does not write into it.
func TestRestoredStream(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s, err := changeset.Open(background, js, changeset.Options[string]{Stream: name, AckWait: 50 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	for i := range uint64(4) {
		require.NoError(t, s.Append(background, "a", []entry{{Seq: i, Value: "lost"}}))
	}
	restore(t, js, name, 3)

	append := func(want error) error {
		return inTime(100*time.Millisecond, want, func(ctx context.Context) error {
			return s.Append(ctx, "a", []entry{{Seq: 4, Value: "x"}})
		})
	}
	err = append(changeset.ErrRewound)
	require.ErrorIs(t, err, changeset.ErrRewound)
	require.ErrorIs(t, err, changeset.ErrUnknown)
	other := open(t, js, name)
	require.NoError(t, other.Claim(background))
	require.Len(t, saved(t, other)[0].Entries, 1)
	for i := range uint64(2) {
		require.NoError(t, other.Append(background, "a", []entry{{Seq: 10 + i, Value: "other"}}))
	}
	info, err := js.Stream(background, name)
	require.NoError(t, err)
	require.EqualValues(t, 6, info.CachedInfo().State.LastSeq, "as when s wrote last")
	require.ErrorIs(t, append(changeset.ErrFenced), changeset.ErrFenced)
	require.NoError(t, other.Append(background, "a", []entry{{Seq: 20, Value: "other"}}))
	require.ErrorIs(t, append(changeset.ErrFenced), changeset.ErrFenced)
	require.Len(t, saved(t, other)[0].Entries, 4)
}

// restore makes a stream anew with the first messages that it had.
func restore(t testing.TB, js jetstream.JetStream, name string, n uint64) {
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	var messages []*jetstream.RawStreamMsg
	for seq := range n {
		m, err := at.GetMsg(background, seq+1)
		require.NoError(t, err)
		messages = append(messages, m)
	}
	require.NoError(t, js.DeleteStream(background, name))
	require.Eventually(t, func() bool { // a server removes the directory of the last stream's kind meanwhile
		_, err := js.CreateStream(background, at.CachedInfo().Config)
		return err == nil
	}, 20*time.Second, time.Millisecond)
	for _, m := range messages {
		for _, h := range []string{jetstream.ExpectedLastSeqHeader, jetstream.ExpectedLastSubjSeqHeader} {
			m.Header.Del(h)
		}
		_, err := js.PublishMsg(background, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		require.NoError(t, err)
	}
}

// A stream that is gone, or has become one that keeps no trail, is an error at once.
func TestStreamGone(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s, err := changeset.Open(background, js, changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	fresh := open(t, js, name)
	require.NoError(t, js.DeleteStream(background, name))
	require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}), changeset.ErrStream)
	for _, err := range s.Load(background) {
		require.ErrorIs(t, err, changeset.ErrStream)
	}
	_, err = changeset.Open(background, js, changeset.Options[string]{Stream: name})
	require.ErrorIs(t, err, changeset.ErrStream)

	js.Conn().Close()
	err = s.Append(background, "a", []entry{{Seq: 0, Value: "x"}})
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	require.False(t, errors.Is(err, changeset.ErrUnknown))
	for _, err := range s.Load(background) {
		require.ErrorIs(t, err, nats.ErrConnectionClosed)
	}
	require.ErrorIs(t, fresh.Claim(background), nats.ErrConnectionClosed)
}

// A request that gets no answer is made again, in all calls. Their contexts have no end.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	f := &faulty{JetStream: js}
	lose := func(n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		require.LessOrEqual(t, f.hang, 0, "all were made")
		f.hang = n
	}
	lose(2)
	s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond})
	require.NoError(t, err)
	lose(2)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	unclaimed, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 20 * time.Millisecond})
	require.NoError(t, err)
	lose(2)
	for _, err := range unclaimed.Load(background) {
		require.NoError(t, err)
	}
	require.NoError(t, s.Seal(background, "a", cowchangeset.Manifest{}))
	require.NoError(t, s.Abort(background, "a", ""))
	require.NoError(t, s.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}))
	lose(1) // that for the stream
	require.NoError(t, s.Prune(background, 2))
	other := open(t, js, name)
	require.NoError(t, other.Claim(background))
	lose(2)
	require.ErrorIs(t, s.Append(background, "b", []entry{{Seq: 0, Value: "x"}}), changeset.ErrFenced)
	lose(0)
}

// A Store with a claim loads what was acknowledged, also if a server that is asked for
// the end of the stream has old contents. A message that a replica does not have yet is
// asked for again.
func TestStaleAnswers(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	f := &faulty{JetStream: js}
	s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name})
	require.NoError(t, err)
	require.NoError(t, s.Claim(background))
	calls, want := script(s)
	for _, call := range calls {
		require.NoError(t, call(background))
	}
	f.stale = 2
	require.Equal(t, want, saved(t, s))

	f.stale, f.missing = 0, 2
	other := open(t, f, name)
	require.NoError(t, other.Claim(background))
	require.Negative(t, f.missing)
	f.missing = 2
	require.ErrorIs(t, s.Seal(background, "c", cowchangeset.Manifest{Len: 1}), changeset.ErrFenced)
	require.Negative(t, f.missing)
	f.choose, f.missing = func(int, *nats.Msg) fault { return unacked }, 2
	ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, other.Append(ctx, "c", []entry{{Seq: 1, Value: "x"}}), changeset.ErrUnknown)
	f.choose = nil
	require.NoError(t, other.Append(background, "c", []entry{{Seq: 1, Value: "x"}, {Seq: 2, Value: "y"}}))
	require.Negative(t, f.missing)
}

// A server that refuses a message although it would fit, because another one is under
// way, gets it again.
func TestRefusedForAMoment(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	f := &faulty{JetStream: js}
	s, err := changeset.Open(background, f, changeset.Options[string]{Stream: name})
	require.NoError(t, err)
	refuse := func() {
		f.refuse = []jetstream.ErrorCode{10164, 10158, jetstream.JSErrCodeStreamWrongLastSequence}
	}
	refuse()
	require.NoError(t, s.Claim(background))
	calls, want := script(s)
	for i, call := range calls {
		if i%3 == 0 { // each costs a pause
			refuse()
		}
		require.NoError(t, call(background))
	}
	require.Equal(t, want, saved(t, s))
	f.refuse = []jetstream.ErrorCode{10047}
	var refusal *jetstream.APIError
	require.ErrorAs(t, s.Append(background, "c", []entry{{Seq: 1, Value: "x"}}), &refusal)
	require.NoError(t, s.Append(background, "c", []entry{{Seq: 1, Value: "x"}}))
}

// The ID of a changeset that was replaced, because only its Start was written, is free.
func TestReplacedStart(t *testing.T) {
	t.Parallel()
	js := single(t)
	s := open(t, js, stream(t, js, 1))
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	require.NoError(t, s.Start(background, header{ID: "b", Ordinal: 1}))
	require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}), changeset.ErrConflict)
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
	require.Equal(t, []cowchangeset.Saved[string]{{Header: header{ID: "a", Ordinal: 1}, Entries: []entry{{Seq: 0, Value: "x"}}}}, saved(t, s))
}

// hasty is a JetStream that lets another one write before each claim.
type hasty struct {
	jetstream.JetStream
	before func()
}

func (h hasty) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	h.before()
	return h.JetStream.PublishMsg(ctx, m, options...)
}

// Checks C2.

// A writer that always writes before the claim of a slower Store arrives loses the trail
// nevertheless.
func TestClaimOfBusyTrail(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, empty := range []bool{true, false} {
		name := stream(t, js, 1)
		fast := open(t, js, name)
		var err error
		n := uint64(0)
		write := func() {
			if err == nil {
				n++
				err = fast.Append(background, "a", []entry{{Seq: n, Value: "x"}})
			}
		}
		if empty { // others claim instead
			write = func() {
				if n++; n < 8 {
					require.NoError(t, open(t, js, name).Claim(background))
				}
			}
		} else {
			require.NoError(t, fast.Claim(background))
			require.NoError(t, fast.Start(background, header{ID: "a", Ordinal: 1}))
		}
		slow := open(t, hasty{js, func() { write() }}, name)
		require.NoError(t, slow.Claim(within(t, 10*time.Second)))
		if !empty {
			require.ErrorIs(t, err, changeset.ErrFenced)
			require.Len(t, saved(t, slow)[0].Entries, int(n-1))
			wishAgain(t, js, name) // as one that arrives late
			require.NoError(t, slow.Append(background, "a", []entry{{Seq: n, Value: "y"}}))
			require.Equal(t, 1, wishAgain(t, js, name))
			r := openReader(t, js, name)
			follow(t, r, changeset.Position{}, int(n)+3)
			require.NoError(t, slow.Seal(background, "a", cowchangeset.Manifest{Len: int(n), Last: n}))
			other := open(t, js, name)
			require.NoError(t, other.Claim(background))
			require.Len(t, saved(t, other)[0].Entries, int(n))
		}
	}
}

// wishAgain publishes the wishes of a trail again, and returns how many claims had some.
func wishAgain(t *testing.T, js jetstream.JetStream, name string) (subjects int) {
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	seen := make(map[string]bool)
	for seq := uint64(1); seq <= at.CachedInfo().State.LastSeq; seq++ {
		m, err := at.GetMsg(background, seq)
		require.NoError(t, err)
		if strings.Contains(m.Header.Get("Changeset-Record"), `"kind":"wish"`) && !seen[m.Subject] {
			seen[m.Subject] = true
			_, err := js.PublishMsg(background, &nats.Msg{Subject: m.Subject, Header: nats.Header{"Changeset-Record": m.Header["Changeset-Record"]}})
			require.NoError(t, err)
		}
	}
	return len(seen)
}

// A Claim ends with its context also while a Release, or another Claim, waits for the
// servers. Of two Claims at once one succeeds.
func TestClaimEnds(t *testing.T) {
	t.Parallel()
	js := single(t)
	f := &faulty{JetStream: js}
	s, err := changeset.Open(background, f, changeset.Options[string]{Stream: stream(t, js, 1), AckWait: time.Hour})
	require.NoError(t, err)
	f.set(func(int, *nats.Msg) fault { return unsent })
	first, give := context.WithCancel(background)
	claiming := make(chan error)
	go func() { claiming <- s.Claim(first) }()
	require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.n > 0 }, 20*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Claim(ctx), context.DeadlineExceeded)
	give()
	require.ErrorIs(t, <-claiming, context.Canceled)

	f.set(nil)
	for range 2 {
		go func() { claiming <- s.Claim(background) }()
	}
	errs := []error{<-claiming, <-claiming}
	require.Contains(t, errs, nil)
	require.Contains(t, errs, changeset.ErrClaimed)
}
