package oncecache

import (
	"container/heap"
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

// keptErrors are those of a cache with Config.ErrorTTL, so that they are found
// when they are over though nobody asks for their keys.
type keptErrors[K comparable] struct {
	mu   atomics.Mutex
	heap soonest[K]
}

// fewExpired is how many errors that are over make room at once.
const fewExpired = 64

// keep follows a failure that is kept. Some that are over make room for it.
func (r *root[K]) keep(f *keptError[K]) {
	k := r.kept
	k.mu.Lock()
	if !f.out {
		heap.Push(&k.heap, f)
	}
	k.mu.Unlock()
	r.expireSome()
}

// expireSome removes a few failures whose time is over. It returns how many, and
// whether there may be more.
func (r *root[K]) expireSome() (removed int, more bool) {
	over := r.kept.over(r.now())
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

// drop follows the removal of f's entry from the table.
func (k *keptErrors[K]) drop(f *keptError[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !f.out && f.at < len(k.heap) && k.heap[f.at] == f {
		heap.Remove(&k.heap, f.at)
	}
	f.out = true
}

// soonest is a heap of failures, of which that is the first which is over first.
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
