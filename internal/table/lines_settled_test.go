//go:build !modelcheck

package table

import (
	"sync"
	"testing"
)

// Settled yields what a Compute stores whose function was running when the loop began, also
// while the set grows.
func TestSettled(t *testing.T) {
	for _, others := range []int{0, 10, 1000} {
		s, hash := newSettled(others)
		var (
			running, resume = make(chan bool), make(chan bool)
			calls           sync.WaitGroup
		)
		calls.Go(func() {
			s.Compute(Hashed[int]{Hash: hash(-1), Key: -1}, func(*settledCell) *settledCell {
				close(running)
				<-resume
				return &settledCell{-1}
			})
		})
		<-running
		found := make(chan bool, 1)
		calls.Go(func() {
			seen := 0
			for c := range s.Settled() {
				if c.key == -1 {
					seen++
				}
			}
			found <- seen == 1
		})
		select {
		case <-found:
			t.Error("the loop has ended before the function")
		default:
		}
		close(resume)
		if !<-found {
			t.Errorf("beside %d others, what was being stored is not found once", others)
		}
		calls.Wait()
	}
}

type settledCell struct{ key int }

func newSettled(n int) (s *Lines[int, settledCell], hash func(int) uint64) {
	keys := NewKeys[int]()
	s = new(Lines[int, settledCell])
	s.Init(func(k int, _ uint64) uint64 { return keys.Hash(k) }, 0)
	for k := range n {
		s.Compute(Hashed[int]{Hash: keys.Hash(k), Key: k}, func(*settledCell) *settledCell { return &settledCell{k} })
	}
	return s, keys.Hash
}
