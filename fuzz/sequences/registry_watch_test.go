package sequences

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// watchKeys are few, so that much happens to each.
var watchKeys = []string{"backup", "resize", "drain"}

const (
	maxWatchLoops = 6 // at a time
	maxWaits      = 8 // in all
)

// watchRun is a sequence of operations on a registry, and the loops and calls of
// Wait that follow it. What the registry should hold is an order of versions for
// each key; the numbers are the registry's, since a new key's depends on when the
// loops let go of those that were deleted.
type watchRun struct {
	t     *testing.T
	r     *shardedregistry.Registry[string, int]
	value int
	loops []*watchLoop
	waits []*watchWait

	past   map[string]map[int]held // what each key has held at each version
	latest map[string]int          // the last of these, or 0
	before map[string]int          // and that when the operation began
}

// held is what a key held at one version.
type held struct {
	value   int
	deleted bool
}

// watchLoop is a loop that yields an event only when it was given leave to, and
// what should be known of it.
type watchLoop struct {
	run    *watchRun
	leave  chan struct{} // lets the body return
	cancel context.CancelFunc
	ending watchEnding // what the body does when it may return
	done   bool

	busy   bool // in its body
	state  *shardedregistry.Snapshot[string, int]
	events []shardedregistry.Event[string, int] // not yet judged

	snapshot bool // begins with one
	filter   *watchFilter
	view     map[string]int
	changed  map[string]bool // since the loop last showed it
	version  map[string]int  // that the loop has last shown
}

// watchEnding is what a loop's body does in the end.
type watchEnding byte

const (
	bodyReturns watchEnding = iota
	bodyBreaks
	bodyPanics
	bodyExits
	contextEnds
	watchEndings
)

var errWatchEnds = errors.New("the caller gives up")

// watchFilter says which keys a loop is told of. Nil stands for all.
type watchFilter model.Filter

// watchFilters are some, those with functions last.
var watchFilters = []*watchFilter{
	nil, {Keys: []string{"resize", "absent"}}, {Prefixes: []string{"re", "dr"}}, {Keys: []string{"drain"}, Prefixes: []string{"d", "b"}}, {},
	{Match: func(k string) bool { return len(k) == 6 }}, {Keys: []string{"drain"}, Match: func(k string) bool { return k == "backup" }},
}

// filterOf returns a filter, with a function only if there may be one.
func filterOf(which byte, functions bool) *watchFilter {
	n := len(watchFilters)
	if !functions {
		n -= 2
	}
	return watchFilters[int(which)%n]
}

func (f *watchFilter) accepts(key string) bool { return f == nil || model.Filter(*f).Accepts(key) }

func (f *watchFilter) filters() []shardedregistry.Filter[string] {
	if f == nil {
		return nil
	}
	return model.Filter(*f).Filters()
}

// FuzzRegistryWatchOps reads three bytes for each operation: which, the key or
// the loop, and an argument. Loops yield what has changed of the keys that their
// filters accept, as it is then, and nothing else; versions increase; and in the
// end each has what the registry has.
func FuzzRegistryWatchOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		synctest.Test(t, func(t *testing.T) {
			runWatch(t, ops, shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1}))
		})
	})
}

func runWatch(t *testing.T, ops []byte, r *shardedregistry.Registry[string, int]) {
	s := &watchRun{
		t: t, r: r,
		past: map[string]map[int]held{}, before: map[string]int{}, latest: map[string]int{},
	}
	defer s.abandon()
	for _, k := range watchKeys {
		s.past[k] = map[int]held{}
	}
	for ; len(ops) >= 3; ops = ops[3:] {
		s.before = maps.Clone(s.latest)
		s.step(ops[0], ops[1], ops[2])
		s.settle()
	}
	s.finish()
}

