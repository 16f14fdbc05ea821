//go:build modelcheck

package simulated

import "github.com/latchfree/latchfree/internal/atomics"

// The locked structures have what they guard in as few cache lines as can be, and a map
// takes none: nothing is counted but the lock, and the words that an operation must read or
// write. Waiting for a lock costs nothing either.

// lockedBreaker is a breaker whose state is in the line of its lock.
type lockedBreaker struct {
	mu       atomics.Mutex
	open     atomics.Bool
	failures atomics.Uint64
	_        atomics.CacheLinePad
}

func (b *lockedBreaker) call(fails bool) {
	b.mu.Lock()
	open := b.open.Load()
	b.mu.Unlock()
	if open {
		return
	}
	b.mu.Lock()
	if fails {
		b.failures.Store(b.failures.Load() + 1)
	} else if b.failures.Load() > 0 {
		b.failures.Store(0)
	}
	b.mu.Unlock()
}

// lockedLog is a slice that is appended to. Its length is in the line of its lock, and
// eight entries are in a line.
type lockedLog struct {
	mu      atomics.Mutex
	length  atomics.Uint64
	_       atomics.CacheLinePad
	entries [1 << 16]atomics.Uint64
}

func (l *lockedLog) record(e uint64) {
	l.mu.Lock()
	n := l.length.Load()
	l.entries[n].Store(e)
	l.length.Store(n + 1)
	l.mu.Unlock()
}

// lockedMap is a map of values, each in a line of its own.
type lockedMap struct {
	mu     atomics.Mutex
	_      atomics.CacheLinePad
	values [keys]struct {
		atomics.Uint64
		_ atomics.CacheLinePad
	}
}

func (m *lockedMap) get(key int) uint64 {
	m.mu.Lock()
	v := m.values[key].Load()
	m.mu.Unlock()
	return v
}

func (m *lockedMap) update(key int) {
	m.mu.Lock()
	v := &m.values[key]
	v.Store(v.Load() + 1)
	m.mu.Unlock()
}

// sharedLock has the words of a sync.RWMutex that its readers use.
type sharedLock struct {
	readers atomics.Uint64
	_       atomics.CacheLinePad
}

// read does what a reader does: it announces itself, reads, and leaves.
func (l *sharedLock) read(v *atomics.Uint64) uint64 {
	l.readers.Add(1)
	n := v.Load()
	l.readers.Add(^uint64(0))
	return n
}
