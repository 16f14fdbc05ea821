package history

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A Trial is one use of one fresh shared value.
type Trial[S comparable] struct {
	Init    S                // the model's first state, for every key
	Whole   bool             // check the history of all keys as one, as WholeEvents need; a few keys and operations
	Before  func()           // what is done first, or nil
	Clients int              // goroutines
	Work    func(*Client[S]) // what each of them does
	After   func(*Client[S]) // what is done when they are through, or nil
	Value   any              // holds tables whose resizes are counted, or is nil
	Bubble  bool             // in a synctest bubble, whose clock stands while a client runs
}

// hung is how long a trial may take, which takes milliseconds if nobody hangs.
// A test makes it less.
var hung = time.Minute

// outcome is what came of a trial.
type outcome[S comparable] struct {
	init          S
	seed          uint64
	procs         int
	whole         bool
	parts         map[int][]record[S] // by key, or all as one
	wrong         []string
	grown, shrunk int64
}

// run runs the trial that fresh makes of a seed.
func run[S comparable](t *testing.T, seed uint64, fresh func(*rand.Rand) Trial[S]) (o outcome[S]) {
	o = outcome[S]{seed: seed, procs: runtime.GOMAXPROCS(0)}
	trial := fresh(rand.New(rand.NewPCG(seed, 0)))
	o.init, o.whole = trial.Init, trial.Whole
	if trial.Bubble {
		synctest.Test(t, func(*testing.T) { trial.run(&o) })
	} else {
		trial.run(&o)
	}
	return o
}

func (tr Trial[S]) run(o *outcome[S]) {
	if tr.Before != nil {
		tr.Before()
	}
	common := &shared{clients: tr.Clients, bubble: tr.Bubble}
	clients := make([]*Client[S], tr.Clients+1)
	for i := range clients {
		clients[i] = &Client[S]{
			Rand: rand.New(rand.NewPCG(o.seed, uint64(i)+1)), ID: i, trial: common,
			together: rand.New(rand.NewPCG(o.seed, 0)),
		}
	}
	var working sync.WaitGroup
	var waiting atomic.Int64
	waiting.Store(int64(tr.Clients))
	for _, c := range clients[:tr.Clients] {
		working.Add(1)
		go func() {
			defer working.Done()
			for waiting.Add(-1); waiting.Load() > 0; { // so that none is through before another begins
				runtime.Gosched()
			}
			c.survive(tr.Work)
		}()
	}
	through := make(chan struct{})
	go func() { working.Wait(); close(through) }()
	select {
	case <-through:
	case <-time.After(hung):
		o.wrong = []string{fmt.Sprintf("some operation does not return; all goroutines:\n%s", stacks())}
		return // and do not touch what the clients may still write
	}
	if tr.After != nil {
		clients[tr.Clients].survive(tr.After)
	}
	var all []record[S]
	for _, c := range clients {
		all = append(all, c.history...)
		o.wrong = append(o.wrong, c.wrong...)
		if c.incomplete {
			return
		}
	}
	o.parts = parts(all, tr.Whole)
	if tr.Value != nil {
		o.grown, o.shrunk = Resizes(tr.Value)
	}
}

// survive runs f, which must return.
func (c *Client[S]) survive(f func(*Client[S])) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			c.Errorf("panics: %v\n%s", p, debug.Stack())
		} else if !returned {
			c.Errorf("exits")
		}
		c.incomplete = !returned
	}()
	f(c)
	returned = true
}

func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}