// step runs one operation.
func (s *watchRun) step(op, which, arg byte) {
	key := watchKeys[int(which)%len(watchKeys)]
	have, present := s.now(key)
	version := s.latest[key]
	switch op % 11 {
	case 0:
		s.put(key)
	case 1:
		v, err := s.r.Create(key, s.next())
		if require.Equal(s.t, present, err != nil); !present {
			s.note(key, int(v), held{value: s.value})
		}
	case 2:
		e, err := s.r.Update(key, func(v int) (int, error) {
			if arg%4 == 0 {
				s.put(key) // by its own function, which then runs again
				arg++
			}
			return v + 1, nil
		})
		if have, _ = s.now(key); present {
			require.NoError(s.t, err)
			require.Equal(s.t, have.value+1, e.Value)
			s.note(key, int(e.Version), held{value: e.Value})
		}
	case 3:
		e, ok := s.r.Delete(key)
		require.Equal(s.t, present, ok)
		if ok {
			require.EqualValues(s.t, version, e.Version)
			s.note(key, version+1, held{deleted: true})
		}
	case 4:
		err := s.r.DeleteIf(key, shardedregistry.Version(version+int(arg%2)))
		if require.Equal(s.t, present && arg%2 == 0, err == nil); err == nil {
			s.note(key, version+1, held{deleted: true})
		}
	case 5:
		if len(s.loops) < maxWatchLoops {
			s.begin(arg%2 == 0, filterOf(arg/2, true))
		}
	case 6: // a loop goes on by some events, or takes all that there is
		if w := s.loop(which); w != nil {
			for range int(arg%4) + 1 {
				s.goOn(w)
			}
		}
	case 7:
		if w := s.loop(which); w != nil {
			s.end(w, watchEnding(arg)%watchEndings)
		}
	case 8:
		if len(s.waits) < maxWaits {
			s.wait(key, max(0, version+int(arg%3)-1)*int(arg/3%2))
		}
	case 9:
		if len(s.waits) > 0 {
			w := s.waits[int(which)%len(s.waits)]
			w.ended = w.ended || !w.done
			w.cancel(errWatchEnds)
		}
	case 10:
		s.deleteFunc(int(arg) % 2)
	}
}

func (s *watchRun) next() int {
	s.value++
	return s.value
}

func (s *watchRun) put(key string) {
	v, err := s.r.Put(key, s.next())
	require.NoError(s.t, err)
	s.note(key, int(v), held{value: s.value})
}

// now returns what key should hold, and whether it is present.
func (s *watchRun) now(key string) (held, bool) {
	h, ok := s.past[key][s.latest[key]]
	return h, ok && !h.deleted
}

// live returns what the registry should hold of the keys that a filter accepts.
func (s *watchRun) live(filter *watchFilter) map[string]int {
	all := map[string]int{}
	for _, k := range watchKeys {
		if h, ok := s.now(k); ok && filter.accepts(k) {
			all[k] = h.value
		}
	}
	return all
}

// note notes what key has held since it was given a version.
func (s *watchRun) note(key string, version int, h held) {
	if _, present := s.now(key); present {
		require.Equal(s.t, s.latest[key]+1, version)
	}
	require.Greater(s.t, version, s.latest[key])
	if h.deleted {
		h.value = s.past[key][s.latest[key]].value // the last one
	}
	s.past[key][version], s.latest[key] = h, version
	for _, w := range s.loops {
		if w.filter.accepts(key) {
			w.changed[key] = true
		}
	}
}

func (s *watchRun) loop(which byte) *watchLoop {
	if len(s.loops) == 0 {
		return nil
	}
	return s.loops[int(which)%len(s.loops)]
}

// begin starts a loop, which watches when begin returns.
func (s *watchRun) begin(snapshot bool, filter *watchFilter) {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &watchLoop{
		run: s, leave: make(chan struct{}), cancel: cancel, snapshot: snapshot, filter: filter,
		view: map[string]int{}, changed: map[string]bool{}, version: map[string]int{},
	}
	if !snapshot {
		w.view = s.live(filter) // as if it had looked before
	}
	go func() {
		defer func() {
			if w.done = true; w.ending == bodyPanics {
				_ = recover()
			}
		}()
		if !snapshot {
			for e := range s.r.Watch(ctx, filter.filters()...) {
				if w.events = append(w.events, e); !w.body() {
					break
				}
			}
			return
		}
		for state, e := range s.r.WatchSnapshot(ctx, filter.filters()...) {
			if state != nil {
				w.state = state
			} else {
				w.events = append(w.events, e)
			}
			if !w.body() {
				break
			}
		}
	}()
	s.loops = append(s.loops, w)
	s.settle()
}

