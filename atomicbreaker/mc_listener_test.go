//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// An ear is a listener that remembers. It is not made for several goroutines:
// the queue must order its calls, as the race detector sees.
type ear struct {
	m      *mc.M
	events []Event
	inside bool
	then   func(Event) // what it does next
}

func (e *ear) hear(v Event) {
	if e.inside {
		e.m.Failf("%v during another event", v)
	}
	e.events, e.inside = append(e.events, v), true
	defer func() { e.inside = false }()
	if e.then != nil {
		e.then(v)
	}
}

// check fails unless every generation of the breaker was told, in order.
func (e *ear) check(b *Breaker) {
	last := Closed
	for i, v := range e.events {
		if v.From != last || v.Generation != uint64(i+1) {
			e.m.Failf("event %d is %v of generation %d, after %v", i+1, v, v.Generation, last)
		}
		if i > 0 && v.At.Before(e.events[i-1].At) {
			e.m.Failf("event %d goes back in time", i+1)
		}
		last = v.To
	}
	w := word(b.core.word.Load())
	if n := len(e.events); n != int(w.gen()) || last != w.state() {
		e.m.Failf("%d events up to %v of a breaker in generation %d: %v", n, last, w.gen(), w.state())
	}
	if q := b.core.queue; q.head.Load() != nil || q.waiting != nil {
		e.m.Failf("the queue is not empty and free")
	}
}

// scene is a breaker with a listener, and two calls that it has admitted.
type scene struct {
	b           *Breaker
	e           *ear
	early, late Permit
}

// skip makes n generations pass of which nobody was told.
func (s scene) skip(n uint64) { s.b.core.word.Store(uint64(word(n) << genShift)) }

// Checks I19, I20, I21, I22: all tests of this file.

