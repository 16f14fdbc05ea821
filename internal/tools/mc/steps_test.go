//go:build modelcheck

package mc_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What README.md says takes a step does: a thread that takes n of them can be
// met in n+1 places by one that takes one step of its own.
func TestWhatCountsAsAStep(t *testing.T) {
	for name, c := range map[string]struct {
		steps int
		op    func(w *world)
	}{
		"nothing":          {0, func(*world) {}},
		"load":             {1, func(w *world) { w.x[0].Load() }},
		"store":            {1, func(w *world) { w.x[0].Store(1) }},
		"swap":             {1, func(w *world) { w.x[0].Swap(1) }},
		"add":              {1, func(w *world) { w.x[0].Add(1) }},
		"and, or":          {2, func(w *world) { w.x[0].And(1); w.x[0].Or(1) }},
		"compare-and-swap": {1, func(w *world) { w.x[0].CompareAndSwap(0, 1) }},
		"one that fails":   {1, func(w *world) { w.x[0].CompareAndSwap(1, 2) }},
		"bool": {4, func(w *world) {
			w.fired.Load()
			w.fired.Store(true)
			w.fired.Swap(false)
			w.fired.CompareAndSwap(true, false)
		}},
		"pointer": {4, func(*world) {
			p := new(atomics.Pointer[int])
			p.Load()
			p.Store(nil)
			p.Swap(nil)
			p.CompareAndSwap(nil, nil)
		}},
		"mutex":                {3, func(w *world) { w.mu.Lock(); w.mu.TryLock(); w.mu.Unlock() }},
		"event":                {4, func(w *world) { w.event.Fired(); w.event.Fire(); w.event.Wait(); w.event.WaitContext(w.ctx) }},
		"event, no context":    {2, func(w *world) { w.event.Fire(); w.event.WaitContext(context.Background()) }},
		"wait group":           {3, func(w *world) { w.group.Add(1); w.group.Done(); w.group.Wait() }},
		"context":              {3, func(w *world) { w.ctx.Err(); w.cancel(); w.event.WaitContext(w.ctx) }},
		"no context":           {0, func(*world) { _, cancel := atomics.WithCancel(context.Background()); _ = cancel }},
		"child, grandchild":    {5, func(w *world) { c, _ := atomics.WithCancel(w.ctx); atomics.WithCancel(c); w.cancel() }},
		"after func, stop":     {2, func(w *world) { atomics.AfterFunc(w.ctx, nil)() }},
		"after func":           {3, func(w *world) { atomics.AfterFunc(w.ctx, func() {}); w.cancel() }},
		"go":                   {0, func(*world) { atomics.Go(func() {}) }},
		"go and a load":        {1, func(w *world) { atomics.Go(func() { w.x[1].Load() }) }},
		"clock":                {3, func(w *world) { w.m.Advance(1); atomics.Since(atomics.Now()) }},
		"choice":               {1, func(w *world) { w.m.Choose(1); w.m.Choose(1) }}, // to start with one is a step
		"begin, end":           {2, func(w *world) { w.m.Begin(); w.m.End() }},
		"table":                {4, func(w *world) { w.table.Load(1); w.table.LoadOrStore(1, new(int)); w.table.Swap(1, nil); w.table.Len() }},
		"table, delete":        {2, func(w *world) { w.table.LoadAndDelete(0); w.table.CompareAndDelete(0, new(int)) }},
		"compute":              {1, func(w *world) { w.table.Compute(1, func(now *int) *int { return now }) }},
		"compute with a step":  {3, func(w *world) { w.table.Compute(1, func(now *int) *int { w.x[0].Load(); return now }) }},
		"iterate over one key": {4, func(w *world) { _ = maps.Collect(w.table.All()) }},
	} {
		r := mc.Explore(mc.Config{Mode: mc.Bounded, Preemptions: mc.Unbounded}, func(m *mc.M) {
			w := &world{m: m, event: atomics.MakeEvent()}
			w.ctx, w.cancel = atomics.WithCancel(context.Background())
			w.table = table.New[int, int](func(k int, _ uint64) uint64 { return uint64(k) }, 0)
			w.table.Swap(0, new(int))
			m.Go(func() { c.op(w) })
			m.Go(func() { new(atomics.Bool).Load() })
		})
		if r.Schedules != c.steps+1 || r.Failure != "" {
			t.Errorf("%s: %d steps, want %d; %s", name, r.Schedules-1, c.steps, r.Failure)
		}
	}
}

