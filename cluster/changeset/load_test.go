package changeset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
)

const (
	largeSets  = 24
	largeValue = 256 << 10
	perSet     = 8
)

// large writes a trail of 48 MiB: changesets of 8 entries, each in two messages, that are
// open at the same time, and end in all ways. It returns what Load should yield, with the
// length of each value in place of the value.
func large(t *testing.T, js jetstream.JetStream, name string) (want []cowchangeset.Saved[int]) {
	t.Helper()
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	want = make([]cowchangeset.Saved[int], largeSets)
	add := func(i int) {
		c := &want[i]
		var entries []entry
		for range perSet / 2 {
			seq := uint64(len(c.Entries))
			value := strings.Repeat("x", largeValue+i)
			entries = append(entries, entry{Seq: seq, Value: value})
			c.Entries = append(c.Entries, cowchangeset.Entry[int]{Seq: seq, Value: len(value)})
		}
		require.NoError(t, s.Append(background, c.ID, entries))
	}
	for i := range want {
		want[i].Header = header{ID: fmt.Sprint("c", i), Ordinal: uint64(i + 1)}
		if i > 0 {
			want[i].Previous = want[i-1].ID
		}
		require.NoError(t, s.Start(background, want[i].Header))
		add(i)
		if i > 0 {
			add(i - 1)
		}
	}
	add(largeSets - 1)
	for i := range largeSets - 1 {
		c := &want[i]
		c.Sealed = true
		require.NoError(t, s.Seal(background, c.ID, cowchangeset.Manifest{Len: perSet, Last: perSet - 1}))
		switch i % 3 {
		case 1:
			c.Aborted, c.Reason = true, strings.Repeat("why ", 300_000) // in parts
			require.NoError(t, s.Abort(background, c.ID, c.Reason))
		case 2:
			c.Applied = uint64(i)
			require.NoError(t, s.Applied(background, c.ID, c.Applied))
		}
	}
	return want
}

// lengths are what a loop yields, with the length of each value.
func lengths(t *testing.T, all func(func(cowchangeset.Saved[string], error) bool)) (got []cowchangeset.Saved[int]) {
	t.Helper()
	for c, err := range all {
		require.NoError(t, err)
		short := cowchangeset.Saved[int]{Header: c.Header, Sealed: c.Sealed, Aborted: c.Aborted, Reason: c.Reason, Applied: c.Applied}
		for _, e := range c.Entries {
			short.Entries = append(short.Entries, cowchangeset.Entry[int]{Seq: e.Seq, Value: len(e.Value)})
		}
		got = append(got, short)
	}
	return got
}

// A long trail of changesets that were open at the same time is loaded whole, with a claim or without one.
func TestLoadLong(t *testing.T) {
	js := single(t)
	name := stream(t, js, 1)
	want := large(t, js, name)
	claimed := open(t, js, name)
	require.NoError(t, claimed.Claim(background))
	require.Equal(t, want, lengths(t, claimed.Load(within(t, time.Minute))))
	require.Equal(t, want, lengths(t, openReader(t, js, name).Load(within(t, time.Minute))))
	require.NoError(t, claimed.Append(background, "c23", []entry{{Seq: perSet, Value: "more"}}), "it has left the state")
}

// Checks C6.

// A Load with a claim ends if the last message that it wants was removed, or all were: it
// does not wait for it.
func TestLoadRemoved(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{true, false} {
		t.Run(fmt.Sprint("all=", all), func(t *testing.T) {
			t.Parallel() // each takes two seconds
			js := single(t)
			name := stream(t, js, 1)
			s := open(t, js, name)
			require.NoError(t, s.Claim(background))
			require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
			at, err := js.Stream(background, name)
			require.NoError(t, err)
			if all {
				require.NoError(t, at.Purge(background))
			} else {
				require.NoError(t, at.DeleteMsg(background, 2))
			}
			require.ErrorIs(t, loadError(s.Load(within(t, 10*time.Second))), changeset.ErrCorrupt)
		})
	}
}

// Checks C6.

// A removed record is noticed also if a start follows it, as behind what was pruned.
func TestLoadRemovedBeforeStart(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
	require.NoError(t, s.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}))
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	require.NoError(t, at.DeleteMsg(background, 3))
	require.ErrorIs(t, loadError(open(t, js, name).Load(within(t, 5*time.Second))), changeset.ErrCorrupt)
	require.ErrorIs(t, loadError(s.Load(within(t, 5*time.Second))), changeset.ErrCorrupt)
}

// Checks C6.

// A loop ends also if the last message is removed while it reads.
func TestLoadRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	js := single(t)
	name := stream(t, js, 1)
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	_, err := js.Publish(background, name+".foreign", nil)
	require.NoError(t, err)
	at, err := js.Stream(background, name)
	require.NoError(t, err)
	removed := false
	r := openReader(t, &faulty{JetStream: js, skip: func(seq uint64) bool {
		if seq == 3 && !removed {
			removed = true
			require.NoError(t, at.DeleteMsg(background, 3))
			return true
		}
		return false
	}}, name)
	for c, err := range r.Load(within(t, 10*time.Second)) {
		require.NoError(t, err)
		require.Equal(t, "a", c.ID)
	}
	require.True(t, removed)
}

// Checks C7.

// A Load with a claim goes on when the Store before it purges late what it has pruned in
// time.
func TestLoadBesideEarlierPurge(t *testing.T) {
	t.Parallel()
	js := single(t)
	for _, at := range []uint64{1, 256} {
		name := stream(t, js, 1)
		ctx, cancel := context.WithCancel(background)
		f := &faulty{JetStream: js, purging: errOnPurpose, purge: cancel}
		first, err := changeset.Open(background, f, changeset.Options[string]{Stream: name, AckWait: 100 * time.Millisecond})
		require.NoError(t, err)
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: first})
		require.NoError(t, err)
		life(t, tracker, 100)
		require.NoError(t, tracker.Flush(background))
		require.Error(t, first.Prune(ctx, 100))
		f.purging = nil
		purged := false
		second := open(t, &faulty{JetStream: js, skip: func(seq uint64) bool {
			if seq == at && !purged {
				purged = true
				require.NoError(t, first.Prune(background, 100))
			}
			return false
		}}, name)
		require.NoError(t, second.Claim(background))
		var ordinals []uint64
		for _, c := range saved(t, second) {
			ordinals = append(ordinals, c.Ordinal)
		}
		require.Equal(t, []uint64{100}, ordinals)
		require.True(t, purged)
		require.NoError(t, second.Append(background, saved(t, second)[0].ID, []entry{{Seq: 1, Value: "y"}}))
	}
}
