package locked

import "sync"

// counter is what the report keeps for a name.
type counter struct {
	failures int
	disabled bool
}

// MutexCounters is the fix that the report of lost failures suggests: its
// counts and flags, in one map under one mutex. A name that is healthy has no
// entry.
type MutexCounters struct {
	mu        sync.Mutex
	m         map[string]counter
	threshold int
}

// NewMutexCounters returns counters that disable at a threshold.
func NewMutexCounters(threshold int) *MutexCounters {
	return &MutexCounters{m: make(map[string]counter), threshold: threshold}
}

// IsOpen reports whether name is disabled.
func (c *MutexCounters) IsOpen(name string) bool {
	c.mu.Lock()
	open := c.m[name].disabled
	c.mu.Unlock()
	return open
}

// RecordSuccess starts the count anew and enables name.
func (c *MutexCounters) RecordSuccess(name string) {
	c.mu.Lock()
	delete(c.m, name)
	c.mu.Unlock()
}

// RecordFailure counts, and disables name at the threshold.
func (c *MutexCounters) RecordFailure(name string) {
	c.mu.Lock()
	failures := c.m[name].failures + 1
	c.m[name] = counter{failures, failures >= c.threshold}
	c.mu.Unlock()
}

// RWMutexCounters lets questions, and successes of healthy names, share the
// lock.
type RWMutexCounters struct {
	mu        sync.RWMutex
	m         map[string]counter
	threshold int
}

// NewRWMutexCounters returns counters that disable at a threshold.
func NewRWMutexCounters(threshold int) *RWMutexCounters {
	return &RWMutexCounters{m: make(map[string]counter), threshold: threshold}
}

// IsOpen reports whether name is disabled.
func (c *RWMutexCounters) IsOpen(name string) bool {
	c.mu.RLock()
	open := c.m[name].disabled
	c.mu.RUnlock()
	return open
}

// RecordSuccess starts the count anew and enables name.
func (c *RWMutexCounters) RecordSuccess(name string) {
	c.mu.RLock()
	_, failing := c.m[name]
	c.mu.RUnlock()
	if !failing {
		return
	}
	c.mu.Lock()
	delete(c.m, name)
	c.mu.Unlock()
}

// RecordFailure counts, and disables name at the threshold.
func (c *RWMutexCounters) RecordFailure(name string) {
	c.mu.Lock()
	failures := c.m[name].failures + 1
	c.m[name] = counter{failures, failures >= c.threshold}
	c.mu.Unlock()
}

// SyncMapCounters keeps immutable counters in a sync.Map and replaces them.
type SyncMapCounters struct {
	m         sync.Map // string to counter
	threshold int
}

// NewSyncMapCounters returns counters that disable at a threshold.
func NewSyncMapCounters(threshold int) *SyncMapCounters {
	return &SyncMapCounters{threshold: threshold}
}

// IsOpen reports whether name is disabled.
func (c *SyncMapCounters) IsOpen(name string) bool {
	v, ok := c.m.Load(name)
	return ok && v.(counter).disabled
}

// RecordSuccess starts the count anew and enables name.
func (c *SyncMapCounters) RecordSuccess(name string) {
	if _, failing := c.m.Load(name); failing {
		c.m.Delete(name)
	}
}

// RecordFailure counts, and disables name at the threshold.
func (c *SyncMapCounters) RecordFailure(name string) {
	for {
		v, loaded := c.m.LoadOrStore(name, counter{1, c.threshold <= 1})
		if !loaded {
			return
		}
		failures := v.(counter).failures + 1
		if c.m.CompareAndSwap(name, v, counter{failures, failures >= c.threshold}) {
			return
		}
	}
}
