package locked

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

type changesets struct {
	mu    sync.Mutex
	store map[string]*changeset
	order []*changeset
}

type changeset struct {
	info     api.Changeset
	changes  []api.Change
	applying bool
}

func (s *changesets) Start(_ context.Context, plan string) (api.Changeset, error) {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.order) - 1; last >= 0 {
		s.order[last].info.Sealed = true
	}
	c := &changeset{info: api.Changeset{ID: id, Plan: plan, Ordinal: uint64(len(s.order) + 1)}}
	s.store[id] = c
	s.order = append(s.order, c)
	return c.describe(), nil
}

func (s *changesets) Record(_ context.Context, change api.Change) (api.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.order) - 1
	if last < 0 || s.order[last].info.Sealed {
		return api.Receipt{}, state.ErrNoActive
	}
	c := s.order[last]
	c.changes = append(c.changes, change)
	return c.receipt(len(c.changes) - 1), nil
}

func (s *changesets) Seal(_ context.Context, id string) (api.Changeset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.store[id]
	if c == nil {
		return api.Changeset{}, state.ErrNotFound
	}
	c.info.Sealed = true
	return c.describe(), nil
}

// Apply calls fn outside the lock.
func (s *changesets) Apply(ctx context.Context, id string, fn func(context.Context, []api.Change) error) error {
	c, err := s.claim(id)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.applying, c.info.Applied = false, done
	}()
	err = fn(ctx, c.changes) // sealed: nobody writes them
	done = err == nil
	return err
}

func (s *changesets) claim(id string) (*changeset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.store[id]
	switch {
	case c == nil:
		return nil, state.ErrNotFound
	case c.info.Applied:
		return nil, state.ErrApplied
	case c.applying:
		return nil, state.ErrApplying
	}
	c.info.Sealed, c.applying = true, true
	return c, nil
}

func (s *changesets) Get(_ context.Context, id string) (api.Changeset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.store[id]; c != nil {
		return c.describe(), nil
	}
	return api.Changeset{}, state.ErrNotFound
}

func (s *changesets) All() iter.Seq[api.Changeset] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]api.Changeset, len(s.order))
	for i, c := range s.order {
		all[i] = c.describe()
	}
	return slices.Values(all)
}

func (s *changesets) Trail() iter.Seq2[api.Receipt, api.Change] {
	return func(yield func(api.Receipt, api.Change) bool) {
		s.mu.Lock()
		all := make([]changeset, len(s.order))
		for i, c := range s.order {
			all[i] = *c // later changes are appended behind its length
		}
		s.mu.Unlock()
		for _, c := range all {
			for i, change := range c.changes {
				if !yield(c.receipt(i), change) {
					return
				}
			}
		}
	}
}

func (s *changesets) Close(context.Context) error { return nil }

func (c *changeset) describe() api.Changeset {
	info := c.info
	info.Changes = len(c.changes)
	return info
}

func (c *changeset) receipt(i int) api.Receipt {
	return api.Receipt{Change: c.changes[i].ID, Changeset: c.info.ID, Ordinal: c.info.Ordinal, Seq: uint64(i)}
}
