//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/table"
)

// single is a key whose value is its index, where a value either has the key or
// has not. A writer adds the key to where it is missing before it stores, and
// takes it from where it was afterwards.
type single struct {
	now   atomics.Uint64
	under *table.Table[uint64, struct{ _ int }]
}

func newSingle(v uint64) *single {
	keys := table.NewKeys[uint64]()
	s := &single{under: table.New[uint64, struct{ _ int }](keys.Hasher("single"), 0)}
	s.put(v)
	return s
}

func (s *single) put(v uint64) {
	old := s.now.Load()
	s.under.LoadOrStore(v, new(struct{ _ int }))
	if s.now.CompareAndSwap(old, v) && old != v {
		s.under.LoadAndDelete(old)
	}
}

// A writer that moves the key back finds it still there, where the one that moved
// it away is about to take it from.
func TestPostingsWithoutCountsAreLost(t *testing.T) {
	mc.Refute(t, mc.Config{Operations: "move to 2 ∥ move back to 1"}, "the key is lost", func(m *mc.M) {
		s := newSingle(1)
		m.Go(func() { s.put(2) })
		m.Go(func() { s.put(1) })
		m.Final(func() {
			if v := s.now.Load(); s.under.Load(v) == nil {
				m.Failf("the key is lost: %s", fmt.Sprintf("it holds %d and is not found by that", v))
			}
		})
	})
}
