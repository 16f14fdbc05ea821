package locked

import (
	"sync"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// BreakerConfig holds what the locked breakers can be told.
type BreakerConfig struct {
	Threshold   int // failures in a row
	OpenTimeout time.Duration
	Probes      int
	CloseAfter  int
}

// circuit is a breaker's state. All its methods need the lock of its owner.
type circuit struct {
	state               ab.State
	stay, period        uint64 // what a permit carries, and what it did when half-open
	fails               int
	inFlight, succeeded int
	until, lease        time.Time
}

// healthy reports whether a success of a call from stay changes nothing.
func (c *circuit) healthy(stay uint64) bool {
	return c.state == ab.Closed && c.fails == 0 && c.stay == stay
}

func (c *circuit) enter(s ab.State) {
	c.state, c.stay, c.fails, c.inFlight = s, c.stay+1, 0, 0
}

func (c *circuit) reset() {
	c.enter(ab.Closed)
}

func (c *circuit) allow(cfg *BreakerConfig) (stay uint64, err error) {
	if c.state == ab.Closed {
		return c.stay, nil
	}
	now := time.Now()
	switch {
	case c.rejects(now):
		return 0, ab.ErrOpen
	case c.state == ab.Open:
		c.enter(ab.HalfOpen)
		c.succeeded, c.period = 0, c.stay
	case c.inFlight == cfg.Probes && now.Before(c.lease):
		return 0, ab.ErrTooManyProbes
	case c.inFlight == cfg.Probes:
		c.enter(ab.HalfOpen)
	}
	c.inFlight++
	c.lease = now.Add(max(cfg.OpenTimeout, 10*time.Second))
	return c.stay, nil
}

func (c *circuit) rejects(now time.Time) bool {
	return c.state == ab.Open && now.Before(c.until)
}

// late reports whether a result comes too late. That of an overdue probe does not
// while the breaker stays half-open.
func (c *circuit) late(stay uint64) bool {
	return stay != c.stay && (c.state != ab.HalfOpen || stay < c.period)
}

func (c *circuit) success(cfg *BreakerConfig, stay uint64) ab.Verdict {
	switch {
	case c.late(stay):
		return ab.Late
	case c.state == ab.Closed:
		c.fails = 0
		return ab.Counted
	case stay == c.stay:
		c.inFlight--
	}
	if c.succeeded++; c.succeeded < cfg.CloseAfter {
		return ab.Counted
	}
	c.reset()
	return ab.Recovered
}

func (c *circuit) failure(cfg *BreakerConfig, stay uint64) ab.Verdict {
	if c.late(stay) {
		return ab.Late
	}
	if c.fails++; c.state == ab.Closed && c.fails < cfg.Threshold {
		return ab.Counted
	}
	c.until = time.Now().Add(cfg.OpenTimeout)
	c.enter(ab.Open)
	return ab.Tripped
}

// MutexBreaker is a breaker with generations, probes and a lease for them,
// under one mutex.
type MutexBreaker struct {
	cfg BreakerConfig
	mu  sync.Mutex
	c   circuit
}

// NewMutexBreaker returns a closed breaker.
func NewMutexBreaker(cfg BreakerConfig) *MutexBreaker { return &MutexBreaker{cfg: cfg} }

// Allow asks for admission; the result belongs to the stay that it returns.
func (b *MutexBreaker) Allow() (stay uint64, err error) {
	b.mu.Lock()
	stay, err = b.c.allow(&b.cfg)
	b.mu.Unlock()
	return stay, err
}

// Success reports the success of a call that was admitted in stay.
func (b *MutexBreaker) Success(stay uint64) ab.Verdict {
	b.mu.Lock()
	v := b.c.success(&b.cfg, stay)
	b.mu.Unlock()
	return v
}

// Failure reports the failure of a call that was admitted in stay.
func (b *MutexBreaker) Failure(stay uint64) ab.Verdict {
	b.mu.Lock()
	v := b.c.failure(&b.cfg, stay)
	b.mu.Unlock()
	return v
}

// RWMutexBreaker lets calls share the lock while the breaker is healthy.
type RWMutexBreaker struct {
	cfg BreakerConfig
	mu  sync.RWMutex
	c   circuit
}

// NewRWMutexBreaker returns a closed breaker.
func NewRWMutexBreaker(cfg BreakerConfig) *RWMutexBreaker { return &RWMutexBreaker{cfg: cfg} }

// Allow asks for admission; the result belongs to the stay that it returns.
func (b *RWMutexBreaker) Allow() (stay uint64, err error) {
	b.mu.RLock()
	stay, closed, rejects := b.c.stay, b.c.state == ab.Closed, b.c.state == ab.Open && b.c.rejects(time.Now())
	b.mu.RUnlock()
	if closed {
		return stay, nil
	}
	if rejects {
		return 0, ab.ErrOpen
	}
	b.mu.Lock()
	stay, err = b.c.allow(&b.cfg)
	b.mu.Unlock()
	return stay, err
}

// Success reports the success of a call that was admitted in stay.
func (b *RWMutexBreaker) Success(stay uint64) ab.Verdict {
	b.mu.RLock()
	healthy := b.c.healthy(stay)
	b.mu.RUnlock()
	if healthy {
		return ab.Counted
	}
	b.mu.Lock()
	v := b.c.success(&b.cfg, stay)
	b.mu.Unlock()
	return v
}

// Failure reports the failure of a call that was admitted in stay.
func (b *RWMutexBreaker) Failure(stay uint64) ab.Verdict {
	b.mu.Lock()
	v := b.c.failure(&b.cfg, stay)
	b.mu.Unlock()
	return v
}
