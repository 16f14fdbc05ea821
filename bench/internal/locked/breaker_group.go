package locked

import (
	"sync"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// The groups keep a circuit for every key that has ever failed, so that a
// permit for a key without one belongs to stay 0 of a later one.

// MutexGroup is a map of circuits under one mutex.
type MutexGroup[K comparable] struct {
	cfg BreakerConfig
	mu  sync.Mutex
	m   map[K]*circuit
}

// NewMutexGroup returns an empty group.
func NewMutexGroup[K comparable](cfg BreakerConfig) *MutexGroup[K] {
	return &MutexGroup[K]{cfg: cfg, m: make(map[K]*circuit)}
}

// Allow asks for admission; the result belongs to the stay that it returns.
func (g *MutexGroup[K]) Allow(k K) (stay uint64, err error) {
	g.mu.Lock()
	if c := g.m[k]; c != nil {
		stay, err = c.allow(&g.cfg)
	}
	g.mu.Unlock()
	return stay, err
}

// Success reports the success of a call that was admitted in stay.
func (g *MutexGroup[K]) Success(k K, stay uint64) (v ab.Verdict) {
	g.mu.Lock()
	if c := g.m[k]; c != nil {
		v = c.success(&g.cfg, stay)
	}
	g.mu.Unlock()
	return v
}

// Failure reports the failure of a call that was admitted in stay.
func (g *MutexGroup[K]) Failure(k K, stay uint64) ab.Verdict {
	g.mu.Lock()
	v := circuitOf(g.m, k).failure(&g.cfg, stay)
	g.mu.Unlock()
	return v
}

// RWMutexGroup lets calls for healthy keys share the lock.
type RWMutexGroup[K comparable] struct {
	cfg BreakerConfig
	mu  sync.RWMutex
	m   map[K]*circuit
}

// NewRWMutexGroup returns an empty group.
func NewRWMutexGroup[K comparable](cfg BreakerConfig) *RWMutexGroup[K] {
	return &RWMutexGroup[K]{cfg: cfg, m: make(map[K]*circuit)}
}

// Allow asks for admission; the result belongs to the stay that it returns.
func (g *RWMutexGroup[K]) Allow(k K) (stay uint64, err error) {
	g.mu.RLock()
	c := g.m[k]
	closed := c == nil || c.state == ab.Closed
	if closed && c != nil {
		stay = c.stay
	}
	g.mu.RUnlock()
	if closed {
		return stay, nil
	}
	g.mu.Lock()
	stay, err = c.allow(&g.cfg)
	g.mu.Unlock()
	return stay, err
}

// Success reports the success of a call that was admitted in stay.
func (g *RWMutexGroup[K]) Success(k K, stay uint64) ab.Verdict {
	g.mu.RLock()
	c := g.m[k]
	healthy := c == nil || c.healthy(stay)
	g.mu.RUnlock()
	if healthy {
		return ab.Counted
	}
	g.mu.Lock()
	v := c.success(&g.cfg, stay)
	g.mu.Unlock()
	return v
}

// Failure reports the failure of a call that was admitted in stay.
func (g *RWMutexGroup[K]) Failure(k K, stay uint64) ab.Verdict {
	g.mu.Lock()
	v := circuitOf(g.m, k).failure(&g.cfg, stay)
	g.mu.Unlock()
	return v
}

func circuitOf[K comparable](m map[K]*circuit, k K) *circuit {
	c := m[k]
	if c == nil {
		c = new(circuit)
		m[k] = c
	}
	return c
}

// SyncMapGroup is a sync.Map of breakers with a mutex each.
type SyncMapGroup[K comparable] struct {
	cfg BreakerConfig
	m   sync.Map // K to *MutexBreaker
}

// NewSyncMapGroup returns an empty group.
func NewSyncMapGroup[K comparable](cfg BreakerConfig) *SyncMapGroup[K] {
	return &SyncMapGroup[K]{cfg: cfg}
}

// Allow asks for admission; the result belongs to the stay that it returns.
func (g *SyncMapGroup[K]) Allow(k K) (stay uint64, err error) {
	if b, ok := g.m.Load(k); ok {
		return b.(*MutexBreaker).Allow()
	}
	return 0, nil
}

// Success reports the success of a call that was admitted in stay.
func (g *SyncMapGroup[K]) Success(k K, stay uint64) ab.Verdict {
	if b, ok := g.m.Load(k); ok {
		return b.(*MutexBreaker).Success(stay)
	}
	return ab.Counted
}

// Failure reports the failure of a call that was admitted in stay.
func (g *SyncMapGroup[K]) Failure(k K, stay uint64) ab.Verdict {
	b, ok := g.m.Load(k)
	if !ok {
		b, _ = g.m.LoadOrStore(k, NewMutexBreaker(g.cfg))
	}
	return b.(*MutexBreaker).Failure(stay)
}
