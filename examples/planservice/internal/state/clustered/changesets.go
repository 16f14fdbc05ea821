package clustered

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
)

// changesets has the changesets of this replica, which it alone writes, and those that it
// reads in the trails of the others. An ID says whose it is.
type changesets struct {
	*latchfree.Changesets
	replica int
	trails  []*trail // by replica; nil for this one
	timeout time.Duration
}

func newChangesets(ctx context.Context, c Config, closing *closers) (*changesets, error) {
	store, err := changeset.Open(ctx, c.JetStream, changeset.Options[api.Change]{Stream: trailName(c.Replica), Holder: fmt.Sprint("replica ", c.Replica)})
	if err != nil {
		return nil, err
	}
	own, err := latchfree.NewChangesets(ctx, cowchangeset.Config[api.Change]{Store: store, StoreTimeout: c.Timeout}, strconv.Itoa(c.Replica))
	if err != nil {
		return nil, err
	}
	s := &changesets{Changesets: own, replica: c.Replica, trails: make([]*trail, c.Replicas), timeout: c.Timeout}
	for i := range s.trails {
		if i == c.Replica {
			continue
		}
		if s.trails[i], err = followTrail(ctx, c, i); err != nil {
			return nil, err
		}
		closing.add(s.trails[i].close)
	}
	return s, nil
}

// other returns the trail of the replica whose changeset it is, or nil if that is this one.
func (s *changesets) other(id string) *trail {
	text, _, _ := strings.Cut(id[strings.LastIndexByte(id, '~')+1:], "-")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < len(s.trails) {
		return s.trails[n]
	}
	return nil
}

func (s *changesets) Start(ctx context.Context, plan string) (api.Changeset, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c, err := s.Changesets.Start(ctx, plan)
	return c, unknown(err)
}

func (s *changesets) Record(ctx context.Context, change api.Change) (api.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := s.Changesets.Record(ctx, change)
	return r, unknown(err)
}

// Seal seals a changeset of this replica. One of another replica is sealed there.
func (s *changesets) Seal(ctx context.Context, id string) (api.Changeset, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if t := s.other(id); t != nil {
		c, err := t.sealed(ctx, id)
		return c.Changeset, err
	}
	c, err := s.Changesets.Seal(ctx, id)
	return c, unknown(err)
}

// Apply applies a changeset of this replica, or one that another replica has sealed: then
// only what fn writes to keeps several replicas from doing so.
func (s *changesets) Apply(ctx context.Context, id string, fn func(context.Context, []api.Change) error) error {
	t := s.other(id)
	if t == nil {
		return unknown(s.Changesets.Apply(ctx, id, fn))
	}
	c, err := t.sealed(ctx, id)
	switch {
	case err != nil:
		return err
	case c.Applied:
		return state.ErrApplied
	}
	if err := fn(ctx, c.changes); err != nil {
		return err
	}
	t.applied(id)
	return nil
}

func (s *changesets) Get(ctx context.Context, id string) (api.Changeset, error) {
	if t := s.other(id); t != nil {
		c, err := t.get(ctx, id)
		return c.Changeset, err
	}
	return s.Changesets.Get(ctx, id)
}

// All yields the changesets of the other replicas, and then those of this one.
func (s *changesets) All() iter.Seq[api.Changeset] {
	return func(yield func(api.Changeset) bool) {
		for _, t := range s.trails {
			if t == nil {
				continue
			}
			for _, c := range t.all() {
				if !yield(c.Changeset) {
					return
				}
			}
		}
		s.Changesets.All()(yield)
	}
}

// unknown says of an error of the store that what was asked for may have been done, or may
// be done later, unless it says that it never will.
func unknown(err error) error {
	if !errors.Is(err, cowchangeset.ErrStore) {
		return err
	}
	for _, never := range []error{changeset.ErrFenced, changeset.ErrRewound, changeset.ErrForeign, changeset.ErrCorrupt, changeset.ErrStream, changeset.ErrConflict} {
		if errors.Is(err, never) {
			return err
		}
	}
	return fmt.Errorf("%w (%w)", state.ErrUnknown, err)
}
