//go:build modelcheck

package mc_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// world is everything that a random program shares.
type world struct {
	m     *mc.M
	x     [2]atomics.Uint64
	mu    atomics.Mutex
	other atomics.Mutex
	event atomics.Event
	fired atomics.Bool
	group atomics.WaitGroup
	table *table.Table[int, int]

	ctx    context.Context
	cancel context.CancelFunc
	ending atomics.Bool // somebody cancels, or has
}

// later is what a thread sees that an action has started.
type later struct{ seen any }

func (l *later) String() string { return fmt.Sprint("later ", l.seen) }

// start runs f in a thread of its own.
func start(f func() any) *later {
	l := new(later)
	atomics.Go(func() { l.seen = f() })
	return l
}

// span is when an operation took place. Only what was over before what shows.
type span struct{ begin, end int64 }

func (s span) String() string { return "span" }

func precedences(seen [][]any) (order []bool) {
	for _, as := range seen {
		for _, a := range as {
			for _, bs := range seen {
				for _, b := range bs {
					a, ok1 := a.(span)
					b, ok2 := b.(span)
					order = append(order, ok1 && ok2 && a.end < b.begin)
				}
			}
		}
	}
	return order
}

type action struct {
	kind, arg int
}

// actions are what the threads of a random program do. Each returns what its
// thread sees.
var actions = []func(*world, int) any{
	func(w *world, i int) any { return w.x[i].Load() },
	func(w *world, i int) any { w.x[i].Store(uint64(i) + 3); return nil },
	func(w *world, i int) any { return w.x[i].Add(1) },
	func(w *world, i int) any { return w.x[i].Swap(7) },
	func(w *world, i int) any { return w.x[i].CompareAndSwap(uint64(i), 1) },
	func(w *world, i int) any {
		w.mu.Lock()
		defer w.mu.Unlock()
		v := w.x[i].Load() + 1
		w.x[i].Store(v)
		return v
	},
	func(w *world, i int) any {
		if !w.mu.TryLock() {
			return "busy"
		}
		defer w.mu.Unlock()
		return w.x[i].Add(1)
	},
	func(w *world, _ int) any {
		if w.fired.CompareAndSwap(false, true) {
			w.event.Fire()
		}
		return w.event.Fired()
	},
	func(w *world, i int) any {
		if w.fired.Load() {
			w.event.Wait()
			return w.x[i].Load()
		}
		return w.event.Fired()
	},
	func(w *world, i int) any {
		w.group.Add(1)
		v := w.x[i].Add(1)
		w.group.Done()
		return v
	},
	func(w *world, i int) any { w.group.Wait(); return w.x[i].Load() },
	func(w *world, i int) any {
		if w.m.Choose(2) == 0 {
			return w.x[i].Add(1)
		}
		return w.x[1-i].Load()
	},
	func(w *world, i int) any { w.m.Advance(time.Duration(i + 1)); return atomics.Now().Nanosecond() },
	func(w *world, i int) any {
		begin := w.m.Begin()
		w.x[i].Load()
		return span{begin, w.m.End()}
	},
	func(w *world, i int) any { v := i; a, l := w.table.LoadOrStore(i, &v); return [...]any{*a, l} },
	func(w *world, i int) any { return w.table.LoadAndDelete(i) != nil },
	func(w *world, i int) any { return w.table.Load(i) != nil },
	func(w *world, i int) any {
		old := w.table.Load(1 - i)
		return w.table.CompareAndSwap(1-i, old, new(int))
	},
	func(w *world, i int) any {
		return w.table.Compute(i, func(now *int) *int {
			v := int(w.x[i].Load())
			if now != nil {
				v += *now + 1
			}
			return &v
		}) != nil
	},
	func(w *world, i int) any {
		return w.table.Compute(i, func(now *int) *int { return now }) != nil
	},
	func(w *world, _ int) any { return w.table.Len() },
	func(w *world, _ int) any { return maps.Collect(w.table.All()) == nil },
	func(w *world, _ int) any {
		var keys []int
		for k := range w.table.All() {
			keys = append(keys, k)
		}
		return keys
	},
}

// risky actions can wait for ever. An exploration ends with the first
// execution that does, so that only verdicts can be compared.
var risky = append([]func(*world, int) any{
	func(w *world, i int) any {
		first, second := &w.mu, &w.other
		if i == 1 {
			first, second = second, first
		}
		first.Lock()
		second.Lock()
		//lint:ignore SA2001 nothing is guarded
		second.Unlock()
		first.Unlock()
		return nil
	},
	func(w *world, _ int) any { w.event.Wait(); return nil },
	func(w *world, i int) any {
		if i == 1 {
			w.cancel()
		}
		return w.event.WaitContext(w.ctx)
	},
	func(w *world, i int) any {
		w.mu.Lock()
		w.m.Fault(mc.Goexit)
		w.mu.Unlock()
		return nil
	},
	func(w *world, i int) any {
		return start(func() any {
			if w.x[i].Load() == 1 {
				w.event.Wait()
			}
			return nil
		})
	},
	func(w *world, i int) any {
		if w.x[i].Load() == 0 {
			w.group.Add(1)
		}
		return nil
	},
}, actions[:12]...)

