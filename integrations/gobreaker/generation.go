package gobreaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// A generation is a time in which calls are counted together. It ends with a change
// of state, or when its window is over. Results of calls of another generation do not
// count. All but the counts never change.
type generation struct {
	state    State
	timeless bool // closed, and no time ends it or is counted by
	start    time.Duration
	until    time.Duration // it ends after that

	// One of them, or none if it is open.
	striped *striped
	rolling *rolling
	probes  *probes
}

// begin returns a generation that begins now.
func (c *core) begin(s State, now time.Duration) *generation {
	g := &generation{state: s, start: now, until: never}
	switch {
	case s == StateOpen:
		g.until = after(now, c.timeout)
	case s == StateHalfOpen:
		g.probes = new(probes)
	case c.buckets > 1:
		g.rolling = &rolling{buckets: make([]Counts, c.buckets)}
	default:
		g.striped = newStriped()
		if g.timeless = c.interval == 0; !g.timeless {
			g.until = after(now, c.interval)
		}
	}
	return g
}

// request counts a call of a closed generation, and returns in which bucket.
func (g *generation) request() (age uint64) {
	if g.striped != nil {
		g.striped.mine().requests.Add(1)
		return 0
	}
	return g.rolling.request()
}

// count counts a success or exclusion of a closed generation.
func (g *generation) count(r result, age uint64) {
	switch {
	case g.rolling != nil:
		g.rolling.end(r, age)
	case r == exclusion:
		g.striped.mine().exclusions.Add(1)
	default:
		g.striped.succeed()
	}
}

// fail counts a failure of a closed generation, and returns all counts with it.
func (g *generation) fail(age uint64) Counts {
	if g.rolling != nil {
		return g.rolling.end(failure, age)
	}
	return g.striped.fail()
}

func (g *generation) counts() Counts {
	switch {
	case g.striped != nil:
		return g.striped.counts()
	case g.rolling != nil:
		return g.rolling.counts()
	case g.probes != nil:
		return g.probes.counts()
	}
	return Counts{}
}

// probes are the counts of a half-open generation. No user code runs under the mutex.
type probes struct {
	mu      sync.Mutex
	n       Counts
	decided bool          // a result has ended the generation; it never changes again
	lost    int64         // calls in flight that hold no place
	last    time.Duration // when a call was admitted last

	// next is the generation after the last success. It becomes current when the
	// breaker is closed.
	next atomic.Pointer[generation]
}

// full reports whether no call may be admitted. If it is full and the last call was
// admitted long ago, all calls in flight lose their places.
func (p *probes) full(c *core, now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isFull(c, now)
}

func (p *probes) isFull(c *core, now time.Duration) bool {
	admitted := int64(p.n.Requests) - int64(p.n.TotalExclusions)
	if p.decided || admitted-p.lost < c.maxRequests {
		return false // take says what was decided
	}
	if now-p.last < c.lostAfter {
		return true
	}
	p.lost = max(p.lost, admitted-int64(p.n.TotalSuccesses))
	return admitted-p.lost >= c.maxRequests
}

// take counts a call, which has a slot of the breaker.
func (p *probes) take(c *core, now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.decided:
		return errDecided
	case p.isFull(c, now):
		return ErrTooManyRequests
	}
	p.n.Requests++
	p.last = now
	return nil
}

// end counts a result, and reports whether it ends the generation. A failure makes
// the next one current.
func (p *probes) end(c *core, r result, now time.Duration) (decides bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.decided {
		return false
	}
	p.n.end(r)
	switch {
	case r == failure:
		p.decided = true
		c.current.Store(c.begin(StateOpen, now))
	case int64(p.n.ConsecutiveSuccesses) >= c.maxRequests:
		p.decided = true
		p.next.Store(c.begin(StateClosed, now))
	}
	return p.decided
}

func (p *probes) counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// end counts a result.
func (n *Counts) end(r result) {
	switch r {
	case success:
		n.TotalSuccesses++
		n.ConsecutiveSuccesses++
		n.ConsecutiveFailures = 0
	case failure:
		n.TotalFailures++
		n.ConsecutiveFailures++
		n.ConsecutiveSuccesses = 0
	case exclusion:
		n.TotalExclusions++
	}
}
