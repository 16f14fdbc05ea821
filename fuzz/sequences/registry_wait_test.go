package sequences

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

// watchWait is a call of Wait.
type watchWait struct {
	key    string
	since  int
	cancel context.CancelCauseFunc
	ended  bool // by cancel
	done   bool
	entry  shardedregistry.Entry[string, int]
	err    error
}

// wait starts a call of Wait.
func (s *watchRun) wait(key string, since int) {
	ctx, cancel := context.WithCancelCause(s.t.Context())
	w := &watchWait{key: key, since: since, cancel: cancel}
	s.waits = append(s.waits, w)
	go func() {
		w.entry, w.err = s.r.Wait(ctx, key, shardedregistry.Version(since))
		w.done = true
	}()
}

// judgeWaits compares the calls of Wait with what the keys hold. It is called
// after each operation, so a call has returned exactly if it need not wait.
func (s *watchRun) judgeWaits() {
	for i := 0; i < len(s.waits); i++ {
		w := s.waits[i]
		now, present := s.now(w.key)
		version := s.latest[w.key]
		switch {
		case present && version > w.since:
			require.True(s.t, w.done, "Wait sleeps, and %s has version %d", w.key, version)
			require.NoError(s.t, w.err)
			want := shardedregistry.Entry[string, int]{Key: w.key, Value: now.value, Version: shardedregistry.Version(version)}
			if w.entry != want { // the operation has changed the key twice, or it was seen before
				require.Equal(s.t, s.past[w.key][int(w.entry.Version)], held{value: w.entry.Value})
				require.Greater(s.t, int(w.entry.Version), w.since)
				require.GreaterOrEqual(s.t, int(w.entry.Version), s.before[w.key])
			}
		case !present && w.since > 0:
			require.True(s.t, w.done, "Wait sleeps, and %s is gone", w.key)
			require.ErrorIs(s.t, w.err, shardedregistry.ErrNotFound)
		case w.ended:
			require.True(s.t, w.done)
			require.ErrorIs(s.t, w.err, errWatchEnds)
		default:
			require.False(s.t, w.done, "Wait has returned %v, %v", w.entry, w.err)
			continue
		}
		w.cancel(nil)
		s.waits = append(s.waits[:i:i], s.waits[i+1:]...)
		i--
	}
}
