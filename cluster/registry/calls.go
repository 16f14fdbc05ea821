package registry

import (
	"context"
	"sync"
	"sync/atomic"
)

// calls are the calls that wait for the mirror to come to a revision of their key.
type calls[K ~string] struct {
	n     atomic.Int64 // how many there are
	mu    sync.Mutex
	of    map[K]map[*call]struct{}
	ended bool
}

// call is one of them. Its fields are guarded by the mutex of calls, but for had and done.
type call struct {
	id     string // of its message; "" if it has none
	had    uint64 // the revision that the mirror had of the key before that was sent
	want   uint64 // the revision that it waits for; 0 while it is not known
	got    uint64 // the revision that was delivered with its id; 0 if none was
	fired  bool
	done   chan struct{}      // closed when the mirror has what it waits for, or by end
	cancel context.CancelFunc // of the request under way
}

func (c *calls[K]) init() { c.of = make(map[K]map[*call]struct{}) }

// add begins a call.
func (c *calls[K]) add(k K, id string, want uint64) *call {
	w := &call{id: id, want: want, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		w.fire()
		return w
	}
	if c.of[k] == nil {
		c.of[k] = make(map[*call]struct{})
	}
	c.of[k][w] = struct{}{}
	c.n.Add(1)
	return w
}

func (c *calls[K]) remove(k K, w *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.of[k][w]; !ok {
		return
	}
	c.n.Add(-1)
	if delete(c.of[k], w); len(c.of[k]) == 0 {
		delete(c.of, k)
	}
}

// fire ends the wait. The mutex is held.
func (w *call) fire() {
	if !w.fired {
		w.fired = true
		close(w.done)
	}
	if w.cancel != nil {
		w.cancel()
	}
}

// request notes how to end the request under way, and ends it at once if the wait is over: a delivery may come before
// the answer.
func (c *calls[K]) request(w *call, cancel context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.cancel = cancel; w.fired {
		cancel()
	}
}

// waitFor makes w wait for a revision.
func (c *calls[K]) waitFor(w *call, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.want = revision
}

// seen returns the revision that was delivered with the id of w, or 0.
func (c *calls[K]) seen(w *call) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.got
}

// delivered tells the calls of k that the mirror has a revision of it, that of the message
// with an id. The mirror shows it already.
func (c *calls[K]) delivered(k K, revision uint64, id func() string) {
	if c.n.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.of[k]
	if len(list) == 0 {
		return
	}
	name := id()
	for w := range list {
		if w.id != "" && w.id == name {
			w.got = revision
			w.fire()
		} else if w.want != 0 && revision >= w.want {
			w.fire()
		}
	}
}

// recheck ends the waits of calls for whose key and revision caught returns true.
func (c *calls[K]) recheck(caught func(K, uint64) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, list := range c.of {
		for w := range list {
			if w.want != 0 && caught(k, w.want) {
				w.fire()
			}
		}
	}
}

// end ends all waits, and those of later calls.
func (c *calls[K]) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, list := range c.of {
		for w := range list {
			w.fire()
		}
	}
}
