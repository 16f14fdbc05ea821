package latchfree

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/shardedregistry"
)

type changesets struct {
	tracker *cowchangeset.Tracker[api.Change]
	journal *journal.Journal[api.Change]
	byID    shardedregistry.Registry[string, started]
}

// started is a changeset and what it is for, which a tracker does not know.
type started struct {
	c    *cowchangeset.Changeset[api.Change]
	plan string
}

func (s *changesets) index(planOf map[string]string) {
	for _, id := range s.tracker.IDs() {
		if c, ok := s.tracker.ByID(id); ok {
			s.byID.Put(id, started{c, planOf[id]})
		}
	}
}

func (s *changesets) Start(ctx context.Context, plan string) (api.Changeset, error) {
	c, err := s.tracker.Start(ctx)
	if err != nil {
		return api.Changeset{}, err
	}
	s.byID.Put(c.ID(), started{c, plan})
	return describe(started{c, plan}), nil
}

func (s *changesets) Record(ctx context.Context, change api.Change) (api.Receipt, error) {
	r, err := s.tracker.RecordContext(ctx, change)
	if errors.Is(err, cowchangeset.ErrNoActive) {
		err = fmt.Errorf("%w (%w)", state.ErrNoActive, err)
	}
	return receipt(r, change), err
}

func (s *changesets) Seal(ctx context.Context, id string) (api.Changeset, error) {
	c, err := s.find(id)
	if err != nil {
		return api.Changeset{}, err
	}
	if _, err := c.c.Seal(ctx); err != nil {
		return api.Changeset{}, err
	}
	return describe(c), nil
}

func (s *changesets) Apply(ctx context.Context, id string, fn func(context.Context, []api.Change) error) error {
	c, err := s.find(id)
	if err != nil {
		return err
	}
	err = c.c.Apply(ctx, func(ctx context.Context, f cowchangeset.Final[api.Change]) error {
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

func (s *changesets) Get(id string) (api.Changeset, error) {
	c, err := s.find(id)
	if err != nil {
		return api.Changeset{}, err
	}
	return describe(c), nil
}

// All follows the links from the first changeset, so that it needs no index.
func (s *changesets) All() iter.Seq[api.Changeset] {
	return func(yield func(api.Changeset) bool) {
		for c, _ := s.tracker.ByOrdinal(1); c != nil; c = c.Next() {
			known, _ := s.byID.Get(c.ID())
			if !yield(describe(started{c, known.plan})) {
				return
			}
		}
	}
}

func (s *changesets) Trail() iter.Seq2[api.Receipt, api.Change] {
	return func(yield func(api.Receipt, api.Change) bool) {
		for r, change := range s.tracker.Trail().All() {
			if !yield(receipt(r, change), change) {
				return
			}
		}
	}
}

func (s *changesets) Close(ctx context.Context) error {
	err := s.tracker.Flush(ctx)
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	return err
}

func (s *changesets) find(id string) (started, error) {
	if c, ok := s.byID.Get(id); ok {
		return c, nil
	}
	// A Start may have returned to the tracker and not yet have stored its changeset here.
	if c, ok := s.tracker.ByID(id); ok {
		return started{c: c}, nil
	}
	return started{}, state.ErrNotFound
}

func describe(s started) api.Changeset {
	sealed := false
	select {
	case <-s.c.Sealed():
		sealed = true
	default:
	}
	return api.Changeset{ID: s.c.ID(), Ordinal: s.c.Ordinal(), Plan: s.plan, Changes: s.c.Len(),
		Sealed: sealed, Applied: s.c.Applied() == cowchangeset.AllApplied}
}

func receipt(r cowchangeset.Receipt, change api.Change) api.Receipt {
	return api.Receipt{Change: change.ID, Changeset: r.ChangesetID, Ordinal: r.Ordinal, Seq: r.Seq}
}
