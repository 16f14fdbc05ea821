//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// compute appends a digit to a value below 10, deletes one of up to 80, leaves a
// larger one, and creates the key if it is absent.
func compute(digit int) call {
	return call{Name: fmt.Sprintf("Compute(%d)", digit), Do: func(r registry) any {
		return results(r.Compute("a", func(v int, exists bool) (int, shardedregistry.ComputeOp, error) {
			switch {
			case v < 10 || !exists:
				return 10*v + digit, shardedregistry.UpdateOp, nil
			case v <= 80:
				return 0, shardedregistry.DeleteOp, nil
			}
			return 0, shardedregistry.CancelOp, nil
		}))
	}}
}

// computeRemove deletes the key by Compute if its value is below limit.
func computeRemove(limit int) call {
	return call{Name: fmt.Sprintf("Compute(delete <%d)", limit), Do: func(r registry) any {
		return results(r.Compute("a", func(v int, exists bool) (int, shardedregistry.ComputeOp, error) {
			if exists && v < limit {
				return 0, shardedregistry.DeleteOp, nil
			}
			return 0, shardedregistry.CancelOp, nil
		}))
	}}
}

func TestComputeProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"delete and Put", with7, threads{{computeRemove(10)}, {put(50)}, {lookup}}},
		{"delete and Put of what is deleted", with7, threads{{computeRemove(10)}, {put(5), put(6)}}},
		{"delete, delete and create", with7, threads{{computeRemove(10)}, {remove, create(5)}}},
		{"delete while others delete and create", with7, threads{{computeRemove(10)}, {remove}, {create(5)}}},
		{"two delete", with7, threads{{computeRemove(10)}, {computeRemove(10)}, {create(5)}}},
		{"delete and create", empty, threads{{computeRemove(10)}, {create(5), update(1)}}},
		{"two create", empty, threads{{compute(1), compute(2)}, {compute(3)}}},
		{"update and delete", with7, threads{{compute(1), compute(2)}, {compute(3), lookup}}},
		{"update, UpdateIf and DeleteIf", with7, threads{{compute(1)}, {updateIf(1, 5)}, {removeIf(2)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// A function that fails, panics, exits, or asks for what there is not, leaves nothing
// behind, and its answer is not taken.
func TestComputeLeavesProtocol(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Compute that fails, panics or exits ∥ Put, Delete"}, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 1)
		m.Go(func() {
			defer func() { recover() }()
			r.Compute("a", func(int, bool) (int, shardedregistry.ComputeOp, error) {
				return 99, shardedregistry.DeleteOp, m.Fault(mc.Error, mc.Panic, mc.Goexit)
			})
		})
		m.Go(func() { r.Put("a", 2); r.Put("a", 3) })
		m.Final(func() {
			e, ok := r.Lookup("a")
			if ok && e.Value != 3 || r.Len() != shardedregistry.Linked(r) || ok != (r.Len() == 1) {
				m.Failf("left %v, %v; Len = %d, %d linked", e, ok, r.Len(), shardedregistry.Linked(r))
			}
		})
	})
}

// A deletion by Compute while a snapshot is being taken is before or after its cut.
func TestComputeSnapshotProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"delete", with7, threads{{computeRemove(10)}, {snapshot}}},
		{"create and delete", empty, threads{{compute(1), compute(2), computeRemove(80)}, {snapshot}}},
		{"deleted by who knew of none", both7, threads{{computeRemove(10)}, {other(put(2)), get}, {snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := twoKeys(tt.first)
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
			snapshotProtocol(t, cfg, func() registry { return fresh() }, tt.first, tt.threads, snapshot, traces)
		})
	}
	first := []call{other(put(7))}
	fresh := twoKeys(first)
	t.Run("deletes what was created since", func(t *testing.T) {
		snapshotProtocol(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}, func() registry { return &joined{Registry: fresh()} }, first,
			threads{{computeRemove(10)}, {begin, create(1), snapshot}, {other(put(2)), get}}, finish, traces)
	})
}
