//go:build modelcheck

package mc_test

import (
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// shared is what the operations of this file share.
type shared struct {
	word, flag, other atomics.Uint64
	busy              atomics.Bool
	mu                atomics.Mutex
	done              atomics.Event
}

type sharedOp = mc.Operation[*shared]

func newShared() *shared { return &shared{done: atomics.MakeEvent()} }

func op(name string, do func(s *shared)) sharedOp { return sharedOp{Name: name, Do: do} }

// add is a loop that compares and swaps.
func (s *shared) add() {
	for {
		now := s.word.Load()
		if s.word.CompareAndSwap(now, now+1) {
			return
		}
	}
}

// Operations that progress as they say.
var (
	loads = op("load", func(s *shared) { s.word.Load(); s.flag.Load() })
	adds  = op("add", func(s *shared) { s.add() })
	locks = op("lock", func(s *shared) {
		s.mu.Lock()
		s.other.Load()
		s.mu.Unlock()
	})
	fires  = op("fire", func(s *shared) { s.other.Load(); s.done.TryFire() })
	awaits = op("await", func(s *shared) { s.done.Wait() })

	// Two steps, of which whoever finds the first done does the second.
	helps = op("help", func(s *shared) {
		s.flag.CompareAndSwap(0, 1)
		s.flag.CompareAndSwap(1, 2)
	})

	// A swap that is tried twice, and then an addition.
	tries = op("try", func(s *shared) {
		for range 2 {
			if now := s.word.Load(); s.word.CompareAndSwap(now, now+1) {
				return
			}
		}
		s.word.Add(1)
	})
)

func TestStalls(t *testing.T) {
	for _, p := range (mc.World[*shared]{Name: "all is well", New: newShared, Operations: []sharedOp{
		loads.Bounded(2), adds.Free(), helps.Bounded(2), tries.Bounded(5), locks.Waits(mc.Mutex), fires.Free(), awaits.Waits(mc.Event),
	}}).Problems() {
		t.Error(p)
	}
}

// Each of these does not progress as it says, beside the first operation of the world or another of its kind.
func TestStallsAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		op   sharedOp
		want string
	}{
		"waits for the owner of a flag": {op("spin", func(s *shared) {
			if s.flag.CompareAndSwap(0, 1) {
				s.word.Load()
				s.flag.Store(2)
			}
			for s.flag.Load() != 2 {
			}
		}).Free(), "livelock"},
		"nobody helps": {op("claim", func(s *shared) {
			if s.flag.CompareAndSwap(0, 1) {
				s.other.Store(1)
				s.done.TryFire()
				return
			}
			s.done.Wait()
		}).Free(), "T1 waits for ever, for event"},
		"swaps only while a bit is clear": {op("bit", func(s *shared) {
			for {
				now := s.word.Load()
				if now&1 == 0 && s.word.CompareAndSwap(now, now|1) {
					s.word.CompareAndSwap(now|1, now+2)
					return
				}
			}
		}).Free(), "livelock"},
		"a spinlock": {op("spinlock", func(s *shared) {
			for !s.busy.CompareAndSwap(false, true) {
			}
			s.word.Load()
			s.busy.Store(false)
		}).Free(), "livelock"},
		"a lock":                    {locks.Free(), "T1 waits for ever, for mutex"},
		"a lock that is not named":  {locks.Waits(mc.Event), "T1 waits for ever, for mutex"},
		"a lock that is not needed": {loads.Waits(mc.Mutex), "load never waits for mutex"},
		"starts a goroutine late": {op("start", func(s *shared) {
			if s.flag.CompareAndSwap(0, 1) {
				atomics.Go(func() { s.done.TryFire() })
			}
			s.done.Wait()
		}).Waits(mc.Bucket), "T1 waits for ever, for event"},
		"a loop that others repeat": {adds.Bounded(4), "T0 takes more than 4 steps"},
		"a loop of any length":      {adds.Bounded(10), "add takes 8 steps, and 10 if one more passes it"},
		"too high a bound":          {loads.Bounded(3), "load takes 2 steps at most, not 3"},
		"one that others abort": {op("abort", func(s *shared) {
			for {
				s.word.Add(1)
				now := s.word.Load()
				s.flag.Store(now)
				if s.word.Load() == now {
					return
				}
			}
		}).Bounded(4), "takes more than 4 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			found := mc.World[*shared]{Name: name, New: newShared, Operations: []sharedOp{adds, tt.op}}.Problems()
			if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}
