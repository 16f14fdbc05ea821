package breaker

import (
	"container/list"
	"context"
	"sync"
)

// outbox holds the newest hint of each subject until the publisher takes it, in the order
// in which they came.
type outbox struct {
	most   int
	wake   chan struct{} // of capacity 1: there may be something to take
	closed chan struct{}

	mu      sync.Mutex
	order   list.List // of hints
	waiting map[string]*list.Element
	taken   string // the subject of the hint that the publisher has; empty if it has none
	ended   bool
}

func newOutbox(most int) *outbox {
	return &outbox{
		most: most, wake: make(chan struct{}, 1), closed: make(chan struct{}),
		waiting: make(map[string]*list.Element),
	}
}

// put makes h the hint that waits on subject, and the last one. It reports whether there
// was room. There is for one that replaces another, also one that the publisher has.
func (o *outbox) put(subject string, h hint) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.waiting[subject]; e != nil {
		e.Value = h
		o.order.MoveToBack(e)
		return true
	}
	if o.ended || len(o.waiting) >= o.most && subject != o.taken {
		return false
	}
	o.waiting[subject] = o.order.PushBack(h)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// waits reports whether the hint with an ID waits on subject.
func (o *outbox) waits(subject, id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.waiting[subject]
	return e != nil && e.Value.(hint).ID == id
}

// done says that the publisher has no hint any more.
func (o *outbox) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = ""
}

// putBack returns a hint that was taken to the front, unless there is a newer one.
func (o *outbox) putBack(subject string, h hint) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = ""
	if o.waiting[subject] == nil && !o.ended {
		o.waiting[subject] = o.order.PushFront(h)
	}
}

// take removes the first hint, waiting for one until ctx ends.
func (o *outbox) take(ctx context.Context, stream string) (h hint, ok bool) {
	for {
		o.mu.Lock()
		if e := o.order.Front(); e != nil {
			h = o.order.Remove(e).(hint)
			o.taken = h.subject(stream)
			delete(o.waiting, o.taken)
			o.mu.Unlock()
			return h, true
		}
		o.mu.Unlock()
		select {
		case <-o.wake:
		case <-ctx.Done():
			return hint{}, false
		}
	}
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.waiting)
	if o.taken != "" && o.waiting[o.taken] == nil {
		n++ // no other replaces it
	}
	return n
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