// settle waits until nobody has anything to do, and judges what they have seen.
func (s *watchRun) settle() {
	synctest.Wait()
	for _, w := range s.loops {
		w.judge()
	}
	s.judgeWaits()
}

// judge judges what the loop has been given since it was judged last.
func (w *watchLoop) judge() {
	if state := w.state; state != nil {
		w.state = nil
		for e := range state.Entries() {
			require.EqualValues(w.run.t, w.run.latest[e.Key], e.Version)
			w.view[e.Key], w.version[e.Key] = e.Value, int(e.Version)
		}
		require.Equal(w.run.t, w.run.live(w.filter), w.view)
	}
	for _, e := range w.events {
		w.show(e)
	}
	w.events = nil
}

// show judges an event by what the key has held.
func (w *watchLoop) show(e shardedregistry.Event[string, int]) {
	t, version := w.run.t, int(e.Version)
	require.True(t, w.changed[e.Key], "%v is yielded, and %s has not changed", e, e.Key)
	require.Greater(t, version, w.version[e.Key])
	require.GreaterOrEqual(t, version, w.run.before[e.Key], "%v is old", e)
	was, ok := w.run.past[e.Key][version]
	require.True(t, ok, "%v has never been", e)
	require.Equal(t, was, held{e.Value, e.Deleted})
	if _, shown := w.view[e.Key]; e.Deleted {
		require.True(t, shown || !w.snapshot, "the deletion of %s is yielded, which was not shown", e.Key)
		delete(w.view, e.Key)
	} else {
		w.view[e.Key] = e.Value
	}
	if w.version[e.Key] = version; version == w.run.latest[e.Key] {
		delete(w.changed, e.Key)
	}
}

// body waits for leave to go on, and reports whether the loop should.
func (w *watchLoop) body() bool {
	w.busy = true
	<-w.leave
	w.busy = false
	switch w.ending {
	case bodyBreaks:
		return false
	case bodyPanics:
		panic(errWatchEnds)
	case bodyExits:
		runtime.Goexit()
	}
	return true
}

// goOn lets a loop's body return, if it is in there.
func (s *watchRun) goOn(w *watchLoop) {
	if w.busy {
		s.before = maps.Clone(s.latest)
		w.leave <- struct{}{}
		s.settle()
	}
}

// end ends a loop, which must not hang.
func (s *watchRun) end(w *watchLoop, ending watchEnding) {
	if w.ending = ending; !w.busy || ending == bodyReturns || ending == contextEnds {
		w.cancel()
		s.settle()
	}
	s.goOn(w)
	require.True(s.t, w.done, "a loop has not ended")
	w.cancel()
	s.loops = slices.DeleteFunc(s.loops, func(x *watchLoop) bool { return x == w })
}

// finish lets all loops see everything, compares them with the registry, and
// ends them.
func (s *watchRun) finish() {
	for _, w := range s.loops {
		for w.busy {
			s.goOn(w)
		}
		require.Equal(s.t, s.live(w.filter), w.view)
		for k := range w.changed {
			_, present := s.now(k)
			require.True(s.t, w.snapshot && !present, "the loop has missed a change of %s", k)
		}
	}
	for len(s.loops) > 0 {
		s.end(s.loops[0], contextEnds)
	}
	for _, w := range s.waits {
		w.cancel(nil)
	}
	synctest.Wait()
	require.Equal(s.t, s.live(nil), maps.Collect(s.r.All()))
}

// abandon lets all goroutines end that are left, also when the test has failed.
func (s *watchRun) abandon() {
	for _, w := range s.loops {
		w.cancel()
		close(w.leave)
	}
	for _, w := range s.waits {
		w.cancel(nil)
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
