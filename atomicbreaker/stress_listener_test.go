//go:build !modelcheck

package atomicbreaker_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// ears count what a listener is told of one breaker. A listener that is called
// twice at a time races on them.
type ears struct {
	last    ab.Event
	to      [3]int
	inside  bool
	trouble string
}

// hear also takes a first generation after a departure or a ResetAll.
func (e *ears) hear(v ab.Event) {
	switch {
	case e.inside:
		e.trouble = "two at a time"
	case v.From != e.last.To || v.Generation != e.last.Generation+1 && (v.Generation != 1 || v.From != ab.Closed):
		e.trouble = fmt.Sprintf("%v of generation %d after %v of %d", v, v.Generation, e.last, e.last.Generation)
	}
	e.inside = true
	e.last = v
	e.to[v.To]++
	runtime.Gosched()
	e.inside = false
}

// With everybody changing few breakers, whose listeners now and then panic or
// change something themselves, each listener is told of every change once and
// in order, and no goroutine stays behind.
//
// Reported bug 37, bytedance/gopkg, cep21/circuit: events out of order.
// Checks I19, I20, I21, I22.
func TestT37_StressListeners(t *testing.T) {
	before := runtime.NumGoroutine()
	for round := range rounds(40) {
		const keys = 3
		var heard [keys]ears
		var g *ab.Group[int]
		g = ab.MustNewGroup(ab.GroupConfig[int]{
			Default: ab.Config{Policy: ab.Consecutive(1 + round%2), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, ProbeTimeout: 1},
			OnStateChange: func(k int, v ab.Event) {
				heard[k].hear(v)
				switch {
				case v.Generation%17 == 3:
					g.Reset(k)
				case v.Generation%31 == 5:
					panic(errBoom)
				}
			},
		})
		together(6, func(id int) {
			r := rand.New(rand.NewPCG(uint64(id), uint64(round)))
			for i := range 400 {
				func() {
					defer func() {
						if p := recover(); p != nil && p != any(errBoom) {
							panic(p)
						}
					}()
					k := r.IntN(keys)
					switch r.IntN(12) {
					case 0, 1:
						g.RecordFailure(k)
					case 2:
						g.RecordSuccess(k)
					case 3:
						g.Reset(k)
					case 4:
						if i%20 == 0 {
							g.ResetAll()
						}
					case 5:
						g.Sweep()
					default:
						p, err := g.Allow(k)
						if jitter(i); err == nil {
							[]func() ab.Verdict{p.Failure, p.Success, p.Cancel}[r.IntN(3)]()
						}
					}
				}()
			}
		})
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
		for k := range heard {
			if heard[k].trouble != "" {
				t.Fatalf("key %d: %s", k, heard[k].trouble)
			}
			if s := g.State(k); s != heard[k].last.To && (s != ab.HalfOpen || heard[k].last.To != ab.Open) {
				t.Fatalf("key %d is %v, and the last event was %v", k, s, heard[k].last)
			}
		}
	}
	for runtime.NumGoroutine() > before {
		runtime.Gosched() // until together's have ended
	}
}

// Every Tripped is one event to Open, every Recovered one to Closed.
//
// Reported bug 38, Polly, rubyist/circuitbreaker: events twice or never.
func TestT38_StressEventsMatchVerdicts(t *testing.T) {
	for round := range rounds(60) {
		var heard ears
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, Probes: 2, CloseAfter: 2, OnStateChange: heard.hear})
		var verdicts [4]atomic.Int64
		var resets atomic.Int64
		together(4, func(id int) {
			r := rand.New(rand.NewPCG(uint64(id), uint64(round)))
			for i := range 500 {
				if r.IntN(40) == 0 {
					b.Reset()
					resets.Add(1)
				}
				p, err := b.Allow()
				if jitter(i); err == nil {
					verdicts[[]func() ab.Verdict{p.Failure, p.Success}[r.IntN(2)]()].Add(1)
				}
			}
		})
		closings := verdicts[ab.Recovered].Load() + resets.Load()
		if heard.trouble != "" || int64(heard.to[ab.Open]) != verdicts[ab.Tripped].Load() || int64(heard.to[ab.Closed]) != closings {
			t.Fatalf("%s: events to %v, %d tripped, %d closed", heard.trouble, heard.to, verdicts[ab.Tripped].Load(), closings)
		}
		if gen := b.Snapshot().Generation; gen != heard.to[0]+heard.to[1]+heard.to[2] {
			t.Fatalf("%v events, generation %d", heard.to, gen)
		}
	}
}
