package service

import (
	"maps"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
)

// processBit is where the number of a process is in a version. Beneath it there is room
// for 2^32 updates of a name by one process. Versions stay exact as JavaScript numbers
// for 2^21 processes.
const processBit = 32

// restore takes from the audit trail what the service had in memory when it stopped.
// Versions may be in the trail in another order than they were made.
//
// A client may have read a version that a killed process had not yet written to the
// trail. So that no other value gets that version, each process begins above all that
// the processes before it can have given.
func (s *Service) restore(c *latchfree.Config) {
	actions, plans := map[string]state.Entry[api.Action]{}, map[string]state.Entry[api.Plan]{}
	strategies := map[string]state.Entry[api.Strategy]{}
	processes := uint64(0) // before this one
	for line := range s.audit.All() {
		switch line.Kind {
		case api.KindAction:
			if line.Version > actions[line.Name].Version && line.Action != nil {
				actions[line.Name] = state.Entry[api.Action]{Name: line.Name, Version: line.Version, Value: *line.Action}
			}
		case api.KindPlan:
			if line.Version > plans[line.Name].Version && line.PlanValue != nil {
				plans[line.Name] = state.Entry[api.Plan]{Name: line.Name, Version: line.Version, Value: *line.PlanValue}
			}
		case api.KindProcess:
			processes++
		case api.KindStrategy:
			if line.Version > strategies[line.Strategy].Version {
				strategies[line.Strategy] = state.Entry[api.Strategy]{Name: line.Strategy, Version: line.Version,
					Value: api.Strategy{Name: line.Strategy, URL: line.URL}}
			}
		}
	}
	first := processes << processBit
	c.Actions, c.Plans, c.Strategies, c.LastVersion = renumber(actions, first), renumber(plans, first), renumber(strategies, first), first
}

func renumber[V any](entries map[string]state.Entry[V], first uint64) []state.Entry[V] {
	all := slices.Collect(maps.Values(entries))
	for i := range all {
		all[i].Version = max(all[i].Version, first)
	}
	return all
}
