package history

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Client is one of the goroutines of a trial. Its methods are for that
// goroutine, and for those that it starts and waits for.
type Client[S comparable] struct {
	*rand.Rand     // of the trial's seed and the client's number
	ID         int // counted from 0; After's comes after all others

	trial    *shared
	together *rand.Rand // draws the same for every client
	history  []record[S]
	wrong    []string

	incomplete bool // the client did not return, so that its history says little

	meetings int64
	level    int // of the tide, in steps
	falling  bool
}

// shared is what the clients of a trial share beside the value.
type shared struct {
	clients int
	bubble  bool
	clock   clock
	arrived atomic.Int64 // at meetings, in all
}

// Rounds does op 24 times, on keys below the given number, and between moves
// the tide. The clients meet before each round and then work on one key, most
// of the time; but every other one moves the tide first, so that operations
// meet resizes too.
func (c *Client[S]) Rounds(keys int, op func(key int), tide func()) {
	const rounds, burst = 4, 6
	for round := range rounds {
		key := c.Meet(keys)
		tideFirst := (round+c.ID)%2 == 0
		if tideFirst {
			tide()
		}
		for range burst {
			k := key
			if c.IntN(8) == 0 {
				k = c.IntN(keys)
			}
			op(k)
			c.Pause()
		}
		if !tideFirst {
			tide()
		}
	}
}

// Meet waits a moment for the other clients, and returns a random number below
// n, the same to all. It does not insist: a client whose thread the operating
// system has put off will work beside the next round.
func (c *Client[S]) Meet(n int) int {
	const moment, glances = 100, 50 // of a microsecond; what is seen at once starts at once
	c.meetings++
	all := c.meetings * int64(c.trial.clients)
	c.trial.arrived.Add(1)
	for range moment {
		for range glances {
			if c.trial.arrived.Load() >= all {
				return c.together.IntN(n)
			}
		}
		runtime.Gosched()
	}
	return c.together.IntN(n)
}

// Now returns a moment for Add: the begin of an operation, or the end of a
// part of it.
func (c *Client[S]) Now() int64 { return c.trial.clock.now() }

// Add records that e, on key, took effect between from and now.
func (c *Client[S]) Add(key int, from int64, e Event[S]) {
	c.AddSpan(key, from, c.Now(), e)
}

// AddSpan records that e, on key, took effect between from and to.
func (c *Client[S]) AddSpan(key int, from, to int64, e Event[S]) {
	c.history = append(c.history, record[S]{key: key, client: c.ID, from: from, to: to, event: e})
}

// AddSecond is AddSpan for the second half of an operation of which the first
// may have the same span.
func (c *Client[S]) AddSecond(key int, from, to int64, e Event[S]) {
	c.history = append(c.history, record[S]{key: key, client: c.ID, second: true, from: from, to: to, event: e})
}

// Errorf reports what is wrong whatever the others did.
func (c *Client[S]) Errorf(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf("client %d: ", c.ID)+fmt.Sprintf(format, args...))
}

// Pause lets others run, sometimes.
func (c *Client[S]) Pause() {
	if c.IntN(4) == 0 {
		runtime.Gosched()
	}
}

// Sleep lets time pass in a bubble: it returns when all clients sleep.
func (c *Client[S]) Sleep(d time.Duration) {
	if !c.trial.bubble {
		panic("history: Sleep outside of a bubble")
	}
	time.Sleep(d)
}

// Apart runs f on a goroutine of its own, which f may end by a panic or by
// runtime.Goexit, and returns how f ended: the value of the panic, or neither
// panicked nor returned.
func (c *Client[S]) Apart(f func()) (returned bool, panicked any) {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer func() { panicked = recover() }()
		f()
		returned = true
	}()
	wg.Wait()
	return returned, panicked
}

const (
	tideKeys  = 32 // that come or go at a time
	tideSteps = 2  // up, and as many down
)

// Tide makes the table beneath the shared value grow and shrink: it adds or
// removes keys that are this client's own. The four of Rounds lead to high
// water and back.
func (c *Client[S]) Tide(add, remove func(key int)) {
	if c.falling {
		c.Ebb(remove, c.level-1)
		c.falling = c.level > 0
		return
	}
	for k := range tideKeys {
		add(c.own(c.level*tideKeys + k))
	}
	c.level++
	c.falling = c.level == tideSteps
}

// Ebb removes what Tide has added above a level; to the end of a client's work
// belongs one to 0.
func (c *Client[S]) Ebb(remove func(key int), level int) {
	for ; c.level > level; c.level-- {
		for k := range tideKeys {
			remove(c.own((c.level-1)*tideKeys + k))
		}
	}
}

// own returns the i-th of the keys that no other client uses.
func (c *Client[S]) own(i int) int { return 1000*(1+c.ID) + i }