// Whatever a listener does, and however late callers publish what they did, it
// is told of every change once and in order.
func TestListenerOrder(t *testing.T) {
	fail := func(s scene) {
		if p, err := s.b.Allow(); err == nil {
			p.Failure()
		}
	}
	reset := func(s scene) { s.b.Reset() }
	call := func(s scene) {
		if p, err := s.b.Allow(); err == nil {
			p.Success()
		}
	}
	begun := func(gen uint32) func(scene) { return func(s scene) { publish(s.b, gen) } }
	faults := func(s scene, ways ...mc.Fault) { s.e.then = func(Event) { s.e.m.Fault(ways...) } }
	// survive lets a thread go on when its listener has panicked.
	survive := func(f func(scene)) func(scene) {
		return func(s scene) {
			defer func() { recover() }()
			f(s)
		}
	}
	expire := func(b *Breaker) { b.core.word.And(^uint64(untilMask)) }
	for name, p := range map[string]struct {
		operations string
		settings   Config
		search     mc.Config
		before     func(scene)
		threads    []func(scene)
		final      func(scene)
	}{
		"a trip against a reset":   {operations: "fail ∥ Reset", threads: []func(scene){fail, reset}},
		"a trip and a reset twice": {operations: "fail, Reset ∥ fail, Reset", threads: []func(scene){func(s scene) { fail(s); reset(s) }, func(s scene) { fail(s); reset(s) }}},
		"times go on": {
			operations: "Reset ∥ Reset, advance by 1 s",
			threads:    []func(scene){reset, func(s scene) { reset(s); s.e.m.Advance(time.Second) }},
		},
		"late results": {
			operations: "Failure ∥ Failure ∥ Reset",
			threads:    []func(scene){func(s scene) { s.early.Failure() }, func(s scene) { s.late.Failure() }, reset},
		},
		"half-open and closed": {
			operations: "call ∥ call", settings: Config{CloseAfter: 1},
			before:  func(s scene) { fail(s); expire(s.b) },
			threads: []func(scene){call, call},
		},
		"half-open and open again": {
			operations: "fail ∥ call",
			before:     func(s scene) { fail(s); expire(s.b) },
			threads:    []func(scene){fail, call},
		},
		"a reset inside the listener": {
			operations: "Failure ∥ Failure, each with Reset in the listener",
			before: func(s scene) {
				s.e.then = func(v Event) {
					if n := len(s.e.events); v.To == Open {
						if s.b.Reset(); len(s.e.events) != n {
							s.e.m.Failf("told of its own Reset inside")
						}
					}
				}
			},
			threads: []func(scene){fail, func(s scene) { s.late.Failure() }},
			final: func(s scene) {
				if s.b.State() != Closed {
					s.e.m.Failf("a listener that always resets, and it is %v", s.b.State())
				}
			},
		},
		"a listener that panics": {
			operations: "fail ∥ Reset, the listener panics at each event or not",
			before:     func(s scene) { faults(s, mc.Panic) },
			threads:    []func(scene){survive(fail), survive(reset)},
		},
		"a listener that exits": {
			operations: "fail ∥ Reset, the listener calls Goexit at each event or not",
			before:     func(s scene) { faults(s, mc.Goexit) },
			threads:    []func(scene){fail, reset},
		},
		"three winners": {
			operations: "publish 1 ∥ publish 2 ∥ publish 3",
			before:     func(s scene) { s.skip(3) },
			threads:    []func(scene){begun(1), begun(2), begun(3)},
		},
		"three winners, and a listener that fails": {
			operations: "publish 1 ∥ publish 2 ∥ publish 3, the listener panics or exits at 2 or not",
			search:     mc.Config{Mode: mc.Bounded, Preemptions: 2},
			before: func(s scene) {
				s.skip(3)
				s.e.then = func(v Event) {
					if v.Generation == 2 {
						s.e.m.Fault(mc.Panic, mc.Goexit)
					}
				}
			},
			threads: []func(scene){survive(begun(1)), survive(begun(2)), survive(begun(3))},
		},
		"a probe whose listener fails": {
			operations: "Allow ∥ Allow, the listener panics or exits or not",
			settings:   Config{Probes: 1},
			before:     func(s scene) { fail(s); expire(s.b); faults(s, mc.Panic, mc.Goexit) },
			threads: []func(scene){
				survive(func(s scene) { p, _ := s.b.Allow(); p.Cancel() }),
				survive(func(s scene) { p, _ := s.b.Allow(); p.Cancel() }),
			},
			final: func(s scene) {
				if n := s.b.Snapshot().InFlight; n != 0 {
					s.e.m.Failf("%d slots leaked", n)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.search.Operations = p.operations
			mc.Check(t, p.search, func(m *mc.M) {
				e := &ear{m: m}
				c := p.settings
				c.Policy, c.OpenTimeout, c.OnStateChange = Consecutive(1), time.Minute, e.hear
				s := scene{b: MustNew(c), e: e}
				plainly(s.b.core.set.Load().counters)
				s.early, _ = s.b.Allow()
				s.late, _ = s.b.Allow()
				m.Name("word", &s.b.core.word)
				m.Name("told", &s.b.core.queue.delivered)
				m.Name("head", &s.b.core.queue.head)
				if p.before != nil {
					p.before(s)
				}
				for _, f := range p.threads {
					m.Go(func() { f(s) })
				}
				m.Final(func() {
					e.check(s.b)
					if p.final != nil {
						p.final(s)
					}
				})
			})
		})
	}
}

// However callers overlap who publish the generations of a key, its listener
// is told of each in order, by one of them at a time, though the key's queue is
// thrown away whenever it is empty, and another takes its place.
func TestQueuesOfAKeyInEveryOrder(t *testing.T) {
	for name, threads := range map[string][][]uint32{
		"two winners":          {{1}, {2}},
		"the last comes first": {{1}, {3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{Operations: mc.Listed(threads, func(gen uint32) string { return fmt.Sprint("publish ", gen) })}
			mc.Check(t, cfg, func(m *mc.M) {
				e, last := &ear{m: m}, 0
				g := MustNewGroup(GroupConfig[string]{OnStateChange: func(_ string, v Event) { e.hear(v) }})
				ks := g.current()
				c := ks.obtain(k, ks.hash(k, 0), nil)
				for _, mine := range threads {
					last += len(mine)
					m.Go(func() {
						for _, gen := range mine {
							c.queue.push(gen, &Event{}).deliver()
						}
					})
				}
				c.word.Store(uint64(word(last).enter(open))) // not pristine, and nobody looks at it
				m.Final(func() {
					for i, v := range e.events {
						if v.Generation != uint64(i+1) {
							m.Failf("event %d is of generation %d", i+1, v.Generation)
						}
					}
					if n := len(e.events); n != last || c.queue.delivered.Load() != uint64(last) {
						m.Failf("told of %d generations of %d", n, last)
					}
				})
			})
		})
	}
}

// A key whose failures were forgotten while its listener was not told goes once it is, and
// nothing is lost that comes meanwhile.
func TestForgottenKeysWaitForTheirListener(t *testing.T) {
	for name, p := range map[string]struct {
		does func(g *Group[string])
		want State
		keys int // that are left
	}{
		"ForceOpen":     {func(g *Group[string]) { g.ForceOpen(k) }, ForcedOpen, 1},
		"Trip":          {func(g *Group[string]) { g.Trip(k, 0) }, Open, 1},
		"RecordFailure": {func(g *Group[string]) { g.RecordFailure(k) }, Closed, 1},
		"Sweep":         {func(g *Group[string]) { g.Sweep() }, Closed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "deliver ∥ " + name}, func(m *mc.M) {
				g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: -1}, OnStateChange: func(string, Event) {}})
				plainly(&g.current().counters)
				ks := g.current()
				c := ks.obtain(k, ks.hash(k, 0), nil)
				owed := c.command(toTrip(0)).owed
				g.RecordSuccess(k)
				g.RecordFailure(k)
				m.Advance(2 * defaultForgetAfter)
				if g.Sweep(); word(c.word.Load()).mode() != leaving {
					m.Failf("%#x is no mark", c.word.Load())
				}
				m.Go(owed.deliver)
				m.Go(func() { p.does(g) })
				m.Final(func() {
					if err := g.checkQuiet(k); err != nil || g.State(k) != p.want || g.Len() != p.keys {
						m.Failf("%v, %v, %d keys", err, g.State(k), g.Len())
					}
				})
			})
		})
	}
}

