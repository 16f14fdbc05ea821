//go:build modelcheck

package mc_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// torn adds by a load and a store.
func torn(m *mc.M) {
	n := new(atomics.Uint64)
	m.Name("n", n)
	add := func() { n.Store(n.Load() + 1) }
	m.Go(add)
	m.Go(add)
	m.Final(func() {
		if v := n.Load(); v != 2 {
			m.Failf("lost update: n = %d, want 2", v)
		}
	})
}

func TestLostUpdateIsFoundInEveryMode(t *testing.T) {
	for name, cfg := range map[string]mc.Config{
		"exhaustive":     {},
		"one preemption": {Mode: mc.Bounded, Preemptions: 1},
		"random":         {Mode: mc.PCT, Seed: 1},
	} {
		if r := mc.Explore(cfg, torn); r.Failure != "lost update: n = 1, want 2" {
			t.Errorf("%s: %v %q", name, r, r.Failure)
		}
	}
	r := mc.Explore(mc.Config{Mode: mc.Bounded}, torn)
	if r.Failure != "" || !r.Complete || r.Schedules != 2 {
		t.Errorf("without preemptions: %v %q; want two good executions", r, r.Failure)
	}
}

func TestFailureIsShownAndReplayed(t *testing.T) {
	r := mc.Explore(mc.Config{}, torn)
	// The columns are the threads; the position is where each step was taken.
	want := []string{
		"T0            T1",
		"n.Load() = 0                mc/explore_test.go:",
		"              n.Load() = 0  mc/explore_test.go:",
		"              n.Store(1)    mc/explore_test.go:",
		"n.Store(1)                  mc/explore_test.go:",
	}
	lines := strings.Split(r.Trace, "\n")
	for i, w := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], w) {
			t.Fatalf("the trace is\n%s\nwant\n%s", r.Trace, strings.Join(want, "\n"))
		}
	}
	again := mc.Explore(mc.Config{Replay: r.Replay}, torn)
	if again.Failure != r.Failure || again.Trace != r.Trace || again.Schedules != 1 {
		t.Errorf("replay: %v %q\n%s", again, again.Failure, again.Trace)
	}
	t.Setenv("MC_REPLAY", r.Replay)
	if again := mc.Explore(mc.Config{}, torn); again.Failure != r.Failure || again.Schedules != 1 {
		t.Errorf("MC_REPLAY: %v %q", again, again.Failure)
	}
	t.Setenv("MC_REPLAY", "0011")
	if again := mc.Explore(mc.Config{}, torn); again.Failure != "" {
		t.Errorf("the replay of a good execution fails: %q", again.Failure)
	}
	t.Setenv("MC_REPLAY", "9")
	if again := mc.Explore(mc.Config{}, torn); !strings.Contains(again.Failure, "does not fit") {
		t.Errorf("the replay of another body: %q", again.Failure)
	}
}

// The counts are what the reduction achieves; a change of them is a change of
// the reduction.
func TestExecutionsOfACounter(t *testing.T) {
	for _, c := range []struct {
		threads, adds     int
		reduced, all, two int
	}{
		{2, 1, 4, 6, 6},
		{2, 2, 46, 226, 26},
		{2, 3, 712, 12952, 62},
		{3, 1, 81, 498, 72},
	} {
		if testing.Short() && c.all > 500 {
			continue // sampled then
		}
		body := func(m *mc.M) {
			n := new(atomics.Uint64)
			for range c.threads {
				m.Go(func() {
					for range c.adds {
						for v := n.Load(); !n.CompareAndSwap(v, v+1); v = n.Load() {
						}
					}
				})
			}
			m.Final(func() {
				if v := n.Load(); v != uint64(c.threads*c.adds) {
					m.Failf("n = %d", v)
				}
			})
		}
		reduced := mc.Check(t, mc.Config{}, body)
		all := mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: mc.Unbounded}, body)
		two := mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}, body)
		if reduced.Schedules != c.reduced || all.Schedules != c.all || two.Schedules != c.two {
			t.Errorf("%d threads × %d: reduced %d, all %d, two preemptions %d; want %d, %d, %d", c.threads, c.adds,
				reduced.Schedules, all.Schedules, two.Schedules, c.reduced, c.all, c.two)
		}
	}
}

