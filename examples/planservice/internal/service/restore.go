package service

import (
	"maps"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
)

// restore takes from the audit trail what the service had in memory when it stopped.
// Versions may be in the trail in another order than they were made.
func (s *Service) restore(c *latchfree.Config) error {
	actions, plans := map[string]state.Entry[api.Action]{}, map[string]state.Entry[api.Plan]{}
	c.PlanOf = map[string]string{}
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
		case api.KindStarted:
			c.PlanOf[line.Changeset] = line.Plan
		case api.KindStrategy:
			if _, err := s.strategies.Put(line.Strategy, api.Strategy{Name: line.Strategy, URL: line.URL}); err != nil {
				return err
			}
		}
	}
	c.Actions, c.Plans = slices.Collect(maps.Values(actions)), slices.Collect(maps.Values(plans))
	return nil
}
