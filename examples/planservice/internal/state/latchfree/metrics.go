package latchfree

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/examples/planservice/api"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
)

// shownStrategies is how many breakers have metrics of their own. Clients name strategies,
// so there may be any number; the others are summed.
const shownStrategies = 20

// collectors returns what Prometheus may ask of the structures.
func collectors(actions registry[api.Action], plans registry[api.Plan], c *changesets, b breakers, e *engines) []prometheus.Collector {
	all := []prometheus.Collector{
		latchprom.Registry("actions", actions.r),
		latchprom.Registry("plans", plans.r),
		latchprom.Registry("changesets", &c.byID),
		latchprom.Tracker("changes", c.tracker),
		latchprom.Group("strategies", b.g, latchprom.GroupOptions[string]{MaxKeys: shownStrategies}),
		b.transitions,
		latchprom.Cache("engines", e.cache, latchprom.CacheOptions{Flights: true}),
		e.creations,
	}
	if c.journal != nil {
		all = append(all, latchprom.Journal("changes", c.journal))
	}
	return all
}
