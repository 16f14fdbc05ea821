package oncecache

import (
	"container/heap"
	"errors"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// keptError is an error that answers for its key until some time.
type keptError[K comparable] struct {
	entry *entry[K]
	until time.Duration

	at  int  // in keptErrors.heap; under its mutex
	out bool // it has left the table; under the mutex
}

// keptErrors has the kept errors of a cache with Config.ErrorTTL, so that those that are
// over are found even if no caller asks for their keys.
type keptErrors[K comparable] struct {
	ttl func(K, error) time.Duration // Config.ErrorTTL

	mu   atomics.Mutex
	heap soonest[K]
}

// errorKeeper is keptErrors. It is an interface, and the names of its methods are their own,
// so that only New brings kept errors into a program.
type errorKeeper[K comparable] interface {
	keptUntil(r *root[K], k K, err error) time.Duration
	keepError(r *root[K], f *keptError[K])
	dropError(f *keptError[K])
	expireErrors(r *root[K]) (removed int, more bool)
}

// fewExpired is how many errors that are over make room at once.
const fewExpired = 64

// keptUntil returns until when the error of a create function is kept; zero: it is
// not. It runs user code.
func (k *keptErrors[K]) keptUntil(r *root[K], key K, err error) time.Duration {
	if cycle := (*CycleError)(nil); errors.As(err, &cycle) {
		return 0 // says nothing about the key: the next caller may come from elsewhere
	}
	switch ttl := k.ttl(key, err); {
	case ttl < 0:
		return forever
	case ttl > 0:
		until := r.now() + ttl // more than zero, as ttl is
		if until < 0 {
			until = forever
		}
		return until
	}
	return 0
}

// keepError follows a failure that is kept. Some that are over make room for it.
func (k *keptErrors[K]) keepError(r *root[K], f *keptError[K]) {
	k.mu.Lock()
	if !f.out {
		heap.Push(&k.heap, f)
	}
	k.mu.Unlock()
	k.expireErrors(r)
}

// expireErrors removes a few failures whose time is over. It returns how many, and
// whether there may be more.
func (k *keptErrors[K]) expireErrors(r *root[K]) (removed int, more bool) {
	over := k.over(r.now())
	for _, f := range over {
		if r.expire(f.entry) {
			removed++
		}
	}
	return removed, len(over) == fewExpired
}

// over takes out a few that are over.
func (k *keptErrors[K]) over(now time.Duration) (over []*keptError[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.heap) > 0 && k.heap[0].until <= now && len(over) < fewExpired {
		f := heap.Pop(&k.heap).(*keptError[K])
		f.out = true
		over = append(over, f)
	}
	return over
}

// dropError follows the removal of f's entry from the table.
func (k *keptErrors[K]) dropError(f *keptError[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !f.out && f.at < len(k.heap) && k.heap[f.at] == f {
		heap.Remove(&k.heap, f.at)
	}
	f.out = true
}

// soonest is a heap of failures, by the time at which they are over.
type soonest[K comparable] []*keptError[K]

func (h soonest[K]) Len() int           { return len(h) }
func (h soonest[K]) Less(i, j int) bool { return h[i].until < h[j].until }
func (h soonest[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *soonest[K]) Push(x any) {
	f := x.(*keptError[K])
	f.at = len(*h)
	*h = append(*h, f)
}

func (h *soonest[K]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