// outcomes explores a program and returns everything that can be seen of it.
func outcomes(cfg mc.Config, actions []func(*world, int) any, program [][]action) (map[string]bool, mc.Result) {
	set := map[string]bool{}
	r := mc.Explore(cfg, func(m *mc.M) {
		w := &world{m: m, event: atomics.MakeEvent()}
		w.ctx, w.cancel = atomics.WithCancel(context.Background())
		w.table = table.New[int, int](func(k int, _ uint64) uint64 { return uint64(k) }, 0)
		w.table.Swap(0, new(int))
		seen := make([][]any, len(program))
		for i, thread := range program {
			m.Go(func() {
				for _, a := range thread {
					seen[i] = append(seen[i], actions[a.kind](w, a.arg))
				}
			})
		}
		m.Final(func() {
			set[fmt.Sprint(seen, precedences(seen), w.x[0].Load(), w.x[1].Load(), w.table.Len(), w.ctx.Err())] = true
		})
	})
	return set, r
}

// randomProgram draws from all actions, or from a few, which collide more.
func randomProgram(seed uint64, actions int) [][]action {
	r := rand.New(rand.NewPCG(1, seed))
	palette := r.Perm(actions)
	if r.IntN(2) == 0 {
		palette = palette[:1+r.IntN(4)]
	}
	words := 1 + r.IntN(2)
	program := make([][]action, 2+r.IntN(3))
	for i := range program {
		for range 1 + r.IntN(5-len(program)) {
			program[i] = append(program[i], action{palette[r.IntN(len(palette))], r.IntN(words)})
		}
	}
	return program
}

// ended are the actions that start threads, and those about contexts.
var ended = []func(*world, int) any{
	func(w *world, _ int) any { w.ending.Store(true); w.cancel(); return nil },
	func(w *world, _ int) any {
		if !w.fired.Swap(true) {
			w.event.Fire()
		}
		return nil
	},
	func(w *world, i int) any {
		if w.fired.Load() || i == 1 && w.ending.Load() {
			return w.event.WaitContext(w.ctx)
		}
		return nil
	},
	func(w *world, i int) any {
		if w.ending.Load() {
			return [...]any{w.event.WaitContext(w.ctx), w.event.Fired()}
		}
		return w.x[i].Add(1)
	},
	func(w *world, _ int) any { return w.ctx.Err() },
	func(w *world, i int) any {
		ctx, cancel := atomics.WithCancel(w.ctx)
		if i == 1 {
			cancel()
		}
		return start(func() any { return ctx.Err() })
	},
	func(w *world, i int) any {
		stop := atomics.AfterFunc(w.ctx, func() { w.x[i].Add(4) })
		if i == 0 {
			return stop()
		}
		return w.x[i].Load()
	},
	func(w *world, i int) any {
		l := start(func() any { return w.x[i].Add(1) })
		return [...]any{l, w.x[0].Load()}
	},
	func(w *world, i int) any { return start(func() any { return w.x[i].Swap(3) }) },
	func(w *world, i int) any {
		e := atomics.MakeEvent()
		l := start(func() any { w.x[i].Add(1); e.Fire(); return w.x[i].Load() })
		return [...]any{l, e.WaitContext(w.ctx)}
	},
	func(w *world, i int) any { return w.x[i].Load() },
	func(w *world, i int) any { return w.x[i].Add(1) },
}

// palette is the actions that random programs draw from.
type palette struct {
	name    string
	actions []func(*world, int) any
}

var palettes = []palette{{"words", actions[:5]}, {"held", held}, {"either", ended[:5]}, {"started", ended}, {"faults", faults}, {"all", actions}}

// faults are the actions that end in other ways than by returning. After a
// Goexit the rest of the thread does not happen.
var faults = []func(*world, int) any{
	func(w *world, i int) (result any) {
		defer func() { result = [...]any{recover(), result} }()
		w.mu.Lock()
		defer w.mu.Unlock()
		if err := w.m.Fault(mc.Error, mc.Panic, mc.Goexit); err != nil {
			return err
		}
		return w.x[i].Add(1)
	},
	func(w *world, i int) any {
		w.group.Add(1)
		defer w.group.Done()
		w.m.Fault(mc.Goexit)
		return w.x[i].Add(1)
	},
	func(w *world, i int) any { w.group.Wait(); return w.x[i].Load() },
	func(w *world, i int) any {
		e := atomics.MakeEvent()
		l := start(func() any {
			defer e.Fire()
			w.x[i].Add(1)
			return w.m.Fault(mc.Error, mc.Goexit)
		})
		e.Wait()
		return [...]any{l, w.x[i].Load()}
	},
	func(w *world, i int) any {
		if i == 1 {
			defer w.x[0].Store(5)
			runtime.Goexit()
		}
		return w.x[0].Load()
	},
	func(w *world, i int) any { return [...]any{w.m.Jump(1, 5), atomics.Now().Nanosecond()} },
	func(w *world, i int) any { return w.x[i].Swap(3) },
}

// held are the actions whose place depends on a mutex and on a second word.
var held = []func(*world, int) any{
	func(w *world, i int) any {
		return w.table.Compute(i, func(now *int) *int {
			if w.x[0].Load() == 0 && now != nil {
				return nil
			}
			return new(int)
		}) != nil
	},
	func(w *world, _ int) any { return w.table.Len() },
	func(w *world, i int) any { return w.table.LoadAndDelete(i) != nil },
	func(w *world, i int) any { _, loaded := w.table.LoadOrStore(i, new(int)); return loaded },
	func(w *world, i int) any { return w.table.Swap(i, new(int)) != nil },
	func(w *world, i int) any { return w.table.Load(i) != nil },
	func(w *world, _ int) any { return w.x[0].Add(1) },
}
