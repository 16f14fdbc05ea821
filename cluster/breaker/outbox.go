package breaker

import (
	"container/list"
	"context"
	"sync"
)

// outbox holds the newest hint of each subject until the publisher takes it, in the order
// in which they came. If there is no room for a command, the oldest report leaves: what a
// report opens ends by itself.
type outbox struct {
	most   int
	wake   chan struct{} // of capacity 1: there may be something to take
	closed chan struct{}

	mu      sync.Mutex
	order   list.List // of *waiting
	waiting map[string]*list.Element
	reports int    // how many of those that wait
	taken   string // the subject of the hint that the publisher has; empty if it has none
	lost    int    // how many have left for a command, or were there when all ended
	ended   bool
}

// waiting is a hint that waits.
type waiting struct {
	subject string
	hint    hint
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
	if o.ended {
		return false
	}
	if e := o.waiting[subject]; e != nil {
		e.Value.(*waiting).hint = h
		o.order.MoveToBack(e)
		return true
	}
	if len(o.waiting) >= o.most && subject != o.taken && (h.Kind.isReport() || !o.displace()) {
		return false
	}
	o.insert(o.order.PushBack(&waiting{subject, h}))
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// insert notes a hint that has entered the order.
func (o *outbox) insert(e *list.Element) {
	w := e.Value.(*waiting)
	o.waiting[w.subject] = e
	if w.hint.Kind.isReport() {
		o.reports++
	}
}

// remove takes a hint out.
func (o *outbox) remove(e *list.Element) *waiting {
	w := o.order.Remove(e).(*waiting)
	delete(o.waiting, w.subject)
	if w.hint.Kind.isReport() {
		o.reports--
	}
	return w
}

// displace loses the oldest report, and reports whether there was one.
func (o *outbox) displace() bool {
	if o.reports == 0 {
		return false
	}
	e := o.order.Front()
	for !e.Value.(*waiting).hint.Kind.isReport() {
		e = e.Next()
	}
	o.remove(e)
	o.lost++
	return true
}

// waits reports whether the hint with an ID waits on subject.
func (o *outbox) waits(subject, id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.waiting[subject]
	return e != nil && e.Value.(*waiting).hint.ID == id
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
	if o.waiting[subject] == nil {
		o.insert(o.order.PushFront(&waiting{subject, h}))
	}
}

// take removes the first hint, waiting for one until ctx ends.
func (o *outbox) take(ctx context.Context) (h hint, ok bool) {
	for {
		o.mu.Lock()
		if e := o.order.Front(); e != nil {
			w := o.remove(e)
			o.taken = w.subject
			o.mu.Unlock()
			return w.hint, true
		}
		o.mu.Unlock()
		select {
		case <-o.wake:
		case <-ctx.Done():
			return hint{}, false
		}
	}
}

// count returns how many hints there are, and how many were lost.
func (o *outbox) count() (waiting, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.len(), o.lost
}

// len needs the mutex.
func (o *outbox) len() int {
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

// drain loses what is there after close, and after the publisher has ended.
func (o *outbox) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += o.len()
	clear(o.waiting)
	o.order.Init()
	o.taken, o.reports = "", 0
}