func TestDeadlockIsReported(t *testing.T) {
	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		var a, b atomics.Mutex
		m.Name("a", &a)
		m.Name("b", &b)
		lock := func(x, y *atomics.Mutex) func() {
			return func() {
				x.Lock()
				y.Lock()
				//lint:ignore SA2001 nothing is guarded
				y.Unlock()
				x.Unlock()
			}
		}
		m.Go(lock(&a, &b))
		m.Go(lock(&b, &a))
	})
	if !strings.HasPrefix(r.Failure, "deadlock") || strings.Count(r.Trace, "waits for ever") != 2 {
		t.Errorf("%v %q\n%s", r, r.Failure, r.Trace)
	}
}

func TestLivelockIsReported(t *testing.T) {
	r := mc.Explore(mc.Config{MaxSteps: 100}, func(m *mc.M) {
		var stop atomics.Bool
		m.Go(func() {
			for !stop.Load() {
			}
		})
	})
	if !strings.HasPrefix(r.Failure, "livelock") {
		t.Errorf("%v %q", r, r.Failure)
	}
}

func TestForgottenWakeUpIsADeadlock(t *testing.T) {
	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		e := atomics.MakeEvent()
		var claimed atomics.Bool
		m.Name("event", &e)
		m.Go(func() {
			if claimed.CompareAndSwap(false, true) && m.Fault(mc.Error) == nil {
				e.Fire() // a failure forgets the waiters
			}
		})
		m.Go(func() { e.Wait() })
	})
	if !strings.HasPrefix(r.Failure, "deadlock") || !strings.Contains(r.Trace, "event.Wait() waits for ever") ||
		!strings.Contains(r.Trace, "Choose(2) = 1") {
		t.Errorf("%v %q\n%s", r, r.Failure, r.Trace)
	}
}

func TestPanicOfAThreadIsAFailure(t *testing.T) {
	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		var n atomics.Int32
		m.Go(func() {
			if n.Add(1) == 2 {
				panic("second")
			}
		})
		m.Go(func() { n.Add(1) })
	})
	if r.Failure != "T0 panicked: second" {
		t.Errorf("%v %q", r, r.Failure)
	}
}

func TestBodyThatIsNotDeterministicIsTold(t *testing.T) {
	runs := 0
	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		runs++
		var a, b atomics.Bool
		for _, w := range []*atomics.Bool{&a, &b} {
			m.Go(func() {
				if w.Store(true); runs%2 == 0 {
					a.Load()
				}
				b.Store(true)
			})
		}
	})
	if !strings.Contains(r.Failure, "not deterministic") {
		t.Errorf("%v %q", r, r.Failure)
	}
}

func TestTooManyExecutionsFailTheTest(t *testing.T) {
	probe := &recorder{TB: t}
	mc.Check(probe, mc.Config{MaxSchedules: 2}, func(m *mc.M) {
		var n atomics.Int64
		m.Go(func() { n.Add(n.Load()) })
		m.Go(func() { n.Add(n.Load()) })
	})
	if len(probe.errors) != 1 || !strings.Contains(probe.errors[0], "not everything was explored") {
		t.Errorf("errors: %q", probe.errors)
	}
}

func TestWaitGroupAndTally(t *testing.T) {
	mc.Check(t, mc.Config{}, func(m *mc.M) {
		var wg atomics.WaitGroup
		var done mc.Tally
		wg.Add(2)
		for range 2 {
			m.Go(func() { done.Add(1); wg.Done() })
		}
		m.Go(func() {
			wg.Wait()
			if done.Value() != 2 {
				m.Failf("Wait returned after %d", done.Value())
			}
		})
	})
}

