package breaker

import (
	"container/list"
	"context"
	"sync"
)

// outbox holds the newest hint of each subject until the publisher has stored it, in the order
// in which they came.
type outbox struct {
	most   int           // how many hints leave no room for a report
	wake   chan struct{} // of capacity 1: there may be a hint
	closed chan struct{}

	mu      sync.Mutex
	order   list.List // of hint
	waiting map[string]*list.Element
	ended   bool
}

// maxPending is how many hints leave no room for a report.
const maxPending = 10_000

func newOutbox() *outbox {
	return &outbox{
		most: maxPending, wake: make(chan struct{}, 1), closed: make(chan struct{}),
		waiting: make(map[string]*list.Element),
	}
}

// put makes h the hint that waits on subject, and the last one. It reports whether there
// was room. There is for commands, and for what replaces another hint.
func (o *outbox) put(subject string, h hint) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := o.waiting[subject]; {
	case o.ended:
		return false
	case e != nil:
		e.Value = h
		o.order.MoveToBack(e)
		return true
	case h.Kind.isReport() && len(o.waiting) >= o.most:
		return false
	}
	o.waiting[subject] = o.order.PushBack(h)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// first returns the hint that has waited longest, waiting for one until ctx ends.
func (o *outbox) first(ctx context.Context) (h hint, ok bool) {
	for {
		o.mu.Lock()
		e := o.order.Front()
		if e != nil {
			h = e.Value.(hint)
		}
		o.mu.Unlock()
		if e != nil {
			return h, true
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return hint{}, false
		}
	}
}

// remove takes the hint with an ID out, unless another has replaced it.
func (o *outbox) remove(subject, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits(subject, id) {
		o.order.Remove(o.waiting[subject])
		delete(o.waiting, subject)
	}
}

// waits reports whether the hint with an ID waits on subject. The caller has the mutex.
func (o *outbox) waits(subject, id string) bool {
	e := o.waiting[subject]
	return e != nil && e.Value.(hint).ID == id
}

// count returns how many hints wait.
func (o *outbox) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// close makes put refuse what comes.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended = true
		close(o.closed)
	}
}

// drain takes all hints out, and returns how many there were.
func (o *outbox) drain() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.waiting)
	clear(o.waiting)
	o.order.Init()
	return n
}
