//go:build !modelcheck

package histories_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

// handle is a value that has to be closed.
type handle struct {
	n      int
	closed atomic.Int64 // how often it was
}

// handles is a cache of handles, and all that it ever owned.
type handles struct {
	*oncecache.Cache[int, *handle]
	owned sync.Map // number → *handle
}

func newHandles() *handles {
	return &handles{Cache: oncecache.MustNew(oncecache.Config[int, *handle]{Close: func(_ int, h *handle) error {
		h.closed.Add(1)
		return nil
	}})}
}

// own notes that the cache owns the handle with a number.
func (hs *handles) own(n int) *handle {
	h := &handle{n: n}
	hs.owned.Store(n, h)
	return h
}

func (hs *handles) numbered(n int) *handle {
	h, _ := hs.owned.Load(n)
	if h == nil {
		return nil
	}
	return h.(*handle)
}

type lease = oncecache.Lease[int, *handle]

// leaser is how one client uses handles, by their numbers. GetOrCreate is an
// Acquire, of which the client may keep the lease. One whose creation Set has
// ended, and whose new value is gone and closed by then, looks again.
type leaser struct {
	*handles
	client  *cacheClient
	held    [cacheKeys]*lease
	discard func(*leaser, *lease, int)
}

func (l *leaser) GetOrCreate(k int, create func() (int, error)) (int, error) {
	got, err := l.Acquire(context.Background(), k, func(context.Context, int) (*handle, error) {
		n, err := create()
		if err != nil {
			return nil, err
		}
		return l.own(n), nil
	})
	if err != nil {
		return 0, err
	}
	n := l.use(&got)
	if k < cacheKeys && l.held[k] == nil {
		l.held[k] = &got
		return n, nil
	}
	got.Release()
	return n, nil
}

// use returns the number of a handle that must not be closed meanwhile.
func (l *leaser) use(got *lease) int {
	h := got.Value()
	for range 2 {
		if h.closed.Load() != 0 {
			l.client.Errorf("%d was closed though there is a lease of it", h.n)
		}
		runtime.Gosched()
	}
	return h.n
}

// drop gives back the lease of a key.
func (l *leaser) drop(k int) {
	got := l.held[k]
	if got == nil {
		return
	}
	l.held[k] = nil
	n := l.use(got)
	if l.client.IntN(3) > 0 {
		got.Release()
		return
	}
	from := l.client.Now()
	l.discard(l, got, k)
	l.client.Add(k, from, cacheEvent{op: "Discard", value: n})
}

func numberOf(h *handle, ok bool) (int, bool) {
	if h == nil {
		return 0, ok
	}
	return h.n, ok
}

func (l *leaser) Get(k int) (int, bool)    { return numberOf(l.Cache.Get(k)) }
func (l *leaser) Delete(k int) (int, bool) { return numberOf(l.Cache.Delete(k)) }
func (l *leaser) Set(k, n int) (int, bool) { return numberOf(l.Cache.Set(k, l.own(n))) }
func (l *leaser) CompareAndDelete(k, n int) bool {
	return oncecache.CompareAndDelete(l.Cache, k, l.numbered(n))
}

func (l *leaser) SetIfAbsent(k, n int) (int, bool) {
	actual, stored := l.Cache.SetIfAbsent(k, l.own(n))
	if !stored {
		l.owned.Delete(n)
	}
	got, _ := numberOf(actual, stored)
	return got, stored
}

func (l *leaser) All() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for k, h := range l.Cache.All() {
			if !yield(k, h.n) {
				return
			}
		}
	}
}

// leaseTrial is cacheTrial for a cache that closes its values. In the end it
// is closed, and then every value that was ever the cache's own must have been
// closed once.
func leaseTrial(discard func(*leaser, *lease, int)) func(*rand.Rand) history.Trial[cacheState] {
	return func(*rand.Rand) history.Trial[cacheState] {
		hs := newHandles()
		return history.Trial[cacheState]{
			Clients: cacheClients, Value: hs.Cache,
			Work: func(client *history.Client[cacheState]) {
				l := &leaser{handles: hs, discard: discard}
				l.client = &cacheClient{Client: client, cache: l, looksAgain: true}
				l.client.Rounds(cacheKeys, func(k int) {
					if l.client.IntN(2) == 0 {
						l.drop(k)
					}
					l.client.operate(k)
				}, l.client.tide)
				for k := range cacheKeys {
					l.drop(k)
				}
			},
			After: func(client *history.Client[cacheState]) {
				l := &leaser{handles: hs}
				l.client = &cacheClient{Client: client, cache: l}
				for k := range cacheKeys {
					l.client.get(k)
				}
				if err := hs.Close(context.Background()); err != nil {
					client.Errorf("Close: %v", err)
				}
				for n, h := range hs.owned.Range {
					if times := h.(*handle).closed.Load(); times != 1 {
						client.Errorf("%d was closed %d times", n, times)
					}
				}
			},
		}
	}
}

func discard(_ *leaser, got *lease, _ int) { got.Discard() }

func TestLeaseHistories(t *testing.T) {
	cover := history.Check(t, leaseTrial(discard),
		"Discard false", "begin true", "begin false", "Delete true", "Set true", "CompareAndDelete true",
		"settled in a value", "settled in a panic", "end gets a value", "end gets ErrGoexit")
	cover.RequireResizes(t)
}

func TestBrokenLeaseHistories(t *testing.T) {
	t.Run("a Discard of whatever is there", func(t *testing.T) {
		history.Reject(t, leaseTrial(func(l *leaser, got *lease, k int) {
			got.Release()
			l.Cache.Delete(k)
		}))
	})
	t.Run("a handle that its user closes too", func(t *testing.T) {
		history.Expose(t, "closed 2 times", leaseTrial(func(_ *leaser, got *lease, _ int) {
			h := got.Value()
			got.Discard()
			h.closed.Add(1)
		}))
	})
	t.Run("a handle that is closed in use", func(t *testing.T) {
		history.Expose(t, "though there is a lease", leaseTrial(func(_ *leaser, got *lease, _ int) {
			got.Value().closed.Add(1)
			got.Discard()
		}))
	})
}
