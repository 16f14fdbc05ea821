package naive

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// changesets is a list of IDs, the last of which is the current one, and a store.
type changesets struct {
	gil
	ids   []string
	store map[string]*changeset
	order []*changeset
	step  func(string)
}

type changeset struct {
	info     api.Changeset
	changes  []api.Change
	applying bool
}

// Start stores a changeset, and then makes it the current one. What is recorded between
// the steps lands in the one before, and two Starts may do their second step in the other
// order.
func (s *changesets) Start(_ context.Context, plan string) (api.Changeset, error) {
	c := &changeset{info: api.Changeset{ID: rand.Text(), Plan: plan}}
	var info api.Changeset
	s.do(func() {
		c.info.Ordinal = uint64(len(s.order) + 1)
		s.order = append(s.order, c)
		s.store[c.info.ID] = c
		info = c.info
	})
	s.step("changesets: started in the store")
	s.do(func() { s.ids = append(s.ids, info.ID) })
	return info, nil
}

// Record looks whether there is a changeset, reads the ID of the last one, and adds to
// that in the store. It may have been sealed, or applied, before the third step.
func (s *changesets) Record(_ context.Context, change api.Change) (r api.Receipt, err error) {
	s.do(func() {
		if len(s.ids) == 0 {
			err = state.ErrNoActive
		}
	})
	if err != nil {
		return api.Receipt{}, err
	}
	s.step("changesets: saw that there is one")
	var id string
	s.do(func() {
		if len(s.ids) == 0 {
			err = state.ErrIndex
			return
		}
		id = s.ids[len(s.ids)-1]
	})
	if err != nil {
		return api.Receipt{}, err
	}
	s.step("changesets: read the current ID")
	s.do(func() {
		c := s.store[id]
		r = api.Receipt{Change: change.ID, Changeset: id, Ordinal: c.info.Ordinal, Seq: uint64(len(c.changes))}
		c.changes = append(c.changes, change)
	})
	return r, nil
}

// Seal takes the changeset, and those before it, off the list.
func (s *changesets) Seal(_ context.Context, id string) (api.Changeset, error) {
	var c *changeset
	s.do(func() {
		if c = s.store[id]; c != nil {
			c.info.Sealed = true
			s.ids = s.ids[slices.Index(s.ids, id)+1:]
		}
	})
	if c == nil {
		return api.Changeset{}, state.ErrNotFound
	}
	return s.Get(context.Background(), id)
}

// Apply reads the changes. Those that a Record adds later are never applied.
func (s *changesets) Apply(ctx context.Context, id string, fn func(context.Context, []api.Change) error) (err error) {
	if _, err := s.Seal(ctx, id); err != nil {
		return err
	}
	var c *changeset
	var changes []api.Change
	s.do(func() {
		c = s.store[id]
		switch {
		case c.info.Applied:
			err = state.ErrApplied
		case c.applying:
			err = state.ErrApplying
		default:
			c.applying = true
			changes = slices.Clone(c.changes)
		}
	})
	if err != nil {
		return err
	}
	done := false
	defer s.do(func() { c.applying, c.info.Applied = false, done })
	err = fn(ctx, changes)
	done = err == nil
	return err
}

func (s *changesets) Get(_ context.Context, id string) (info api.Changeset, err error) {
	s.do(func() {
		if c := s.store[id]; c != nil {
			info = s.describe(c)
		} else {
			err = state.ErrNotFound
		}
	})
	return info, err
}

func (s *changesets) All() iter.Seq[api.Changeset] {
	var all []api.Changeset
	s.do(func() {
		for _, c := range s.order {
			all = append(all, s.describe(c))
		}
	})
	return slices.Values(all)
}

func (s *changesets) Trail() iter.Seq2[api.Receipt, api.Change] {
	return func(yield func(api.Receipt, api.Change) bool) {
		var all []changeset
		s.do(func() {
			for _, c := range s.order {
				all = append(all, changeset{info: c.info, changes: slices.Clone(c.changes)})
			}
		})
		for _, c := range all {
			for i, change := range c.changes {
				r := api.Receipt{Change: change.ID, Changeset: c.info.ID, Ordinal: c.info.Ordinal, Seq: uint64(i)}
				if !yield(r, change) {
					return
				}
			}
		}
	}
}

func (s *changesets) Close(context.Context) error { return nil }

// describe runs in a step.
func (s *changesets) describe(c *changeset) api.Changeset {
	info := c.info
	info.Changes = len(c.changes)
	info.Sealed = info.Sealed || len(s.ids) > 0 && s.ids[len(s.ids)-1] != info.ID
	return info
}
