package clustered

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
	"github.com/latchfree/latchfree/shardedregistry"
)

// trail is the trail of another replica, as far as it is followed here.
type trail struct {
	reader  *changeset.Store[api.Change]
	replica int
	timeout time.Duration // of a request that waits for the trail
	log     *slog.Logger
	byID    shardedregistry.Registry[string, followed]
	latest  changeset.Event[api.Change] // that started a changeset; the follower's own
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	reached uint64        // the sequence of the last event
	moved   chan struct{} // closed and replaced with each event
}

// followed is a changeset as it is in a trail. Its changes are a prefix of those that come:
// the follower alone appends, behind what anybody else has seen.
type followed struct {
	api.Changeset
	changes []api.Change
}

// followTrail follows the trail of a replica until it is closed. It returns before it has
// read any of it.
func followTrail(ctx context.Context, c Config, replica int) (*trail, error) {
	reader, err := changeset.Open(ctx, c.JetStream, changeset.Options[api.Change]{Stream: trailName(replica)})
	if err != nil {
		return nil, err
	}
	t := &trail{reader: reader, replica: replica, timeout: c.Timeout, log: c.Log, moved: make(chan struct{})}
	following, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.ended.Go(func() { t.follow(following) })
	return t, nil
}

func (t *trail) close(context.Context) error {
	t.stop()
	t.ended.Wait()
	return nil
}

// follow follows the trail, and again from its beginning when it is not what it was: when
// the engine was restored from a backup.
func (t *trail) follow(ctx context.Context) {
	for ctx.Err() == nil {
		for e, err := range t.reader.Follow(ctx, changeset.Position{}) {
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.log.Warn("trail", "of", t.replica, "error", err)
				break
			}
			t.take(e)
			t.reach(e.Position.Sequence)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		t.byID.Clear()
		t.latest = changeset.Event[api.Change]{}
		t.reach(0)
	}
}

// take brings a changeset up to date.
func (t *trail) take(e changeset.Event[api.Change]) {
	if e.Kind == changeset.Claimed || e.Kind == changeset.Pruned {
		return
	}
	if e.Kind == changeset.Started {
		// A Start that was told as failed, and had only been stored, is replaced.
		if t.latest.Ordinal == e.Ordinal && t.latest.ChangesetID != e.ChangesetID {
			t.byID.Delete(t.latest.ChangesetID)
		}
		t.latest = e
	}
	t.change(e.ChangesetID, func(c *followed) {
		switch e.Kind {
		case changeset.Started:
			*c = followed{Changeset: api.Changeset{ID: e.ChangesetID, Replica: strconv.Itoa(t.replica), Ordinal: e.Ordinal, Plan: latchfree.PlanOf(e.ChangesetID)}}
		case changeset.Appended:
			for _, entry := range e.Entries {
				c.changes = append(c.changes, entry.Value)
			}
			c.Changes = len(c.changes)
		case changeset.Sealed, changeset.Aborted:
			c.Sealed = true
		case changeset.Applied:
			c.Applied = true
		}
	})
}

func (t *trail) change(id string, f func(*followed)) {
	t.byID.Compute(id, func(c followed, _ bool) (followed, shardedregistry.ComputeOp, error) {
		f(&c)
		return c, shardedregistry.UpdateOp, nil
	})
}

// applied notes that this replica has applied a changeset of the trail, which only its
// owner can write there.
func (t *trail) applied(id string) { t.change(id, func(c *followed) { c.Applied = true }) }

func (t *trail) reach(sequence uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached = sequence
	close(t.moved)
	t.moved = make(chan struct{})
}

// get returns a changeset. If it is not there, get asks the engine how far the trail goes,
// and waits until all of that was read.
func (t *trail) get(ctx context.Context, id string) (followed, error) {
	return t.find(ctx, id, func(followed) bool { return true })
}

// sealed is get of a changeset that is sealed.
func (t *trail) sealed(ctx context.Context, id string) (followed, error) {
	c, err := t.find(ctx, id, func(c followed) bool { return c.Sealed })
	if err == nil && !c.Sealed {
		err = state.ErrElsewhere
	}
	return c, err
}

func (t *trail) find(ctx context.Context, id string, enough func(followed) bool) (followed, error) {
	c, ok := t.byID.Get(id)
	if !ok || !enough(c) {
		if err := t.catchUp(ctx); err != nil {
			return c, fmt.Errorf("%w: trail of replica %d: %w", state.ErrUnavailable, t.replica, err)
		}
		if c, ok = t.byID.Get(id); !ok {
			return c, state.ErrNotFound
		}
	}
	return c, nil
}

// catchUp waits until what the trail has now was read.
func (t *trail) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	end, err := t.reader.End(ctx)
	if err != nil {
		return err
	}
	for {
		t.mu.Lock()
		reached, moved := t.reached, t.moved
		t.mu.Unlock()
		if reached >= end.Sequence {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// all returns the changesets, the oldest first.
func (t *trail) all() []followed {
	var all []followed
	for _, c := range t.byID.All() {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b followed) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return all
}
