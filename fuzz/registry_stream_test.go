package fuzz

import (
	"context"
	"iter"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

const (
	maxStreams  = 4 // at a time
	smallLimits = 7 // of so many limits are small; the others are never reached
)

type registryEvent = shardedregistry.Event[string, int]

// watchStream is a loop over Stream that is asked for one event at a time, and
// what it should yield.
type watchStream struct {
	run    *watchRun
	limit  int
	filter *watchFilter
	ask    chan struct{} // closed to leave the loop
	cancel context.CancelFunc
	asking bool          // and nothing has been judged since
	got    *streamAnswer // what has come and was not judged; set by the loop's goroutine

	log     map[string][]registryEvent // of each key, what is not yet yielded
	waiting int                        // in the log
	may     bool                       // have lagged
	must    bool                       // have lagged, however quick it was
	late    bool                       // was asked when it must have lagged
	over    bool
}

// streamAnswer is what iter.Pull2 returns.
type streamAnswer struct {
	event registryEvent
	err   error
	ok    bool
}

// stepStream runs an operation on a loop over Stream.
func (s *watchRun) stepStream(op byte, which, arg int) {
	if op == 11 {
		if s.transitions && len(s.streams) < maxStreams {
			s.beginStream(arg)
		}
		return
	}
	if len(s.streams) == 0 {
		return
	}
	w := s.streams[which%len(s.streams)]
	if op == 13 {
		s.endStream(w, arg%2 == 0)
		return
	}
	for range arg%8 + 1 {
		s.pull(w)
	}
}

// beginStream starts a loop, which has subscribed when it returns.
func (s *watchRun) beginStream(arg int) {
	// What a function rejects would count until the loop comes to it.
	limit, filter := arg%smallLimits, filterOf(byte(arg/smallLimits), false)
	if limit == 0 {
		limit = 1 << 20
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &watchStream{run: s, limit: limit, filter: filter, ask: make(chan struct{}), cancel: cancel, log: map[string][]registryEvent{}}
	go func() {
		next, stop := iter.Pull2(s.r.Stream(ctx, limit, filter.filters()...))
		defer stop()
		for range w.ask {
			var a streamAnswer
			a.event, a.err, a.ok = next()
			w.got = &a
		}
	}()
	s.streams = append(s.streams, w)
	s.pull(w)
}

// pull asks for the next event, unless the loop was asked and sleeps.
func (s *watchRun) pull(w *watchStream) {
	if !w.asking {
		w.asking, w.late = true, w.must
		w.ask <- struct{}{}
		s.settle()
	}
}

// note notes what the loop should yield. If it was asked, it has perhaps yielded
// one that is noted as waiting.
func (w *watchStream) note(key string, version int, h held) {
	w.log[key] = append(w.log[key], registryEvent{
		Key: key, Value: h.value, Version: shardedregistry.Version(version), Deleted: h.deleted,
	})
	w.waiting++
	w.may = w.may || w.waiting > w.limit
	least := w.waiting
	if w.asking {
		least--
	}
	w.must = w.must || least > w.limit
}

// judge judges the loop when nobody has anything to do.
func (w *watchStream) judge() {
	t := w.run.t
	a := w.got
	if a == nil {
		require.False(t, w.asking && w.waiting > 0, "the loop sleeps, and changes wait")
		return
	}
	w.got, w.asking = nil, false
	switch {
	case w.over:
		require.Equal(t, &streamAnswer{}, a, "is yielded after the end")
	case a.err != nil:
		require.True(t, a.ok && w.may, "%v, where %d wait", a.err, w.waiting)
		require.Equal(t, &shardedregistry.LaggedError{Limit: w.limit}, a.err)
		require.Zero(t, a.event)
		w.over, w.waiting = true, 0
	default:
		require.False(t, w.late || !a.ok, "%v comes, where %d changes wait and %d may", a, w.waiting, w.limit)
		log := w.log[a.event.Key]
		require.NotEmpty(t, log, "%v is yielded", a.event)
		require.Equal(t, log[0], a.event)
		w.log[a.event.Key] = log[1:]
		w.waiting--
	}
}

// endStream ends a loop by break, or by its context, which wakes it if it sleeps.
func (s *watchRun) endStream(w *watchStream, cancelled bool) {
	if s.judgeStreams(); cancelled || w.asking {
		w.over, w.waiting = true, 0
		w.cancel()
		s.settle()
		s.pull(w)
		require.False(s.t, w.asking, "the loop sleeps when its context has ended")
	}
	close(w.ask)
	w.cancel()
	s.streams = slices.DeleteFunc(s.streams, func(x *watchStream) bool { return x == w })
	s.settle()
}

func (s *watchRun) judgeStreams() {
	for _, w := range s.streams {
		w.judge()
	}
}

// finishStreams lets all loops yield everything, and ends them.
func (s *watchRun) finishStreams() {
	for len(s.streams) > 0 {
		w := s.streams[0]
		for !w.asking && !w.over {
			s.pull(w)
		}
		s.endStream(w, len(s.streams)%2 == 0)
	}
}

// deleteFunc deletes the keys whose value leaves a remainder.
func (s *watchRun) deleteFunc(remainder int) {
	var gone []string
	n := s.r.DeleteFunc(func(k string, v int) bool {
		if v%2 == remainder {
			gone = append(gone, k)
		}
		return v%2 == remainder
	})
	require.Len(s.t, gone, n)
	for _, key := range gone {
		s.note(key, s.latest[key]+1, held{deleted: true})
	}
}
