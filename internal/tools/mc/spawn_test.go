//go:build modelcheck

package mc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// tell explores and returns what the body said in each execution, and how
// often.
func tell(t *testing.T, body func(m *mc.M, say func(...any))) map[string]int {
	t.Helper()
	said := map[string]int{}
	mc.Check(t, mc.Config{}, func(m *mc.M) {
		var words []string
		body(m, func(args ...any) { words = append(words, fmt.Sprint(args...)) })
		m.Final(func() { said[strings.Join(words, " ")]++ })
	})
	return said
}

func wantSaid(t *testing.T, said map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if said[w] == 0 {
			t.Errorf("no execution says %q", w)
		}
	}
	if len(said) != len(want) {
		t.Errorf("executions said %v, want %q", said, want)
	}
}

func TestWaitContextEndsByEither(t *testing.T) {
	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		ctx, cancel := atomics.WithCancel(context.Background())
		e := atomics.MakeEvent()
		m.Go(e.Fire)
		m.Go(cancel)
		m.Go(func() { say(e.WaitContext(ctx), ", fired: ", e.Fired()) })
	}), "<nil>, fired: true", "context canceled, fired: true", "context canceled, fired: false")

	never, ended := context.Background(), func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}()
	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		e := atomics.MakeEvent()
		m.Go(e.Fire)
		m.Go(func() { say(e.WaitContext(never)); say(e.WaitContext(ended)) })
	}), "<nil> <nil>", "<nil> context canceled")
	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		e := atomics.MakeEvent()
		m.Go(func() { say(e.WaitContext(ended)) })
	}), "context canceled")
}

func TestContextsEndOneAfterTheOther(t *testing.T) {
	type key string
	cause := errors.New("cause")
	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		parent, cancel := atomics.WithCancelCause(context.WithValue(context.Background(), key("key"), "value"))
		child, _ := atomics.WithCancel(context.WithValue(parent, key("other"), 1))
		never := atomics.MakeEvent()
		m.Go(func() { cancel(cause); cancel(nil) })
		m.Go(func() {
			say(parent.Err(), ", ", child.Err())
			never.WaitContext(child)
			say(child.Value(key("key")), child.Value(key("other")), ": ", context.Cause(child))
		})
	}), "<nil>, <nil> value1: cause", "<nil>, context canceled value1: cause",
		"context canceled, <nil> value1: cause", "context canceled, context canceled value1: cause")

	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		parent, cancel := atomics.WithCancel(context.Background())
		m.Go(cancel)
		m.Go(func() {
			child, end := atomics.WithCancel(parent)
			say(child.Err())
			end()
			say(child.Err())
		})
	}), "<nil> context canceled", "context canceled context canceled")

	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		parent, cancel := atomics.WithCancel(context.Background())
		a, _ := atomics.WithCancel(parent)
		b, _ := atomics.WithCancel(parent)
		kept, _ := atomics.WithCancel(context.WithoutCancel(parent))
		m.Go(cancel)
		m.Go(func() { say(a.Err() != nil, b.Err() != nil, a.Err() != nil, kept.Err()) })
	}), "false false false <nil>", "false false true <nil>", "false true false <nil>", "false true true <nil>",
		"true false true <nil>", "true true true <nil>")
}

func TestAfterFunc(t *testing.T) {
	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		var ran atomics.Bool
		ctx, cancel := atomics.WithCancel(context.Background())
		stop := atomics.AfterFunc(ctx, func() { ran.Store(true) })
		m.Go(cancel)
		m.Go(func() { say(ctx.Err() != nil, stop(), ran.Load(), stop()) })
	}), "false true false false", "true true false false", "false false false false", "false false true false",
		"true false false false", "true false true false")

	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		var ran atomics.Bool
		ctx, cancel := atomics.WithCancel(context.Background())
		cancel()
		m.Go(func() {
			stop := atomics.AfterFunc(ctx, func() { ran.Store(true) })
			say(stop(), ran.Load(), atomics.AfterFunc(context.Background(), nil)())
		})
	}), "false false true", "false true true")
}

func TestContextFromOutsideIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		e := atomics.MakeEvent()
		m.Go(func() { e.WaitContext(ctx) })
	})
	if !strings.Contains(r.Failure, "must be made by the seam") {
		t.Errorf("%v %q", r, r.Failure)
	}
}

func TestThreadsStartThreads(t *testing.T) {
	wantSaid(t, tell(t, func(m *mc.M, say func(...any)) {
		var n atomics.Int64
		m.Go(func() {
			n.Add(1)
			atomics.Go(func() {
				v := n.Add(1)
				atomics.Go(func() { say(v, n.Add(1)) })
			})
			n.Add(10)
		})
	}), "2 3", "2 13", "12 13")

	r := mc.Explore(mc.Config{}, func(m *mc.M) {
		var n atomics.Int64
		m.Name("n", &n)
		m.Go(func() {
			n.Add(1)
			atomics.Go(func() { atomics.Go(func() { n.Add(1); m.Failf("here") }) })
		})
	})
	for i, want := range []string{
		"T0            T1            T2",
		"n.Add(1) = 1                              mc/spawn_test.go:",
		"go T1                                     mc/spawn_test.go:",
		"              go T2                       mc/spawn_test.go:",
		"                            n.Add(1) = 2  mc/spawn_test.go:",
	} {
		if lines := strings.Split(r.Trace, "\n"); !strings.HasPrefix(lines[i], want) {
			t.Errorf("the trace does not show %q:\n%s", want, r.Trace)
		}
	}

	r = mc.Explore(mc.Config{}, func(m *mc.M) {
		var again func()
		again = func() { atomics.Go(again) }
		m.Go(again)
	})
	if !strings.HasSuffix(r.Failure, "mc: too many threads") {
		t.Errorf("%v %q", r, r.Failure)
	}
}

// The body and Final may call what starts goroutines and waits for them.
func TestBodyAndFinalWait(t *testing.T) {
	ask := func() int64 {
		var n atomics.Int64
		e := atomics.MakeEvent()
		atomics.Go(func() {
			n.Add(1)
			e.Fire()
			n.Add(1)
		})
		e.WaitContext(context.Background())
		return n.Load()
	}
	saw := map[string]int{}
	mc.Check(t, mc.Config{}, func(m *mc.M) {
		var b atomics.Bool
		before := ask()
		during := int64(0)
		m.Go(func() { during = ask() })
		m.Final(func() {
			saw[fmt.Sprint(before, during, ask())]++
			if m.Choose(2) == 1 {
				saw["choice"]++
			}
			atomics.Go(func() { b.Load(); saw["ran on"]++ })
		})
	})
	if saw["1 1 1"] != 2 || saw["1 2 1"] != 2 || saw["choice"] != 2 || saw["ran on"] != 4 || len(saw) != 4 {
		t.Errorf("%v", saw)
	}
	for name, body := range map[string]func(*mc.M){
		"body":  func(m *mc.M) { e := atomics.MakeEvent(); e.Wait() },
		"final": func(m *mc.M) { m.Final(func() { new(atomics.WaitGroup).Add(1); e := atomics.MakeEvent(); e.Wait() }) },
		"left":  func(m *mc.M) { m.Final(func() { atomics.Go(func() { e := atomics.MakeEvent(); e.Wait() }) }) },
		"spins": func(m *mc.M) {
			var b atomics.Bool
			m.Final(func() {
				atomics.Go(func() {
					for !b.Load() {
					}
				})
			})
		},
	} {
		if r := mc.Explore(mc.Config{}, body); !strings.Contains(r.Failure, "the body, or Final, waits for ever") {
			t.Errorf("%s: %v %q", name, r, r.Failure)
		}
	}
}
