// Package naive implements planservice's shared structures with the algorithms of the
// defect reports. A mutex makes each single step safe, as the interpreter's lock does in
// Python, and nothing joins the steps of one operation.
package naive

import (
	"sync"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// Config holds the settings.
type Config struct {
	Open      state.Opener
	Threshold int
	// Step is called between the steps of an operation, with the name of the place. It
	// stands for what other threads do meanwhile. Nil does nothing.
	Step func(at string)
}

// New returns the structures.
func New(c Config) state.Set {
	if c.Step == nil {
		c.Step = func(string) {}
	}
	return state.Set{Name: "naive",
		Actions:    &registry[api.Action]{dict: map[string]state.Entry[api.Action]{}, step: c.Step},
		Plans:      &registry[api.Plan]{dict: map[string]state.Entry[api.Plan]{}, step: c.Step},
		Changesets: &changesets{store: map[string]*changeset{}, step: c.Step},
		Breakers:   &breakers{failures: map[string]int{}, disabled: map[string]bool{}, threshold: c.Threshold, step: c.Step},
		Engines:    &engines{dict: map[string]*engine.Engine{}, open: c.Open, step: c.Step},
	}
}

// gil makes one step safe.
type gil struct{ mu sync.Mutex }

func (g *gil) do(step func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	step()
}
