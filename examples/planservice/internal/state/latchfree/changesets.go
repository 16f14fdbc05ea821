package latchfree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Changesets keeps changesets in a tracker.
type Changesets struct {
	tracker *cowchangeset.Tracker[api.Change]
	store   cowchangeset.Store[api.Change] // nil: in memory
	replica string                         // "" if there is one only
	byID    shardedregistry.Registry[string, *changeset]
}

type changeset = cowchangeset.Changeset[api.Change]

// NewChangesets returns the changesets that Config.Store has; none if it is nil. Those of a
// replica have its name in their IDs, behind the plan.
func NewChangesets(ctx context.Context, config cowchangeset.Config[api.Change], replica string) (s *Changesets, err error) {
	prefix := ""
	if replica != "" {
		prefix = replica + "-"
	}
	config.NewID = newID(prefix)
	s = &Changesets{store: config.Store, replica: replica}
	if config.Store == nil {
		s.tracker, err = cowchangeset.New(config)
	} else {
		s.tracker, err = cowchangeset.Resume(ctx, config)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range s.tracker.All() {
		s.byID.Put(c.ID(), c)
	}
	return s, nil
}

// planKey is the key of the plan in the context of a Start.
type planKey struct{}

// newID puts the plan into the ID: the store gets both in one write, so that no kill
// comes between them.
func newID(prefix string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		plan, ok := ctx.Value(planKey{}).(string)
		if !ok {
			return "", errors.New("a changeset needs a plan")
		}
		return plan + "~" + prefix + rand.Text(), nil
	}
}

// PlanOf returns the plan in an ID. What is behind it has no "~".
func PlanOf(id string) string { return id[:max(0, strings.LastIndexByte(id, '~'))] }

func (s *Changesets) Start(ctx context.Context, plan string) (api.Changeset, error) {
	c, err := s.tracker.Start(context.WithValue(ctx, planKey{}, plan))
	if err != nil {
		return api.Changeset{}, err
	}
	s.byID.Put(c.ID(), c)
	return s.describe(c), nil
}

func (s *Changesets) Record(ctx context.Context, change api.Change) (api.Receipt, error) {
	r, err := s.tracker.RecordContext(ctx, change)
	if errors.Is(err, cowchangeset.ErrNoActive) {
		err = fmt.Errorf("%w (%w)", state.ErrNoActive, err)
	}
	return receipt(r, change), err
}

func (s *Changesets) Seal(ctx context.Context, id string) (api.Changeset, error) {
	c, err := s.find(id)
	if err != nil {
		return api.Changeset{}, err
	}
	if _, err := c.Seal(ctx); err != nil {
		return api.Changeset{}, err
	}
	return s.describe(c), nil
}

func (s *Changesets) Apply(ctx context.Context, id string, fn func(context.Context, []api.Change) error) error {
	c, err := s.find(id)
	if err != nil {
		return err
	}
	err = c.Apply(ctx, func(ctx context.Context, f cowchangeset.Final[api.Change]) error {
		changes := make([]api.Change, 0, f.Len())
		for _, change := range f.All() {
			changes = append(changes, change)
		}
		return fn(ctx, changes)
	})
	switch {
	case errors.Is(err, cowchangeset.ErrApplied):
		return state.ErrApplied
	case errors.Is(err, cowchangeset.ErrApplying):
		return state.ErrApplying
	}
	return err
}

func (s *Changesets) Get(_ context.Context, id string) (api.Changeset, error) {
	c, err := s.find(id)
	if err != nil {
		return api.Changeset{}, err
	}
	return s.describe(c), nil
}

func (s *Changesets) All() iter.Seq[api.Changeset] {
	return func(yield func(api.Changeset) bool) {
		for _, c := range s.tracker.All() {
			if !yield(s.describe(c)) {
				return
			}
		}
	}
}

func (s *Changesets) Trail() iter.Seq2[api.Receipt, api.Change] {
	return func(yield func(api.Receipt, api.Change) bool) {
		for r, change := range s.tracker.Trail().All() {
			if !yield(receipt(r, change), change) {
				return
			}
		}
	}
}

func (s *Changesets) Close(ctx context.Context) error {
	err := s.tracker.Flush(ctx)
	if c, ok := s.store.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Collectors returns what Prometheus may ask of the changesets.
func (s *Changesets) Collectors() []prometheus.Collector {
	all := []prometheus.Collector{latchprom.Registry("changesets", &s.byID), latchprom.Tracker("changes", s.tracker)}
	if j, ok := s.store.(*journal.Journal[api.Change]); ok {
		all = append(all, latchprom.Journal("changes", j))
	}
	return all
}

func (s *Changesets) find(id string) (*changeset, error) {
	if c, ok := s.byID.Get(id); ok {
		return c, nil
	}
	// A Start may have returned to the tracker and not yet have stored its changeset here.
	if c, ok := s.tracker.ByID(id); ok {
		return c, nil
	}
	return nil, state.ErrNotFound
}

func (s *Changesets) describe(c *changeset) api.Changeset {
	return api.Changeset{ID: c.ID(), Replica: s.replica, Ordinal: c.Ordinal(), Plan: PlanOf(c.ID()), Changes: c.Len(),
		Sealed: c.IsSealed(), Applied: c.Applied() == cowchangeset.AllApplied}
}

func receipt(r cowchangeset.Receipt, change api.Change) api.Receipt {
	return api.Receipt{Change: change.ID, Changeset: r.ChangesetID, Ordinal: r.Ordinal, Seq: r.Seq}
}
