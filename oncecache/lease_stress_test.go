//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// resource is a value that is to be closed.
type resource struct {
	key           int
	users, closed atomic.Int32
	closes        *atomic.Int32
}

func (r *resource) close(t *testing.T) {
	if n := r.users.Load(); n != 0 {
		t.Errorf("closed under %d users", n)
	}
	if n := r.closed.Add(1); n != 1 {
		t.Errorf("closed %d times", n)
	}
	r.closes.Add(1)
}

// use is what the holder of a lease does.
func (r *resource) use(t *testing.T) {
	r.users.Add(1)
	if r.closed.Load() != 0 {
		t.Error("in use, and closed")
	}
	runtime.Gosched()
	if r.closed.Load() != 0 {
		t.Error("closed while in use")
	}
	r.users.Add(-1)
}

// T28, T30, T31 ccache: whatever callers do to a few keys, each value is closed
// once, after its last user, or by Close, which comes while they are at it.
func TestStressLeases(t *testing.T) {
	var made, closes atomic.Int32
	fresh := func(k int) *resource {
		made.Add(1)
		return &resource{key: k, closes: &closes}
	}
	create := func(ctx context.Context, k int) (*resource, error) {
		if runtime.Gosched(); ctx.Err() != nil && rand.IntN(2) == 0 {
			return nil, ctx.Err()
		}
		if rand.IntN(8) == 0 {
			return nil, errRefused
		}
		return fresh(k), nil
	}
	for round := range 5 {
		c := oncecache.MustNew(oncecache.Config[int, *resource]{
			Close: func(_ int, r *resource) error { r.close(t); return nil },
		})
		wanted := func(k int, r *resource, err error) {
			if err == nil && (r == nil || r.key != k) {
				t.Errorf("key %d has %v", k, r)
			}
			if err != nil && !errors.Is(err, errRefused) && err != context.Canceled && err != oncecache.ErrClosed {
				t.Error(err)
			}
		}
		together(stressWorkers, func(worker int) {
			r := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			for i := range stressRounds() / 10 {
				k := r.IntN(stressKeys)
				ctx, leave := context.WithCancel(context.Background())
				if r.IntN(4) == 0 {
					go leave()
				}
				switch op := r.IntN(12); op {
				case 0:
					c.Set(k, fresh(k))
				case 1:
					if v := fresh(k); !stored(c.SetIfAbsent(k, v)) {
						v.close(t)
					}
				case 2:
					c.Delete(k)
				case 3:
					if v, ok := c.Get(k); ok {
						oncecache.CompareAndDelete(c, k, v)
					}
				case 4:
					v, err := c.GetOrCreateContext(ctx, k, create)
					wanted(k, v, err)
				case 5:
					v, err := c.GetOrCreate(k, func() (*resource, error) { return create(context.Background(), k) })
					wanted(k, v, err)
				case 6:
					if worker == 0 && i > stressRounds()/20 {
						c.Close(ctx)
					}
				default:
					l, err := c.Acquire(ctx, k, create)
					if err != nil {
						wanted(k, nil, err)
						break
					}
					wanted(k, l.Value(), nil)
					l.Value().use(t)
					if op == 7 {
						l.Discard()
					} else {
						l.Release()
					}
				}
				leave()
			}
		})
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if m, n := made.Load(), closes.Load(); m != n {
			t.Fatalf("round %d: %d values made, %d closed", round, m, n)
		}
		if creating, entries := oncecache.Creating(c); creating != 0 || entries != 0 || oncecache.Pending(c) != 0 {
			t.Errorf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
		}
	}
}
