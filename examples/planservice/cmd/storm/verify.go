package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
)

// trails is what the audit trails of all replicas say.
type trails struct {
	in      map[string][]string // changesets by change
	order   map[string][]string // changes by changeset, in order
	applied map[string][]string // changes by changeset, as it was applied
	times   map[string]int      // how often a changeset was applied
}

func readTrails(ctx context.Context, s *service) (t trails, err error) {
	t = trails{map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string]int{}}
	for _, replica := range s.replicas {
		for line, err := range replica.Audit(ctx) {
			switch {
			case err != nil:
				return t, err
			case line.Kind == api.KindChange:
				t.in[line.Change.ID] = append(t.in[line.Change.ID], line.Changeset)
				t.order[line.Changeset] = append(t.order[line.Changeset], line.Change.ID)
			case line.Kind == api.KindApplied && !line.Replayed:
				t.applied[line.Changeset] = append(t.applied[line.Changeset], line.Changes...)
				t.times[line.Changeset]++
			}
		}
	}
	return t, nil
}

// compareTrails counts what the audit trails say otherwise than the receipts.
func compareTrails(t trails, told *receipts, d defects) {
	applied := map[string]map[string]bool{}
	for changeset, changes := range t.applied {
		applied[changeset] = map[string]bool{}
		for _, id := range changes {
			applied[changeset][id] = true
		}
	}
	for id, receipt := range told.changes {
		switch sets := t.in[id]; {
		case len(sets) == 0:
			d["changes lost"]++
		case len(sets) == 1 && sets[0] != receipt.Changeset:
			d["changes misplaced"]++
		case len(sets) == 1 && applied[sets[0]] != nil && !applied[sets[0]][id]:
			d["changes lost at apply"]++
		}
	}
	for _, sets := range t.in { // also of those of which nobody was told
		d["changes doubled"] += len(sets) - 1
	}
	for _, n := range t.times {
		d["changesets applied twice"] += n - 1
	}
}

// applyAgain asks each replica to apply what was applied, with the same keys.
func applyAgain(ctx context.Context, s *service, told *receipts) error {
	const most = 50
	n := 0
	for id, was := range told.applied {
		if n++; n > most {
			break
		}
		for i, replica := range s.replicas {
			now, err := replica.Apply(ctx, id, was.Key, api.ApplyChangeset{})
			if err != nil {
				return fmt.Errorf("apply %s again at replica %d: %w", id, i, err)
			}
			if !now.Replayed || now.Changes != was.Changes {
				return fmt.Errorf("apply %s again at replica %d: %+v, and it was %+v", id, i, now, was)
			}
		}
	}
	return nil
}

// compareReplicas waits until all replicas show the same names with the same versions.
func compareReplicas(ctx context.Context, s *service) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		shown := make([]string, len(s.replicas))
		for i, replica := range s.replicas {
			actions, err := replica.Actions(ctx)
			if err != nil {
				return err
			}
			plans, err := replica.Plans(ctx)
			if err != nil {
				return err
			}
			strategies, err := replica.Strategies(ctx)
			if err != nil {
				return err
			}
			shown[i] = fmt.Sprint(actions, plans, strategies)
		}
		switch {
		case len(slices.Compact(shown)) == 1:
			return nil
		case time.Since(began) > patience:
			return errors.New("the replicas do not show the same actions, plans and strategies")
		}
	}
}

// compareDatabase counts what the database of a cluster, which has ended, has otherwise than
// the trails, for changesets that clients were told were applied.
func compareDatabase(ctx context.Context, file string, t trails, told *receipts, d defects) error {
	e, err := engine.Open(ctx, engine.File+file, 0, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	for id := range told.applied {
		ids, err := e.IDs(ctx, id)
		if err != nil {
			return err
		}
		if !slices.Equal(ids, t.order[id]) {
			d["changes lost at apply"]++
		}
	}
	return nil
}