// What fails leaves no goroutine behind, and what its deferred functions do on
// the way out is not part of the failure.
func TestFailuresLeaveNothingBehind(t *testing.T) {
	defer leftBehind(t, runtime.NumGoroutine())
	for name, body := range map[string]func(m *mc.M, e *atomics.Event){
		"deadlock": func(m *mc.M, e *atomics.Event) {
			var mu atomics.Mutex
			data := 0
			for range 2 {
				m.Go(func() {
					defer func() { recover(); data++; mu.Unlock(); data++ }()
					defer mu.Unlock()
					defer atomics.Go(func() {})
					defer m.Choose(2)
					mu.Lock()
					e.Wait()
				})
			}
		},
		"livelock": func(m *mc.M, e *atomics.Event) {
			m.Go(func() {
				for !e.Fired() {
				}
			})
			m.Go(e.Wait)
		},
		"no race": func(m *mc.M, e *atomics.Event) {
			data := 0
			m.Go(func() { defer func() { data++ }(); e.Wait() })
			m.Go(func() { data = 1; e.Wait() })
		},
		"body":  func(m *mc.M, e *atomics.Event) { atomics.Go(e.Wait); e.Wait() },
		"final": func(m *mc.M, e *atomics.Event) { m.Final(func() { atomics.Go(e.Wait) }) },
	} {
		r := mc.Explore(mc.Config{}, func(m *mc.M) {
			e := atomics.MakeEvent()
			body(m, &e)
		})
		if !strings.Contains(r.Failure, "lock") || r.Trace == "" {
			t.Errorf("%s: %v %q", name, r, r.Failure)
		}
		if waits := strings.Count(r.Trace, "waits for ever"); waits != map[string]int{"deadlock": 2, "no race": 2, "body": 1, "final": 1}[name] && name != "livelock" {
			t.Errorf("%s: %d threads wait for ever:\n%s", name, waits, r.Trace)
		}
	}
	defer func() {
		if r := recover(); r != "body" {
			t.Errorf("the body's panic became %v", r)
		}
	}()
	mc.Explore(mc.Config{}, func(m *mc.M) {
		e := atomics.MakeEvent()
		atomics.Go(e.Wait)
		panic("body")
	})
}

func TestMisuse(t *testing.T) {
	defer leftBehind(t, runtime.NumGoroutine())
	for name, body := range map[string]func(*mc.M){
		"two explorations":        func(*mc.M) { mc.Explore(mc.Config{}, func(*mc.M) {}) },
		"a choice among none":     func(m *mc.M) { m.Choose(0) },
		"a choice among too many": func(m *mc.M) { m.Choose(65) },
		"too many threads": func(m *mc.M) {
			for range 25 {
				m.Go(func() {})
			}
		},
	} {
		func() {
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "mc: ") {
					t.Errorf("%s: panic %q", name, p)
				}
			}()
			mc.Explore(mc.Config{}, body)
		}()
	}
	mc.Check(t, mc.Config{}, func(m *mc.M) { m.Go(func() {}) }) // works on
}

// leftBehind fails the test if there are more goroutines than before.
func leftBehind(t *testing.T, before int) {
	// A thread hands over the turn just before it ends.
	for began := time.Now(); time.Since(began) < 10*time.Second; runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines were left behind", runtime.NumGoroutine()-before)
}

// recorder keeps errors from the test.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) { r.errors = append(r.errors, format) }

func TestTransfersOfWhatPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "mc: T40 panicked: here" {
			t.Errorf("panic: %v", r)
		}
	}()
	mc.Transfers(64, func() *atomics.Bool { return new(atomics.Bool) }, func(b *atomics.Bool, core int) {
		if b.Load(); core == 40 {
			panic("here")
		}
	})
}

// A goroutine that the checker does not know would be taken for whoever has
// the turn.
func TestForeignGoroutineIsTold(t *testing.T) {
	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		var n atomics.Int64
		m.Go(func() {
			n.Add(1)
			done := make(chan bool)
			go func() { n.Add(1); close(done) }()
			<-done
			n.Add(1)
		})
		m.Go(func() { n.Add(1) })
	})
	if !strings.Contains(r.Failure, "goroutine") {
		t.Errorf("%v %q", r, r.Failure)
	}
}
