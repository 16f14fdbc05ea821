//go:build modelcheck

package oncecache_test

import (
	"fmt"
	"runtime"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A creation takes effect twice: when it begins, so that others join it or
// find no value, and when it ends. mc.Linearizable knows operations that take
// effect once, so this file explains histories of another kind: of events, of
// which a GetOrCreate is two.

// key is the only key of the protocols: keys share nothing but counters.
const key = "k"

// action is one operation of a thread.
type action struct {
	name string
	do   func(*history)
}

// history is what happened in one execution, to one thread or to all.
type history struct {
	m         *mc.M
	c         *oncecache.Cache[string, int]
	events    []event
	creations []creationSeen
	running   [8]int // create functions, by thread
}

// event is a moment at which an operation takes effect, some time between
// begin and end, and after the event before it in the history if it follows.
type event struct {
	begin, end int64
	name, got  string
	model      func(*sequential) string
	follows    bool
	ends       bool // Set or Delete, which end creations that still run
}

// creationSeen is a call that ran its create function, from ran[0] to ran[1].
type creationSeen struct {
	called int64
	ran    [2]int64
}

func (h *history) do(actions []action) {
	for _, a := range actions {
		a.do(h)
	}
}

// once returns an operation that takes effect once. If it ends creations, that
// is Set or Delete.
func once(name string, ends bool, do func(*history) string, model func(*sequential) string) action {
	return action{name, func(h *history) {
		e := event{name: name, model: model, ends: ends, begin: h.m.Begin()}
		e.got = do(h)
		e.end = h.m.End()
		h.events = append(h.events, e)
	}}
}

func found(v int, ok bool) string { return fmt.Sprint(v, " ", ok) }

var (
	get = once("Get", false, func(h *history) string { return found(h.c.Get(key)) }, (*sequential).get)

	// all is a Get too: there is one key.
	all = once("All", false, func(h *history) string {
		for _, v := range h.c.All() {
			return found(v, true)
		}
		return found(0, false)
	}, (*sequential).get)

	remove = once("Delete", true, func(h *history) string { return found(h.c.Delete(key)) },
		func(s *sequential) string { return found(s.cache.Delete(modelKey)) })
)

func set(v int) action {
	return once(fmt.Sprintf("Set(%d)", v), true, func(h *history) string { return found(h.c.Set(key, v)) },
		func(s *sequential) string { return found(s.cache.Set(modelKey, v)) })
}

func setIfAbsent(v int) action {
	return once(fmt.Sprintf("SetIfAbsent(%d)", v), false, func(h *history) string { return fmt.Sprint(stored(h.c.SetIfAbsent(key, v))) },
		func(s *sequential) string { return fmt.Sprint(stored(s.cache.SetIfAbsent(modelKey, v))) })
}

func compareAndDelete(v int) action {
	return once(fmt.Sprintf("CompareAndDelete(%d)", v), false,
		func(h *history) string { return fmt.Sprint(oncecache.CompareAndDelete(h.c, key, v)) },
		func(s *sequential) string { return fmt.Sprint(s.cache.CompareAndDelete(modelKey, v)) })
}

// ending is how a create function ends.
type ending int

const (
	inValue ending = iota
	inError
	inPanic
	inGoexit
	joined // it was not called
)

func (e ending) String() string {
	return [...]string{"value", "error", "panic", "Goexit", "joined"}[e]
}

// outcome prints what GetOrCreate returns.
func outcome(v int, err error) string {
	switch err := err.(type) {
	case *oncecache.PanicError:
		return fmt.Sprint("PanicError ", err.Value)
	case *oncecache.CycleError:
		return fmt.Sprint("CycleError ", err.Path)
	}
	return fmt.Sprint(v, " ", err)
}

// shared is what those get who take part in a creation of v and do not run it.
func (e ending) shared(v int) (int, error) {
	if e == inValue {
		return v, nil
	}
	return 0, [...]error{inError: errRefused, inPanic: &oncecache.PanicError{Value: errRefused}, inGoexit: oncecache.ErrGoexit}[e]
}

// create asks for the key with a function that returns v, or in other
// executions ends in one of the ways given.
func create(v int, endings ...ending) action { return createWith(nil, v, endings...) }

// createWith is create with a function that does some actions first.
func createWith(inside []action, v int, endings ...ending) action {
	name := fmt.Sprintf("GetOrCreate(%d", v)
	for _, a := range inside {
		name += "; in it " + a.name
	}
	for _, e := range endings {
		name += fmt.Sprint(" or ", e)
	}
	return action{name + ")", func(h *history) {
		id, how, got := new(int), joined, "exits"
		seen := creationSeen{called: h.m.Begin()}
		defer func() {
			if p := recover(); p != nil {
				got = fmt.Sprint("panics ", p)
			}
			h.twice(id, v, seen, how, got, h.running[mc.Core()] > 0)
		}()
		got = outcome(h.c.GetOrCreate(key, func() (int, error) {
			how = inValue
			h.running[mc.Core()]++
			defer func() { h.running[mc.Core()]-- }()
			seen.ran[0] = h.m.End() // from here on, others must see that it has begun
			h.do(inside)
			defer func() { seen.ran[1] = h.m.Begin() }()
			if i := h.m.Choose(len(endings) + 1); i > 0 {
				how = endings[i-1]
			}
			switch how {
			case inError:
				return 99, errRefused
			case inPanic:
				panic(errRefused)
			case inGoexit:
				runtime.Goexit()
			}
			return v, nil
		}))
	}}
}

// twice records the two events of a GetOrCreate. The second may be earlier
// than the end of the create function: see DESIGN.md, two steps that act as
// one.
func (h *history) twice(id *int, v int, seen creationSeen, how ending, got string, within bool) {
	end := h.m.End()
	begun := end
	if how != joined {
		begun = seen.ran[0]
		h.creations = append(h.creations, seen)
	}
	h.events = append(h.events,
		event{begin: seen.called, end: begun, name: "GetOrCreate creates", got: fmt.Sprint(how != joined),
			model: func(s *sequential) string { return fmt.Sprint(s.begin(id)) }},
		event{begin: seen.called, end: end, name: fmt.Sprintf("GetOrCreate(%d, %v)", v, how), got: got, follows: true,
			model: func(s *sequential) string { return s.end(id, v, how, within) }})
}
