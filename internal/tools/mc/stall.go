//go:build modelcheck

package mc

import "strconv"

// Waiting is a set of what a thread can wait for.
type Waiting uint8

// What a thread can wait for. Bucket is the mutex of a bucket of a table: see Stalling.
const (
	Bucket Waiting = 1 << iota
	Mutex
	Event // or WaitGroup
)

// String names what is in the set.
func (w Waiting) String() string {
	s := ""
	for i, name := range []string{"bucket", "mutex", "event"} {
		if w>>i&1 == 1 {
			s += " or " + name
		}
	}
	if s == "" {
		return "nothing"
	}
	return s[len(" or "):]
}

// waitsFor returns what a thread waits for whose next step blocks.
func (t *thread) waitsFor() Waiting {
	switch t.verb {
	case "Lock":
		return Mutex
	case "Wait", "WaitContext":
		return Event
	}
	return Bucket
}

// stall changes the rules of an exploration. T0 takes so many steps and then never another: the
// program that is explored is the one in which its code ends there. All others must return, but
// for those that may wait for what T0 holds. An execution ends when nobody can go on; then T0
// does, and whoever waited for it, unexplored, so that their goroutines serve on.
type stall struct {
	first int // the thread that is T0 here: others may have been started before
	after int // steps of T0
	beats bool

	may   []Waiting // what each thread may wait for; those that are not listed: anything
	limit []int     // steps of each thread, if not negative

	reached bool      // T0 was stopped before its end, in some execution
	waited  []Waiting // what each thread has waited for when all was over, in some execution
	most    []int     // steps of each thread, in some execution
}

// Stalling reports whether threads are stopped for ever. Then a table has a mutex, as if all its
// keys were in one bucket, and an operation that needs it takes it, works and gives it back in a
// step each. In all other explorations nobody stops for ever, and one step is enough.
//
//go:norace
func Stalling() bool { return active != nil && active.cfg.stall != nil }

// stops reports whether t takes no further step.
//
//go:norace
func (s *stall) stops(t *thread) bool {
	if t.id != s.first || t.taken < s.after {
		return false
	}
	s.reached = true
	return true
}

// required reports whether t has to return.
//
//go:norace
func (s *stall) required(t *thread) bool { return t.id != s.first || s.beats }

// narrow leaves those of the enabled threads that may come next where others beat T0: they run
// one after the other, each without a pause, and T0 between any two of its steps lets as many
// of them pass as come. Threads that these start run when all else has.
//
//go:norace
func (m *M) narrow(enabled uint64) uint64 {
	if !m.cfg.stall.beats {
		return enabled
	}
	first, n := m.cfg.stall.first, len(m.cfg.stall.limit)
	bodies := (uint64(1)<<n - 1) << first
	if enabled&bodies == 0 {
		return enabled & -enabled
	}
	enabled &= bodies
	for _, t := range m.threads[first+1 : first+n] {
		if t.finished || enabled>>t.id&1 == 0 {
			continue
		}
		if t.taken > 0 {
			return 1 << t.id
		}
		return enabled & (1<<first | 1<<t.id)
	}
	return enabled
}

// count counts a step of t against its limit.
//
//go:norace
func (s *stall) count(m *M, t *thread) {
	if t.verb != startVerb {
		t.taken++
	}
	i := t.id - s.first
	if i < 0 || i >= len(s.limit) {
		return
	}
	s.most[i] = max(s.most[i], t.taken)
	if limit := s.limit[i]; limit >= 0 && t.taken > limit {
		m.fail("T" + strconv.Itoa(t.id) + " takes more than " + strconv.Itoa(limit) + " steps")
	}
}

// overtake is called when no thread can take a step. Where all go on until they return, what a
// thread has waited for shows in the step that it takes at last; here it may never take it. So it
// looks for earlier steps that the step could have overtaken, as if it came now.
//
//go:norace
func (m *M) overtake() {
	if m.cfg.Mode != DPOR || m.free || m.script != nil {
		return
	}
	for _, t := range m.threads {
		if !t.started || t.finished || m.cfg.stall.stops(t) {
			continue
		}
		k := len(m.trace)
		s := m.extend()
		s.thread, s.pending, s.before, s.alsoBefore = t.id, t.next, 0, 0
		if s.on.gate != nil {
			s.before = *s.on.gate
		}
		if s.also.gate != nil {
			s.alsoBefore = *s.also.gate
		}
		known := m.clocks[t.id]
		s.clock = known
		s.last = m.after(&s.clock, s.on)
		s.alsoLast = m.after(&s.clock, s.also)
		s.clock[t.id] = int32(k + 1)
		m.races(k, &known)
		m.trace = m.trace[:k]
	}
}

// stuck is called when no thread can take a step. It fails the execution if one has not returned
// that has to.
//
//go:norace
func (s *stall) stuck(m *M) {
	for _, t := range m.threads {
		i := t.id - s.first
		if !t.started || t.finished || !s.required(t) || i < 0 || i >= len(s.may) {
			continue
		}
		w := t.waitsFor()
		if s.waited[i] |= w; s.may[i]&w == 0 {
			m.fail("T" + strconv.Itoa(t.id) + " waits for ever, for " + w.String() + ": " + t.verb + "(). T" +
				strconv.Itoa(s.first) + " was stopped after " + strconv.Itoa(s.after) + " steps")
		}
	}
}

// resume lets all go on that can, T0 too.
//
//go:norace
func (m *M) resume() {
	free := m.free
	m.free = true // there is nothing to explore in that
	for last, steps := -1, 0; steps < m.cfg.MaxSteps; steps++ {
		set, _ := m.enabled()
		if set == 0 {
			break
		}
		last = next(set, last)
		m.pass(m.threads[last])
		<-m.control
	}
	m.free = free
	m.returned.Load()
}
