package locked

import (
	"sync"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// ListenedBreaker is a MutexBreaker that tells a listener of its changes of
// state, in their order and outside the breaker's lock: a second lock is taken
// before the first is left, and held while the listener runs.
type ListenedBreaker struct {
	b        MutexBreaker
	listener func(from, to ab.State)
	telling  sync.Mutex
}

// NewListenedBreaker returns a closed breaker. The listener must not use it.
func NewListenedBreaker(cfg BreakerConfig, listener func(from, to ab.State)) *ListenedBreaker {
	return &ListenedBreaker{b: MutexBreaker{cfg: cfg}, listener: listener}
}

// Allow asks for admission; the result belongs to the stay that it returns.
func (l *ListenedBreaker) Allow() (stay uint64, err error) {
	l.b.mu.Lock()
	from := l.b.c.state
	stay, err = l.b.c.allow(&l.b.cfg)
	l.leave(from)
	return stay, err
}

// Success reports the success of a call that was admitted in stay.
func (l *ListenedBreaker) Success(stay uint64) ab.Verdict {
	l.b.mu.Lock()
	from := l.b.c.state
	v := l.b.c.success(&l.b.cfg, stay)
	l.leave(from)
	return v
}

// Failure reports the failure of a call that was admitted in stay.
func (l *ListenedBreaker) Failure(stay uint64) ab.Verdict {
	l.b.mu.Lock()
	from := l.b.c.state
	v := l.b.c.failure(&l.b.cfg, stay)
	l.leave(from)
	return v
}

// Reset closes the breaker. The listener is told of that, open or not.
func (l *ListenedBreaker) Reset() {
	l.b.mu.Lock()
	from := l.b.c.state
	l.b.c.reset()
	l.tell(from)
}

// leave leaves the breaker's lock, and tells of a change since from.
func (l *ListenedBreaker) leave(from ab.State) {
	if l.b.c.state == from {
		l.b.mu.Unlock()
		return
	}
	l.tell(from)
}

// tell leaves the breaker's lock and tells of what happened since from.
func (l *ListenedBreaker) tell(from ab.State) {
	to := l.b.c.state
	l.telling.Lock()
	l.b.mu.Unlock()
	l.listener(from, to)
	l.telling.Unlock()
}