// Threads that have nothing to do with each other can be interleaved in as
// many ways as combinatorics says, and need not be interleaved at all.
func TestExecutionsOfStrangers(t *testing.T) {
	for _, steps := range [][]int{{1}, {1, 1}, {2, 3}, {2, 2, 2}, {1, 2, 3}, {1, 1, 1, 1, 1}} {
		body := func(m *mc.M) {
			for _, n := range steps {
				m.Go(func() {
					var own atomics.Bool
					for range n {
						own.Store(true)
					}
				})
			}
		}
		ways, sum := 1, 0
		for _, n := range steps {
			for i := range n {
				sum++
				ways = ways * sum / (i + 1)
			}
		}
		all := mc.Explore(mc.Config{Mode: mc.Bounded, Preemptions: mc.Unbounded}, body)
		if reduced := mc.Explore(mc.Config{}, body); all.Schedules != ways || reduced.Schedules != 1 {
			t.Errorf("%v steps: %d executions, want %d; reduced %d, want 1", steps, all.Schedules, ways, reduced.Schedules)
		}
	}
}

// plainly are the actions on words, on words that nobody else touches.
var plainly = []func(x *[2]uint64, i int) any{
	func(x *[2]uint64, i int) any { return x[i] },
	func(x *[2]uint64, i int) any { x[i] = uint64(i) + 3; return nil },
	func(x *[2]uint64, i int) any { x[i]++; return x[i] },
	func(x *[2]uint64, i int) any { old := x[i]; x[i] = 7; return old },
	func(x *[2]uint64, i int) any {
		if x[i] != uint64(i) {
			return false
		}
		x[i] = 1
		return true
	},
}

// The checker sees what a recursion sees that knows nothing of threads.
func TestOutcomesOfWords(t *testing.T) {
	for seed := range programs(100) {
		program := randomProgram(seed, len(plainly))
		want := map[string]bool{}
		var interleave func(x [2]uint64, done []int, seen [][]any)
		interleave = func(x [2]uint64, done []int, seen [][]any) {
			ended := true
			for i, thread := range program {
				if done[i] == len(thread) {
					continue
				}
				ended = false
				next, a := x, thread[done[i]]
				done[i]++
				seen[i] = append(seen[i], plainly[a.kind](&next, a.arg))
				interleave(next, done, seen)
				seen[i] = seen[i][:done[i]-1]
				done[i]--
			}
			if ended {
				want[fmt.Sprint(seen, x)] = true
			}
		}
		interleave([2]uint64{}, make([]int, len(program)), make([][]any, len(program)))
		for _, cfg := range []mc.Config{{}, {Mode: mc.Bounded, Preemptions: mc.Unbounded}} {
			got := map[string]bool{}
			mc.Explore(cfg, func(m *mc.M) {
				w := &world{m: m}
				seen := make([][]any, len(program))
				for i, thread := range program {
					m.Go(func() {
						for _, a := range thread {
							seen[i] = append(seen[i], actions[a.kind](w, a.arg))
						}
					})
				}
				m.Final(func() { got[fmt.Sprint(seen, [2]uint64{w.x[0].Load(), w.x[1].Load()})] = true })
			})
			if !maps.Equal(got, want) {
				t.Errorf("seed %d: %v\nwant: %s\ngot: %s", seed, program, sorted(want), sorted(got))
			}
		}
	}
}
