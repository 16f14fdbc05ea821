//go:build !modelcheck

package histories_test

import "fmt"

const cacheClients = 4

// cacheState is what a cache does with one key. A client is in one call for it
// at a time. Creations go by the value that they make, or would.
type cacheState struct {
	bounded bool  // the value may go at any moment
	value   int32 // or 0
	owner   int32 // the creation in flight that is the key's, or 0
	calls   [cacheClients]cacheCall
	flights [12]flight
}

// cacheCall is a client in GetOrCreate: it waits for a creation, or its
// outcome is known, or it is none.
type cacheCall struct {
	flight int32
	heir   bool // of that creation, which everybody else had left before
	renews bool // that is one of Refresh
	looked bool // a Refresh has looked for a value
	absent bool // and has found none
	gets   promise
}

// flight is a creation whose outcome is to come, or whose function runs.
type flight struct {
	id        int32
	runs      bool // its function
	beside    bool // another's may run beside it, as a Set or a Delete came since
	abandoned bool // by all who waited for it
	over      bool // Set gave everyone its own value
	settled   bool

	renews    bool    // it is one of Refresh, of a value
	overtaken bool    // that value has gone: what it makes is not kept
	late      bool    // and its function still ran when the Set that has replaced it was over
	result    promise // of a renewal that is settled
	other     promise // what its callers get from Set, or getsUnknown
}

// A promise is what a call will get.
type promise int32

const (
	getsFailure promise = iota - 2 // one of several
	getsAnything
	getsUnknown
	getsError
	getsPanicError
	getsGoexitError
	getsContextError
	getsNotFound
	gets // this and a value
)

func (p promise) String() string {
	if p > gets {
		return fmt.Sprint(int(p - gets))
	}
	return [...]string{"a failure", "anything", "nothing", "the error", "a PanicError", "ErrGoexit", "its context's error", "ErrNotFound"}[p+2]
}

// cacheEnding is how a create function ended.
type cacheEnding int

const (
	didNotRun cacheEnding = iota
	inValue
	inError
	inPanic
	inGoexit
	inCancellation // of its context, whose error it returned
	inNothing      // for this key, among others
)

func (e cacheEnding) String() string {
	return [...]string{"did not run", "in a value", "in an error", "in a panic", "in an exit", "in its cancellation", "in nothing"}[e]
}

// shared is what the creation's callers get; of a cancellation, nobody gets
// anything.
func (e cacheEnding) shared(value int) promise {
	return [...]promise{inValue: gets + promise(value), inError: getsError, inPanic: getsPanicError, inGoexit: getsGoexitError, inCancellation: getsUnknown,
		inNothing: getsNotFound}[e]
}

// cacheEvent is an operation of a cache. A GetOrCreate is two: begin, which
// finds a value, a creation or neither; and end, which gets its outcome, or
// left, which does not wait for it. A Refresh is a
// GetOrCreate, or if there is a value takes part in a renewal of that. A Wait and each key of a GetOrCreateMany are like GetOrCreate. A creation is two more: ran, when its
// function has ended; and settled, when its outcome counts.
//
// That may be as soon as it has begun, even before its function has: a Set or a
// Delete that comes while the value is being created, but decides with the
// creator only after it is there, counts it as having come just before. That an
// outcome is early must not let creations overlap; so the functions themselves
// are watched too.
type cacheEvent struct {
	op     string
	client int
	value  int  // argument, or the creation's
	got    int  // returned
	ok     bool // returned; for begin, whether it creates

	leaves bool        // of begin: the call returned its context's error
	absent bool        // of begin: the call does not create, and returned ErrNotFound
	renews bool        // of begin: the call is a Refresh
	alone  bool        // of end: the function ran on the client's goroutine, and ended it
	ending cacheEnding // of the creation
	gets   promise     // of end: what the call returned, if it did
}

func (e cacheEvent) Kind() string {
	switch e.op {
	case "ran", "left", "overtook", "look":
		return e.op
	case "settled":
		return fmt.Sprint(e.op, " ", e.ending)
	case "end":
		if e.gets > gets {
			return "end gets a value"
		}
		return fmt.Sprint("end gets ", e.gets)
	}
	return fmt.Sprint(e.op, " ", e.ok)
}

func (e cacheEvent) String() string {
	switch e.op {
	case "begin":
		if e.ok {
			return fmt.Sprintf("GetOrCreate begins and creates %d", e.value)
		}
		return "GetOrCreate begins"
	case "end":
		return fmt.Sprintf("GetOrCreate ends and gets %v", e.gets)
	case "left":
		return "GetOrCreate leaves"
	case "overtook":
		return "Set is over"
	case "look":
		return "Refresh looks"
	case "ran":
		return fmt.Sprintf("the function that creates %d ends", e.value)
	case "settled":
		return fmt.Sprintf("the creation of %d ends %v", e.value, e.ending)
	}
	return fmt.Sprintf("%s(%d) = %d, %v", e.op, e.value, e.got, e.ok)
}

