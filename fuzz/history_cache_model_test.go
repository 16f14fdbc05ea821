//go:build !modelcheck

package fuzz_test

import "fmt"

const cacheClients = 4

// cacheState is what a cache does with one key. A client is in one call for it
// at a time, so that a call, and the creation that it runs, go by the client.
type cacheState struct {
	value int                   // ready, or 0
	owner int                   // 1 + the client whose creation is in flight and not forgotten, or 0
	calls [cacheClients]promise // of GetOrCreate
	runs  [cacheClients]running // of create functions
}

// running says whether a client's create function runs.
type running int

const (
	runsNot running = iota
	runs
	runsVoid // a Set or a Delete came since, so that another may run beside it
)

// A promise is what a client in GetOrCreate will get: nothing if there is no
// call, an outcome, or that of a creation in flight.
type promise int

const (
	getsAnything promise = iota - 1
	_
	getsError
	getsPanicError
	getsGoexitError
	gets // this and a value
)

func flightOf(client int) promise { return promise(-2 - client) }

func (p promise) String() string {
	switch p {
	case getsAnything:
		return "anything"
	case 0:
		return "nothing"
	case getsError:
		return "the error"
	case getsPanicError:
		return "a PanicError"
	case getsGoexitError:
		return "ErrGoexit"
	}
	return fmt.Sprint(int(p - gets))
}

// cacheEnding is how a create function ended.
type cacheEnding int

const (
	didNotRun cacheEnding = iota
	inValue
	inError
	inPanic
	inGoexit
)

func (e cacheEnding) String() string {
	return [...]string{"did not run", "in a value", "in an error", "in a panic", "in an exit"}[e]
}

// cacheEvent is an operation of a cache. A GetOrCreate is two: begin, which
// finds a value, a creation or neither; and end, which gets its outcome. The
// end of a create function is one more.
//
// The outcome of a creation may count as soon as its function has begun: a Set
// or a Delete that comes while the value is being created, but decides with
// the creator only after it is there, counts it as having come just before.
// That an outcome is early must not let creations overlap; so the functions
// themselves are watched too.
type cacheEvent struct {
	op     string
	client int
	value  int  // argument, or what the create function returned
	got    int  // returned
	ok     bool // returned; for begin, whether it creates

	ending cacheEnding // of end: how the client's create function ended
	gets   promise     // of end: what the call returned, if it did
}

func (e cacheEvent) Kind() string {
	switch {
	case e.op == "ran":
		return e.op
	case e.op != "end":
		return fmt.Sprint(e.op, " ", e.ok)
	case e.gets >= gets:
		return fmt.Sprint("end ", e.ending, ", gets a value")
	}
	return fmt.Sprint("end ", e.ending, ", gets ", e.gets)
}

func (e cacheEvent) String() string {
	switch e.op {
	case "begin":
		return fmt.Sprintf("GetOrCreate begins, creates: %v", e.ok)
	case "ran":
		return "create ends"
	case "end":
		return fmt.Sprintf("GetOrCreate ends; create %v %d; gets %v", e.ending, e.value, e.gets)
	}
	return fmt.Sprintf("%s(%d) = %d, %v", e.op, e.value, e.got, e.ok)
}

func (e cacheEvent) After(s cacheState) (cacheState, bool) {
	was, present := s.value, s.value != 0
	found := e.got == was && e.ok == present
	switch e.op {
	case "begin":
		return s.begin(e.client, e.ok)
	case "end":
		return s.end(e)
	case "ran":
		s.runs[e.client] = runsNot
		return s, true
	case "Get", "All":
		return s, found
	case "Set":
		if s.owner != 0 {
			s.settle(s.owner-1, gets+promise(e.value))
		}
		s.value, s.owner = e.value, 0
		s.void()
		return s, found
	case "SetIfAbsent":
		if stores := !present && s.owner == 0; !stores {
			return s, !e.ok
		}
		s.value = e.value
		return s, e.ok
	case "Delete":
		s.value, s.owner = 0, 0
		s.void()
		return s, found
	case "Discard": // does not tell whether it removed the value
		if was == e.value {
			s.value = 0
		}
		return s, true
	case "CompareAndDelete":
		if was != e.value {
			return s, !e.ok
		}
		s.value = 0
		return s, e.ok
	}
	panic(e.op)
}

func (s cacheState) begin(client int, creates bool) (cacheState, bool) {
	switch {
	case s.value != 0:
		s.calls[client] = gets + promise(s.value)
		return s, !creates
	case s.owner != 0:
		s.calls[client] = flightOf(s.owner - 1)
		return s, !creates
	}
	for _, r := range s.runs {
		if r == runs {
			return s, false
		}
	}
	s.owner = 1 + client
	s.calls[client], s.runs[client] = flightOf(client), runs
	return s, creates
}

// void lets another create function run beside those that do.
func (s *cacheState) void() {
	for i, r := range s.runs {
		if r == runs {
			s.runs[i] = runsVoid
		}
	}
}

func (s cacheState) end(e cacheEvent) (cacheState, bool) {
	if s.calls[e.client] == flightOf(e.client) && e.ending != didNotRun {
		s.settle(e.client, [...]promise{inValue: gets + promise(e.value), inError: getsError, inPanic: getsPanicError, inGoexit: getsGoexitError}[e.ending])
		if s.owner == 1+e.client {
			s.owner = 0
			if e.ending == inValue {
				s.value = e.value
			}
		}
	}
	p := s.calls[e.client]
	s.calls[e.client] = 0
	if e.ending == inPanic || e.ending == inGoexit {
		return s, p > 0 && e.gets == 0 // the call did not return
	}
	return s, p > 0 && (e.gets == p || e.gets == getsAnything)
}

// settle tells everyone in a client's creation what came of it.
func (s *cacheState) settle(client int, p promise) {
	for i := range s.calls {
		if s.calls[i] == flightOf(client) {
			s.calls[i] = p
		}
	}
}
