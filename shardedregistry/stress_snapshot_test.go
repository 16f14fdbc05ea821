//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A writer changes one key after the other to the same value, over and over.
// Every snapshot shows an instant between two changes, no goroutine's snapshots
// go back, and what they showed once stays what they show.
func TestStressSnapshot(t *testing.T) {
	const pairs, takers = 2, 2
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 8})
	for p := range pairs {
		mustPut(t, r, fmt.Sprint("first ", p), 0)
		mustPut(t, r, fmt.Sprint("second ", p), 0)
	}
	n := iterations(1500)
	var over atomic.Int32
	hammer(t, pairs+takers, func(worker int) {
		if worker < pairs {
			defer over.Add(1)
			first, second := fmt.Sprint("first ", worker), fmt.Sprint("second ", worker)
			for i := 1; i <= n; i++ {
				r.Put(first, i)
				r.Update(second, func(int) (int, error) { return i, nil })
			}
			return
		}
		var last [pairs]int
		var kept *shardedregistry.Snapshot[string, int]
		var showed int
		for over.Load() < pairs {
			s := r.Snapshot()
			if s.Len() != 2*pairs {
				t.Errorf("a snapshot has %d keys, want %d", s.Len(), 2*pairs)
				return
			}
			for p := range pairs {
				a, _ := s.Get(fmt.Sprint("first ", p))
				b, _ := s.Get(fmt.Sprint("second ", p))
				if b > a || a > b+1 {
					t.Errorf("a snapshot has %d in the key that is changed first and %d in the second", a, b)
				}
				if a+b < last[p] {
					t.Errorf("a snapshot went back from %d to %d", last[p], a+b)
				}
				last[p] = a + b
			}
			if kept != nil {
				if now, _ := kept.Get("first 0"); now != showed {
					t.Errorf("a snapshot changed from %d to %d", showed, now)
				}
			}
			kept, showed = s, 0
			showed, _ = s.Get("first 0")
		}
	})
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d old records are kept", n)
	}
}

// While keys come and go, tables grow and shrink, and a goroutine moves a token
// from key to key, creating the next before it deletes the last, every snapshot
// has the token at one place or at two, contains what its collector has done, and
// all of what stays.
func TestStressSnapshotChurn(t *testing.T) {
	const stay, each, movers = 100, 300, 2
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	for i := range stay {
		mustPut(t, r, key(i), i)
	}
	token := func(i int) string { return fmt.Sprint("token ", i) }
	mustPut(t, r, token(0), 0)
	snapshots := iterations(60)
	var over atomic.Bool
	hammer(t, movers+2, func(worker int) {
		switch {
		case worker < movers:
			for !over.Load() {
				for i := range each {
					r.Create(fmt.Sprint(worker, "/", i), i)
				}
				for i := range each {
					r.Delete(fmt.Sprint(worker, "/", i))
				}
			}
		case worker == movers:
			for i := 0; !over.Load(); i++ {
				r.Create(token((i+1)%50), i+1)
				r.Delete(token(i % 50))
			}
		default:
			defer over.Store(true)
			for n := range snapshots {
				mustPut(t, r, "mine", n)
				s := r.Snapshot()
				if v, _ := s.Get("mine"); v != n {
					t.Errorf("a snapshot has %d, where its taker has put %d", v, n)
				}
				for i := range stay {
					if v, ok := s.Get(key(i)); !ok || v != i {
						t.Errorf("a snapshot has %d, %v for %s", v, ok, key(i))
					}
				}
				var tokens []int
				for i := range 50 {
					if v, ok := s.Get(token(i)); ok {
						tokens = append(tokens, v)
					}
				}
				if len(tokens) < 1 || len(tokens) > 2 {
					t.Errorf("a snapshot has the tokens %v, want one or two", tokens)
				}
			}
		}
	})
	r.Snapshot() // takes away what was created and deleted behind the last one
	if kept, linked := shardedregistry.Kept(r), shardedregistry.Linked(r); kept != 0 || linked != r.Len() {
		t.Errorf("%d old records are kept, and %d cells linked for %d keys", kept, linked, r.Len())
	}
}
