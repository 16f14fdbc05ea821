package service

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// ErrAlreadyApplied: the changeset was applied under another key, or elsewhere.
var ErrAlreadyApplied = errors.New("the changeset was applied by another request")

// Apply seals a changeset and writes its changes to a database in one transaction. The
// same key again gets the same result. An empty key stands for the changeset's ID.
func (s *Service) Apply(ctx context.Context, changeset, key, url string) (api.Applied, error) {
	url, err := s.database(url)
	if err != nil {
		return api.Applied{}, err
	}
	if key == "" {
		key = changeset
	}
	if len(key) > 2*maxField {
		return api.Applied{}, invalid("the idempotency key has more than %d bytes", 2*maxField)
	}
	c, err := s.set.Changesets.Get(ctx, changeset)
	if err != nil {
		return api.Applied{}, err
	}
	if c.Replica != s.set.Replica && url != s.config.Database { // which the replicas share
		return api.Applied{}, state.ErrElsewhere
	}
	if err := s.migrate(ctx, url); err != nil {
		return api.Applied{}, err
	}
	result := api.Applied{Changeset: changeset, Key: key, Database: url}
	err = s.set.Changesets.Apply(ctx, changeset, func(ctx context.Context, changes []api.Change) error {
		return s.write(ctx, &result, changes)
	})
	if errors.Is(err, state.ErrApplied) {
		return s.replay(ctx, result)
	}
	if errors.Is(err, engine.ErrOtherKey) {
		err = ErrAlreadyApplied
	}
	return result, err
}

// write is the unit of work of Apply. It may run again for a changeset, if the process has
// ended before the journal knew of its success: then the database has it.
func (s *Service) write(ctx context.Context, result *api.Applied, changes []api.Change) error {
	return s.withEngine(ctx, result.Database, func(e *engine.Engine) error {
		s.slow(result.Database, s.config.SlowApply)
		w, err := e.Write(ctx, result.Key, result.Changeset, changes)
		if err != nil {
			return err
		}
		result.Engine, result.Changes, result.Replayed = e.Number, w.Changes, w.Replayed
		if !w.Replayed {
			s.counters.applied.Add(1)
			s.counters.written.Add(uint64(w.Changes))
		}
		ids := make([]string, len(changes))
		for i, c := range changes {
			ids[i] = c.ID
		}
		s.note(api.AuditLine{Kind: api.KindApplied, Changeset: result.Changeset, Key: result.Key, Database: result.Database,
			Engine: result.Engine, Changes: ids, Count: w.Changes, Replayed: w.Replayed})
		return nil
	})
}

// replay returns what the database has under the key.
func (s *Service) replay(ctx context.Context, result api.Applied) (api.Applied, error) {
	err := s.withEngine(ctx, result.Database, func(e *engine.Engine) error {
		w, err := e.Find(ctx, result.Key, result.Changeset)
		result.Engine, result.Changes, result.Replayed = e.Number, w.Changes, true
		return err
	})
	if errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrOtherKey) {
		return api.Applied{}, ErrAlreadyApplied
	}
	return result, err
}

// ApplyPlan applies all changesets of a plan, in order, each under KEY/CHANGESET. It
// leaves out those that were applied under other keys, or are open at another replica.
// After an error, the same call goes on where it was.
func (s *Service) ApplyPlan(ctx context.Context, plan, key, url string) ([]api.Applied, error) {
	p, err := s.set.Plans.Get(plan)
	if err != nil {
		return nil, err
	}
	if key == "" {
		key = p.Name
	}
	all := []api.Applied{}
	for _, c := range s.Changesets() {
		if c.Plan != p.Name {
			continue
		}
		a, err := s.Apply(ctx, c.ID, key+"/"+c.ID, url)
		if errors.Is(err, ErrAlreadyApplied) || errors.Is(err, state.ErrElsewhere) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}