// A key that has recovered leaves though its listener panics, also if its failures were
// forgotten meanwhile.
func TestRecoveredKeysLeaveThoughTheListenerPanics(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "RecordSuccess, the listener panics ∥ RecordFailure, advance by 2 h, RecordFailure"}
	mc.Check(t, cfg, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(9), OpenTimeout: time.Minute}, OnStateChange: func(_ string, e Event) {
			if e.Reason == ReasonForgotten {
				panic("listener")
			}
		}})
		plainly(&g.current().counters)
		g.Trip(k, 0)
		m.Advance(2 * defaultForgetAfter)
		survives := func(f func()) {
			defer func() { recover() }()
			f()
		}
		m.Go(func() { survives(func() { g.RecordSuccess(k) }) })
		m.Go(func() {
			survives(func() { g.RecordFailure(k) })
			m.Advance(2 * defaultForgetAfter)
			g.RecordFailure(k)
		})
		m.Final(func() {
			if err := g.checkQuiet(k); err != nil {
				m.Failf("%v", err)
			}
			if s := g.Snapshot(k); s.Failures == 0 && g.Len() != 0 {
				m.Failf("%+v, and it is still there", s)
			}
		})
	})
}

// A call that was admitted after two ResetAlls have returned is good, also if its cell dies
// later, as it has waited for the listener.
func TestCallsAfterTwoResetAllsOutliveTheirCell(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "ResetAll ∥ ResetAll"}, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: -1}, OnStateChange: func(string, Event) {}})
		plainly(&g.current().counters)
		ks := g.current()
		owed := ks.obtain(k, ks.hash(k, 0), nil).command(toTrip(0)).owed
		for range 2 {
			m.Go(g.ResetAll)
		}
		m.Final(func() {
			p, err := g.Allow(k)
			owed.deliver()
			if n := g.Len(); err != nil || n != 0 {
				m.Failf("%v, and %d keys", err, n)
			}
			if v := p.Failure(); v != Counted || g.Snapshot(k).Failures != 1 {
				m.Failf("%v of a call from after ResetAll", v)
			}
		})
	})
}
