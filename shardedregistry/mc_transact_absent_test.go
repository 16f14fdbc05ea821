//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A transaction reads two keys that are never absent together, though each is absent whenever it
// is looked at. Their floors hide that: in each shard another key was deleted at a high version,
// after the key had been created and before its floor is read. So floor is not raised when the
// key is deleted. Only a second look, when floor is known, finds the key.
func TestTransactAbsentBehindFloors(t *testing.T) {
	const a, c, b, d = "a", "c", "b", "d" // a and c are in one shard, and b and d in the other
	cfg := mc.Config{Operations: "Read ∥ Create(a), Delete(b), floor of a, Create(b), floor of b, Delete(a), Create(a), Delete(b)"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoShards()
		for _, k := range []string{c, d} {
			for range 10 {
				r.Put(k, 1)
			}
		}
		r.Put(b, 1)
		raises := map[string]func(){c: shardedregistry.Kill(r, c), d: shardedregistry.Kill(r, d)}
		m.Go(func() {
			var inA, inB bool
			if err := model.Transact(r, func(tx model.TxOps) error {
				_, inA = tx.Get(a)
				_, inB = tx.Get(b)
				return nil
			}); err != nil || !inA && !inB {
				m.Failf("Read = %t, %t, %v", inA, inB, err)
			}
		})
		m.Go(func() {
			r.Create(a, 1)
			r.Delete(b)
			raises[c]()
			r.Create(b, 1)
			raises[d]()
			r.Delete(a)
			r.Create(a, 1)
			r.Delete(b)
		})
	})
}
