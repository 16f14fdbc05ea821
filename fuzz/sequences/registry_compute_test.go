package sequences

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

// firstRareOp is the first code of operations that came later than the seeds: so the
// seeds mean what they meant.
const firstRareOp = 224

// rareStep runs one of these operations.
func (s *registryRun) rareStep(name string, arg byte) {
	s.compute(name, registryEnding(arg)%registryEndings, shardedregistry.ComputeOp(arg/16%4))
}

// compute runs Compute with a function that asks for op, which may be none, and ends
// in the given way.
func (s *registryRun) compute(name string, ending registryEnding, op shardedregistry.ComputeOp) {
	run, value := 0, s.value
	var want *ended // of a function that changes nothing: from before it calls back
	var end func(r registryOps) ended
	end = func(r registryOps) ended {
		return endOf(func() (any, error) {
			e, present, err := r.Compute(name, func(old int, exists bool) (int, shardedregistry.ComputeOp, error) {
				if r != s.m {
					have, is := s.m.Get(name)
					require.Equal(s.t, is, exists)
					require.Equal(s.t, have, old)
					if op == shardedregistry.CancelOp || op == shardedregistry.DeleteOp && !exists {
						e := end(s.m)
						want = &e
					}
					run++
					s.callBack(name, ending, run)
				}
				v, err := ending.of(value)
				return v, op, err
			})
			return fmt.Sprint(e, present), err
		})
	}
	got := end(s.r)
	if want == nil {
		e := end(s.m)
		want = &e
	}
	s.same(*want, got)
}
