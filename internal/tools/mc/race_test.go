//go:build modelcheck && race

package mc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// publications hand a plain word from one thread to another. The race detector
// must report the racy ones in every process, although the scheduler runs one
// thread at a time, and must have nothing to say about the others.
var publications = []struct {
	name string
	racy bool
	body func(m *mc.M, data *int)
}{
	{"flag", false, func(m *mc.M, data *int) {
		var ready atomics.Bool
		m.Go(func() { *data = 1; ready.Store(true) })
		m.Go(func() {
			if ready.Load() {
				_ = *data
			}
		})
	}},
	{"flag too early", true, func(m *mc.M, data *int) {
		var ready atomics.Bool
		m.Go(func() { ready.Store(true); *data = 1 })
		m.Go(func() {
			if ready.Load() {
				*data = 2
			}
		})
	}},
	{"a thread after one that has ended", true, func(m *mc.M, data *int) {
		var other atomics.Bool
		m.Go(func() { *data = 1 })
		m.Go(func() { other.Load(); atomics.Go(func() { *data = 2 }) })
	}},
	{"flag read elsewhere", true, func(m *mc.M, data *int) {
		var ready, other atomics.Bool
		m.Go(func() { *data = 1; ready.Store(true) })
		m.Go(func() { other.Load(); *data = 2 })
	}},
	{"mutex", false, func(m *mc.M, data *int) {
		var mu atomics.Mutex
		inc := func() { mu.Lock(); *data++; mu.Unlock() }
		m.Go(inc)
		m.Go(inc)
	}},
	{"two mutexes", true, func(m *mc.M, data *int) {
		var mu, other atomics.Mutex
		m.Go(func() { mu.Lock(); *data++; mu.Unlock() })
		m.Go(func() { other.Lock(); *data++; other.Unlock() })
	}},
	{"event", false, func(m *mc.M, data *int) {
		e := atomics.MakeEvent()
		m.Go(func() { *data = 1; e.Fire() })
		m.Go(func() { e.Wait(); *data = 2 })
	}},
	{"event too early", true, func(m *mc.M, data *int) {
		e := atomics.MakeEvent()
		m.Go(func() { e.Fire(); *data = 1 })
		m.Go(func() { e.Wait(); *data = 2 })
	}},
	{"event seen while it blocks others", true, func(m *mc.M, data *int) {
		e := atomics.MakeEvent()
		var other atomics.Bool
		m.Go(func() { *data = 1; e.Fire() })
		m.Go(func() { e.Wait() })
		m.Go(func() { other.Load(); *data = 2 }) // schedules the waiter, learns nothing
	}},
	{"wait group", false, func(m *mc.M, data *int) {
		var wg atomics.WaitGroup
		wg.Add(1)
		m.Go(func() { *data = 1; wg.Done() })
		m.Go(func() { wg.Wait(); *data = 2 })
	}},
	{"choice", true, func(m *mc.M, data *int) {
		write := func() { m.Choose(2); *data++ }
		m.Go(write)
		m.Go(write)
	}},
	{"clock", true, func(m *mc.M, data *int) {
		m.Go(func() { m.Advance(1); *data++ })
		m.Go(func() { atomics.Now(); *data++ })
	}},
	{"table", false, func(m *mc.M, _ *int) {
		t := table.New[int, int](func(k int, _ uint64) uint64 { return uint64(k) }, 0)
		m.Go(func() { n := new(int); *n = 1; t.Swap(1, n) })
		m.Go(func() {
			if n := t.Load(1); n != nil {
				_ = *n
			}
		})
		m.Go(func() {
			for _, n := range t.All() {
				_ = *n
			}
			t.Compute(1, func(now *int) *int { return now })
		})
	}},
	{"table, other key", true, func(m *mc.M, data *int) {
		t := table.New[int, int](func(k int, _ uint64) uint64 { return 1 }, 0)
		m.Go(func() { *data = 1; t.Swap(1, new(int)) })
		m.Go(func() {
			for t.Len() == 0 {
				return
			}
			t.Load(2)
			*data = 2
		})
	}},
	{"no steps", true, func(m *mc.M, data *int) {
		m.Go(func() { *data++ })
		m.Go(func() { *data++ })
	}},
	{"before the first step", true, func(m *mc.M, data *int) {
		var one, other atomics.Bool
		m.Go(func() { *data++; one.Load() })
		m.Go(func() { *data++; other.Load() })
	}},
	{"after the last step", true, func(m *mc.M, data *int) {
		var one, other atomics.Bool
		m.Go(func() { one.Load(); *data++ })
		m.Go(func() { other.Load(); *data++ })
	}},
	{"over before it takes a step", true, func(m *mc.M, data *int) {
		m.Go(func() { atomics.Go(func() { *data = 1 }); *data = 2 })
	}},
	{"left behind by the body", true, func(m *mc.M, data *int) {
		e, last := atomics.MakeEvent(), atomics.MakeEvent()
		atomics.Go(func() { e.Fire(); *data = 1; last.Wait(); last.Wait() })
		m.Go(last.Fire)
		e.Wait()
		*data = 2
	}},
	{"go statement", false, func(m *mc.M, data *int) {
		var other atomics.Bool
		m.Go(func() {
			other.Load()
			*data = 1
			atomics.Go(func() { *data = 2; other.Load(); *data = 3 })
			other.Load()
		})
	}},
	{"go statement too early", true, func(m *mc.M, data *int) {
		var other atomics.Bool
		m.Go(func() {
			other.Load()
			atomics.Go(func() { other.Load(); *data = 2 })
			*data = 1
		})
	}},
	{"end of what was started", true, func(m *mc.M, data *int) {
		var other atomics.Bool
		m.Go(func() {
			atomics.Go(func() { other.Load(); *data = 1 })
			other.Load()
			other.Load()
			*data = 2
		})
	}},
	{"wait that a context ends", true, func(m *mc.M, data *int) {
		ctx, cancel := atomics.WithCancel(context.Background())
		e := atomics.MakeEvent()
		m.Go(func() { *data = 1; e.Fire() })
		m.Go(cancel)
		m.Go(func() { e.WaitContext(ctx); *data = 2 })
	}},
	{"wait that an event ends", false, func(m *mc.M, data *int) {
		ctx, cancel := atomics.WithCancel(context.Background())
		e := atomics.MakeEvent()
		m.Go(func() { *data = 1; e.Fire() })
		m.Go(cancel)
		m.Go(func() {
			if e.WaitContext(ctx) == nil {
				*data = 2
			}
		})
	}},
	{"context", false, func(m *mc.M, data *int) {
		ctx, cancel := atomics.WithCancel(context.Background())
		child, _ := atomics.WithCancel(ctx)
		m.Go(func() { *data = 1; cancel() })
		m.Go(func() {
			if child.Err() != nil {
				*data = 2
			}
		})
	}},
	{"context too early", true, func(m *mc.M, data *int) {
		ctx, cancel := atomics.WithCancel(context.Background())
		m.Go(func() { cancel(); *data = 1 })
		m.Go(func() {
			if ctx.Err() != nil {
				*data = 2
			}
		})
	}},
	{"after func", false, func(m *mc.M, data *int) {
		ctx, cancel := atomics.WithCancel(context.Background())
		m.Go(func() { *data = 1; atomics.AfterFunc(ctx, func() { *data = 2 }) })
		m.Go(cancel)
	}},
	{"after func that was not stopped", true, func(m *mc.M, data *int) {
		ctx, cancel := atomics.WithCancel(context.Background())
		m.Go(func() { atomics.AfterFunc(ctx, func() { *data = 2 })(); *data = 1 })
		m.Go(cancel)
	}},
	{"final", false, func(m *mc.M, data *int) {
		m.Final(func() {
			e := atomics.MakeEvent()
			atomics.Go(func() { *data = 1; e.Fire() })
			e.Wait()
			*data = 2
		})
	}},
	{"value written after it was stored", true, func(m *mc.M, _ *int) {
		t := table.New[int, int](func(k int, _ uint64) uint64 { return 1 }, 0)
		m.Go(func() { n := new(int); t.LoadOrStore(1, n); *n = 1 })
		m.Go(func() {
			if n := t.LoadAndDelete(1); n != nil {
				*n = 2
			}
		})
	}},
}

const underRace = true

const child = "MC_RACE_CHILD"

// TestRaceChild is the body of the processes that TestRaceDetector starts.
func TestRaceChild(t *testing.T) {
	for _, p := range publications {
		if p.name != os.Getenv(child) {
			continue
		}
		for _, cfg := range []mc.Config{{}, {Mode: mc.Bounded, Preemptions: 1}, {Mode: mc.PCT, Runs: 50}} {
			mc.Check(t, cfg, func(m *mc.M) { p.body(m, new(int)) })
		}
	}
}

func TestRaceDetector(t *testing.T) {
	for _, p := range publications {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestRaceChild$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s", child, p.name), "GORACE=halt_on_error=0 atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			reported := strings.Contains(string(out), "WARNING: DATA RACE") &&
				strings.Contains(string(out), "data race, reported above") &&
				strings.Contains(string(out), "T0") && err != nil
			if reported != p.racy || !p.racy && err != nil {
				t.Errorf("reported = %v, want %v; %v\n%s", reported, p.racy, err, out)
			}
		})
	}
}