func (e cacheEvent) After(s cacheState) (cacheState, bool) {
	if s.bounded && e.misses(s) {
		s.value = 0 // it had to go
	}
	was, present := int(s.value), s.value != 0
	found := e.got == was && e.ok == present
	value := int32(e.value)
	switch e.op {
	case "begin":
		return s, s.begin(&s.calls[e.client], e)
	case "left":
		return s, s.leave(&s.calls[e.client])
	case "end":
		c := s.calls[e.client]
		s.calls[e.client] = cacheCall{}
		if c.renews {
			return s, s.renewed(c.flight, e.gets)
		}
		p := c.gets
		if e.gets == getsFailure {
			return s, p > getsUnknown && p < gets
		}
		return s, p != getsUnknown && (e.gets == p || e.alone || e.gets == getsAnything)
	case "look":
		c := &s.calls[e.client]
		c.looked, c.absent = true, s.value == 0
		return s, true
	case "overtook":
		for i := range s.flights {
			if f := &s.flights[i]; f.renews && f.runs && f.other == gets+promise(e.value) { // not that of another Set
				f.late = true
			}
		}
		return s, true
	case "ran":
		f := s.find(value)
		f.runs = false
		f.drop()
		return s, true
	case "settled":
		return s, s.settle(value, e)
	case "Get", "All":
		return s, found
	case "Set":
		if s.owner != 0 {
			s.resolve(s.owner, gets+promise(value))
			s.find(s.owner).over = true
		}
		s.overtake(gets + promise(value))
		s.remove()
		s.value = value
		return s, found
	case "SetIfAbsent":
		if stores := !present && s.owner == 0; !stores {
			return s, !e.ok && e.got == was
		}
		s.value = value
		return s, e.ok && e.got == e.value
	case "Delete":
		s.remove()
		return s, found
	case "Discard": // does not tell whether it removed the value
		if was == e.value {
			s.value = 0
			s.overtake(getsUnknown)
		}
		return s, true
	case "CompareAndDelete":
		if was != e.value {
			return s, !e.ok
		}
		s.value = 0
		s.overtake(getsUnknown)
		return s, e.ok
	}
	panic(e.op)
}

// find returns the creation with an id, or for 0 an empty place.
func (s *cacheState) find(id int32) *flight {
	for i := range s.flights {
		if s.flights[i].id == id {
			return &s.flights[i]
		}
	}
	return nil
}

// drop forgets a creation that is through.
func (f *flight) drop() {
	if f.settled && !f.runs && !f.renews {
		*f = flight{}
	}
}

func (s *cacheState) begin(c *cacheCall, e cacheEvent) bool {
	switch {
	case e.renews && !c.looked:
		return false
	case e.renews && !c.absent && s.value != 0:
		return s.renew(c, e)
	case s.value != 0:
		*c = cacheCall{gets: gets + promise(s.value)}
		return !e.ok && !e.leaves
	case s.owner != 0:
		*c = cacheCall{flight: s.owner, heir: s.find(s.owner).abandoned}
		return !e.ok
	case e.absent:
		*c = cacheCall{gets: getsNotFound}
		return true
	case !e.ok: // its context has ended, or this is not its moment
		*c = cacheCall{gets: getsContextError}
		return e.leaves
	}
	for _, f := range s.flights {
		if f.runs && !f.beside && !f.renews {
			return false
		}
	}
	s.owner = int32(e.value)
	*c = cacheCall{flight: s.owner}
	*s.find(0) = flight{id: s.owner, runs: true}
	return true
}

// leave ends a call that does not know its outcome. The last one to leave,
// but for heirs, abandons the creation.
func (s *cacheState) leave(c *cacheCall) bool {
	f := s.find(c.flight)
	left := *c
	*c = cacheCall{}
	if left.gets == getsContextError {
		return true
	}
	if left.gets != getsUnknown || left.flight == 0 {
		return false
	}
	if !left.heir && !s.awaited(left.flight, false) {
		f.abandoned = true
	}
	return true
}

// awaited reports whether calls wait for a creation, heirs included or not.
func (s *cacheState) awaited(id int32, heirs bool) bool {
	for _, c := range s.calls {
		if c.flight == id && c.gets == getsUnknown && (heirs || !c.heir) {
			return true
		}
	}
	return false
}

// settle ends a creation. If all had left it and it failed, nobody gets to
// know: heirs begin after that. A cancellation is nobody's outcome anyway.
func (s *cacheState) settle(id int32, e cacheEvent) bool {
	f := s.find(id)
	if f == nil || f.settled {
		return false
	}
	if f.renews {
		return s.settleRenewal(f, e)
	}
	if f.settled = true; !f.over {
		if e.ending != inValue && f.abandoned || e.ending == inCancellation {
			if s.awaited(id, true) {
				return false
			}
		} else {
			s.resolve(id, e.ending.shared(e.value))
		}
		if s.owner == id {
			s.owner = 0
			if e.ending == inValue {
				s.value = id
			}
		}
	}
	f.drop()
	return true
}

// resolve tells everyone who waits for a creation what they get.
func (s *cacheState) resolve(id int32, p promise) {
	for i, c := range s.calls {
		if c.flight == id && c.gets == getsUnknown && !c.renews {
			s.calls[i] = cacheCall{gets: p}
		}
	}
}

// remove leaves the key without value and creation.
func (s *cacheState) remove() {
	s.value, s.owner = 0, 0
	s.overtake(getsUnknown)
	for i := range s.flights {
		if f := &s.flights[i]; f.runs {
			f.beside = true
		}
	}
}
