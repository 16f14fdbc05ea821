//go:build !modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// session keeps a lease for as long as it is open.
type session struct {
	engine oncecache.Lease[string, *engine]
	_      []string
}

// dial returns a lease as any other result.
func dial(ctx context.Context, c *oncecache.Cache[string, *engine], url string) (oncecache.Lease[string, *engine], error) {
	lease, err := c.Acquire(ctx, url, func(_ context.Context, url string) (*engine, error) { return &engine{url}, nil })
	if err != nil {
		return oncecache.Lease[string, *engine]{}, err
	}
	return lease, nil
}

func openSession(ctx context.Context, c *oncecache.Cache[string, *engine], url string) (session, error) {
	lease, err := dial(ctx, c, url)
	if err != nil {
		return session{}, err
	}
	return session{engine: lease}, nil
}

func (s *session) query() string { return s.engine.Value().url }
func (s *session) close()        { s.engine.Release() }

// Leases are values: they are returned, stored, sent and ranged over.
func TestLeasesArePassedAround(t *testing.T) {
	closed := 0
	c := oncecache.MustNew(oncecache.Config[string, *engine]{Close: func(string, *engine) error { closed++; return nil }})
	s, err := openSession(t.Context(), c, memory)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan session, 1)
	sent <- s
	owner := <-sent
	sessions := map[string]session{memory: owner}
	c.Delete(memory)
	kept := sessions[memory]
	if got := kept.query(); got != memory || closed != 0 {
		t.Errorf("%s, %d closed", got, closed)
	}
	kept.close()
	kept.close() // it is released, and knows it
	if closed != 1 {
		t.Errorf("%d closed", closed)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := openSession(t.Context(), c, memory); err != oncecache.ErrClosed {
		t.Error(err)
	}
}

// The zero Lease was released.
func TestZeroLease(t *testing.T) {
	var s session
	s.close()
	s.engine.Discard()
	s.close()
	if p := panicOf(func() { s.query() }); p != "oncecache: Value called on a released lease" {
		t.Error(p)
	}
}

// Of two copies one is released too many, which shows when nobody else holds the
// value, and closes nothing that others use.
func TestCopiesOfALease(t *testing.T) {
	const twice = "oncecache: lease released twice"
	for _, deleted := range []bool{false, true} {
		s := newShop()
		s.Set("k", 1)
		lease, other := *s.acquire(t, "k", -1), *s.acquire(t, "k", -1)
		copied := lease
		if deleted {
			s.Delete("k")
		}
		lease.Release()
		if v := copied.Value(); v != 1 {
			t.Errorf("the copy has %d", v)
		}
		if p := panicOf(copied.Release); p != nil && p != twice {
			t.Errorf("the copy: %v", p)
		} else if p == nil {
			if p := panicOf(other.Release); p != twice {
				t.Errorf("deleted %t: when all are released: %v", deleted, p)
			}
		}
		s.Delete("k")
		s.wantClosed(t, 1)
	}
}
