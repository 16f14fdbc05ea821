//go:build modelcheck

package shardedregistry_test

import (
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Last of a snapshot is at least every version whose call had returned, also while its cell
// leaves the table and another takes its place.
func TestSnapshotLastProtocol(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  []call
		others threads
	}{
		{"Put, Snapshot ∥ Delete", with7, threads{{remove}}},
		{"Put, Snapshot ∥ Delete, Create", with7, threads{{remove, create(5)}}},
		{"Put, Snapshot ∥ Delete ∥ Create", with7, threads{{remove}, {create(5)}}},
		{"Put, Snapshot ∥ Delete, Create, Delete", with7, threads{{remove, create(5), remove}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: tt.name, Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
				r := oneShard()
				for _, c := range tt.first {
					c.Do(r)
				}
				m.Go(func() {
					seen, _ := r.Put("a", 8)
					if last := r.Snapshot().Last(); last < seen {
						m.Failf("Last = %d after version %d", last, seen)
					}
				})
				for _, calls := range tt.others {
					m.Go(func() {
						for _, c := range calls {
							c.Do(r)
						}
					})
				}
				m.Final(func() {
					e, _ := r.Delete("a")
					last := r.Snapshot().Last()
					again, err := shardedregistry.Restore(shardedregistry.Config[string, int]{Shards: 1}, last, slices.Values([]shardedregistry.Entry[string, int]{}))
					if err != nil {
						m.Failf("%v", err)
					}
					if v, _ := again.Put("a", 1); v <= e.Version+1 && e.Version > 0 {
						m.Failf("version %d is given again, after %d", v, e.Version)
					}
				})
			})
		})
	}
}
