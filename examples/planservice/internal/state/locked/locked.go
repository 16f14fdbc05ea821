// Package locked implements planservice's shared structures with the fix that the defect
// reports suggest: one mutex around all steps of an operation of a structure.
package locked

import (
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// New returns the structures.
func New(open state.Opener, threshold int) state.Set {
	return state.Set{Name: "locked",
		Actions:    &registry[api.Action]{dict: map[string]state.Entry[api.Action]{}},
		Plans:      &registry[api.Plan]{dict: map[string]state.Entry[api.Plan]{}},
		Changesets: &changesets{store: map[string]*changeset{}},
		Breakers:   &breakers{failures: map[string]int{}, disabled: map[string]bool{}, threshold: threshold},
		Engines:    &engines{dict: map[string]*engine.Engine{}, open: open},
	}
}
