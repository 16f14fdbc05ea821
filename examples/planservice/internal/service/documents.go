package service

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// Bounds of a plan.
const (
	maxActions    = 100
	maxStrategies = 64
)

// CreateAction creates an action.
func (s *Service) CreateAction(ctx context.Context, a api.Action) (api.Stored[api.Action], error) {
	e, err := s.set.Actions.Create(ctx, a.Name, a)
	return s.storedAction(e, err)
}

// PutAction replaces an action that has the version.
func (s *Service) PutAction(ctx context.Context, name string, version uint64, a api.Action) (api.Stored[api.Action], error) {
	if err := sameName(name, &a.Name); err != nil {
		return api.Stored[api.Action]{}, err
	}
	e, err := s.set.Actions.Update(ctx, name, version, a)
	return s.storedAction(e, err)
}

// Action returns an action.
func (s *Service) Action(name string) (api.Stored[api.Action], error) {
	e, err := s.set.Actions.Get(name)
	return wireAction(e), err
}

// Actions returns all actions by name.
func (s *Service) Actions() []api.Stored[api.Action] { return list(s.set.Actions, wireAction) }

// CreatePlan creates a plan.
func (s *Service) CreatePlan(ctx context.Context, p api.Plan) (api.Stored[api.Plan], error) {
	if err := s.check(&p); err != nil {
		return api.Stored[api.Plan]{}, err
	}
	e, err := s.set.Plans.Create(ctx, p.Name, p)
	return s.storedPlan(e, err)
}

// PutPlan replaces a plan that has the version.
func (s *Service) PutPlan(ctx context.Context, name string, version uint64, p api.Plan) (api.Stored[api.Plan], error) {
	err := sameName(name, &p.Name)
	if err == nil {
		err = s.check(&p)
	}
	if err != nil {
		return api.Stored[api.Plan]{}, err
	}
	e, err := s.set.Plans.Update(ctx, name, version, p)
	return s.storedPlan(e, err)
}

// Plan returns a plan.
func (s *Service) Plan(name string) (api.Stored[api.Plan], error) {
	e, err := s.set.Plans.Get(name)
	return wirePlan(e), err
}

// Plans returns all plans by name.
func (s *Service) Plans() []api.Stored[api.Plan] { return list(s.set.Plans, wirePlan) }

// storedAction writes to the trail that an action has got a version.
func (s *Service) storedAction(e state.Entry[api.Action], err error) (api.Stored[api.Action], error) {
	stored := wireAction(e)
	if err == nil {
		err = s.audit.Write(api.AuditLine{Kind: api.KindAction, Name: e.Name, Version: e.Version, Action: &stored.Value})
	}
	return stored, err
}

func (s *Service) storedPlan(e state.Entry[api.Plan], err error) (api.Stored[api.Plan], error) {
	stored := wirePlan(e)
	if err == nil {
		err = s.audit.Write(api.AuditLine{Kind: api.KindPlan, Name: e.Name, Version: e.Version, PlanValue: &stored.Value})
	}
	return stored, err
}

// check replaces the names in a plan by those under which the service has them.
func (s *Service) check(p *api.Plan) error {
	if len(p.Actions) == 0 || len(p.Actions) > maxActions {
		return invalid("a plan has 1 to %d actions", maxActions)
	}
	if len(p.Strategies) == 0 {
		p.Strategies = []string{api.Direct}
	}
	if len(p.Strategies) > maxStrategies {
		return invalid("a plan has at most %d strategies", maxStrategies)
	}
	for i, name := range p.Actions {
		e, err := s.set.Actions.Get(name)
		if err != nil {
			return invalid("unknown action %q", name)
		}
		p.Actions[i] = e.Name
	}
	seen := map[string]bool{}
	for i, name := range p.Strategies {
		e, err := s.set.Strategies.Get(name)
		switch {
		case err != nil:
			return invalid("unknown strategy %q", name)
		case seen[e.Name]:
			return invalid("strategy %q is there twice", name)
		}
		seen[e.Name] = true
		p.Strategies[i] = e.Name
	}
	return nil
}

// sameName checks that a body names what its path names, or nothing.
func sameName(path string, body *string) error {
	want, err := state.Normalize(path)
	if err != nil {
		return errors.Join(err, state.ErrNotFound)
	}
	if *body != "" {
		if got, err := state.Normalize(*body); err != nil || got != want {
			return invalid("the name %q is not that of the path", *body)
		}
	}
	*body = path
	return nil
}

func wireAction(e state.Entry[api.Action]) api.Stored[api.Action] {
	e.Value.Name = e.Name
	return api.Stored[api.Action]{Version: e.Version, Value: e.Value}
}

func wirePlan(e state.Entry[api.Plan]) api.Stored[api.Plan] {
	e.Value.Name = e.Name
	return api.Stored[api.Plan]{Version: e.Version, Value: e.Value}
}

func list[V any](r state.Registry[V], wire func(state.Entry[V]) api.Stored[V]) []api.Stored[V] {
	entries := slices.SortedFunc(r.All(), func(a, b state.Entry[V]) int { return cmp.Compare(a.Name, b.Name) })
	all := make([]api.Stored[V], len(entries))
	for i, e := range entries {
		all[i] = wire(e)
	}
	return all
}
