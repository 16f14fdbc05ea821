//go:build modelcheck

package interleavings

import (
	"fmt"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// firstComputeOp is the first code of Compute, of 64, that no seed had: so the
// seeds mean what they meant.
const firstComputeOp = 56

// registryCompute is Compute with a function that asks for op, or for the next one if
// what it is given is odd.
func registryCompute(key int, name string, id int, op shardedregistry.ComputeOp) registryOp {
	fn := func(old int, exists bool) (int, shardedregistry.ComputeOp, error) {
		return 100*old + id, (op + shardedregistry.ComputeOp(old&1)) % 3, nil
	}
	return registryOp{Name: fmt.Sprintf("Compute(%q) %d", name, op), Do: func(c *registryCaller) {
		var e registryEntry
		c.Once("Compute", func() any {
			var present bool
			var err error
			e, present, err = c.Real.Compute(name, fn)
			c.Real.saw(c, key, e.Version)
			return registryResult(fmt.Sprint(e, present), err)
		}, func(s *model.Registry, _ int) any {
			s.Adopt(name, e.Version)
			e, present, err := s.Compute(name, fn)
			return registryResult(fmt.Sprint(e, present), err)
		})
	}}
}
