package shardedregistry

import (
	"runtime"
	"slices"
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// schedules returns the number of schedules of a registry. With 16 it is unlikely that two
// creations or deletions meet in one.
func schedules() int { return atomics.Limit(16, 1) }

// fewExpired bounds how many cells a timer takes out of a schedule at once, while others
// wait for its mutex.
const fewExpired = 64

// schedule has the cells of some keys in the order in which a timer looks at them. A cell
// may be there for an earlier time than its deadline, because changes that put a deadline
// off leave it where it is.
type schedule[K comparable, V any] struct {
	number int // in expiry.schedules. Immutable.

	mu    atomics.Mutex
	heap  appointments[K, V] // under mu: ordered as a binary heap
	timer *expiryTimer       // under mu; nil: there is none
	wakes int64              // under mu: when the timer fires
	_     atomics.CacheLinePad
}

// expiryTimer is a timer that was started. It refers to the registry weakly. It does not
// change after arm.
type expiryTimer struct {
	stop     func()
	unneeded runtime.Cleanup // stops it when the registry is garbage
}

// cancel is called when the timer is no longer that of its schedule, and may have fired.
func (t *expiryTimer) cancel() {
	t.stop()
	t.unneeded.Stop()
}

// alarm says when a timer looks at a cell. The records of the cell share it.
type alarm struct {
	// at is when a timer will look; never, if the cell is in no schedule; or closed, if the
	// cell is dead, which is final. Written under schedule.mu. Writers of the key read it.
	at atomics.Int64

	position int // in schedule.heap, plus one; 0: none. Under schedule.mu.
}

// closed is before each deadline: nobody wants a timer to look earlier.
const closed = expired

func newAlarm() *alarm {
	a := new(alarm)
	atomics.InitInt64(&a.at, never)
	return a
}

// appointment is a place in a schedule.
type appointment[K comparable, V any] struct {
	at    int64 // as in alarm
	alarm *alarm
	cell  *cell[K, V]
}

// schedule returns that of k.
func (x *expiry[K, V]) schedule(k hkey[K]) *schedule[K, V] {
	return &x.schedules[k.Hash%uint64(len(x.schedules))]
}

// look makes a timer look at c at a time, or before.
func (s *schedule[K, V]) look(rt *root[K, V], x *expiry[K, V], c *cell[K, V], a *alarm, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.at.Load() <= at {
		return
	}
	a.at.Store(at)
	if a.position == 0 {
		s.heap = append(s.heap, appointment[K, V]{at, a, c})
		a.position = len(s.heap)
	}
	s.heap[a.position-1].at = at
	s.heap.fix(a.position - 1)
	s.arm(rt, x)
}

// close takes a dead cell out of the schedule, for good.
func (s *schedule[K, V]) close(a *alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.at.Store(closed)
	s.remove(a)
}

// remove takes a cell out of the heap, if it is there. The caller holds mu.
func (s *schedule[K, V]) remove(a *alarm) {
	i, last := a.position-1, len(s.heap)-1
	if i < 0 {
		return
	}
	s.heap.swap(i, last)
	s.heap[last] = appointment[K, V]{}
	s.heap = s.heap[:last]
	a.position = 0
	if i < last {
		s.heap.fix(i)
	}
	if cap(s.heap) > fewExpired && last < cap(s.heap)/4 {
		s.heap = append(slices.Grow(appointments[K, V](nil), 2*last), s.heap...)
	}
}

// arm starts a timer for the first of the heap, unless one fires before. The caller holds
// mu. The timer does not keep the registry alive, and goes with it: unless it was made in a
// bubble of testing/synctest, outside of which nobody may stop it.
func (s *schedule[K, V]) arm(rt *root[K, V], x *expiry[K, V]) {
	if len(s.heap) == 0 || x.paused {
		return
	}
	next := s.heap[0].at
	if s.timer != nil {
		if s.wakes <= next {
			return
		}
		s.timer.cancel()
	}
	i, root, t := s.number, weak.Make(rt), new(expiryTimer)
	t.stop = atomics.After(time.Duration(max(0, next-x.now())), func() {
		if rt := root.Value(); rt != nil {
			expireDue(rt, i, t)
		}
	})
	if atomics.Bubble() == 0 {
		t.unneeded = atomics.WhenGone(rt, func(stop func()) { stop() }, t.stop)
	}
	s.timer, s.wakes = t, next
}

// expireDue looks at the first cells in schedule i whose time has come, and starts the next
// timer, for the others at once. A timer runs it.
func expireDue[K comparable, V any](rt *root[K, V], i int, by *expiryTimer) {
	x := rt.expiry
	s := &x.schedules[i]
	for _, c := range s.due(x.now()) {
		x.expire(rt, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == by && by != nil {
		by.unneeded.Stop()
		s.timer = nil
	}
	s.arm(rt, x)
}

// due takes a few cells out of the schedule that are to be looked at now.
func (s *schedule[K, V]) due(now int64) (cells []*cell[K, V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(cells) < fewExpired && len(s.heap) > 0 && s.heap[0].at <= now {
		first := s.heap[0]
		first.alarm.at.Store(never)
		s.remove(first.alarm)
		cells = append(cells, first.cell)
	}
	return cells
}

// appointments is a binary heap, the earliest first.
type appointments[K comparable, V any] []appointment[K, V]

// fix moves appointment i to where it belongs when its time has changed.
func (h appointments[K, V]) fix(i int) {
	for i > 0 && h[i].at < h[(i-1)/2].at {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := 2*i + 1
		if first+1 < len(h) && h[first+1].at < h[first].at {
			first++
		}
		if first >= len(h) || h[i].at <= h[first].at {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h appointments[K, V]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].alarm.position, h[j].alarm.position = i+1, j+1
}
