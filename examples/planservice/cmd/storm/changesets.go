package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// receipts are what clients were told of their changes, by the change's ID.
type receipts struct {
	mu  sync.Mutex
	all map[string]api.Receipt
}

func (r *receipts) add(id string, receipt api.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[id] = receipt
}

// replayChangesets records changes while other clients start changesets, seal and apply
// those before, and then looks in the audit trail for every receipt.
func replayChangesets(ctx context.Context, l *storming) error {
	if _, err := l.StartChangeset(ctx, "storm"); err != nil {
		return err
	}
	told := &receipts{all: map[string]api.Receipt{}}
	var mu sync.Mutex
	refused := 0
	err := together(l.clients, func(client int) error {
		for i := 0; l.during.Err() == nil; i++ {
			if client < 2 {
				err := startAndApply(ctx, l, fmt.Sprint(client, "-", i))
				if isRefusal(err) {
					mu.Lock()
					refused++
					mu.Unlock()
				} else if err != nil {
					return err
				}
				continue
			}
			id := fmt.Sprintf("%d-%d", client, i)
			var receipt api.Receipt
			err := l.load.timed(func() (err error) {
				receipt, err = l.Record(ctx, api.Change{ID: id, Plan: "storm", Action: "count"})
				return err
			})
			switch {
			case isRefusal(err):
				mu.Lock()
				refused++
				mu.Unlock()
			case err != nil:
				return err
			default:
				told.add(id, receipt)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.defects["changes refused"] += refused
	return compareTrail(ctx, l.service, told.all, l.defects)
}

// isRefusal reports whether the service finds no changeset, where there always is one.
func isRefusal(err error) bool {
	return api.IsCode(err, api.CodeNoActiveChangeset) || api.IsCode(err, api.CodeInternal) || api.IsCode(err, api.CodeNotFound)
}

// startAndApply starts a changeset, and seals and applies the one before, unless another
// client does.
func startAndApply(ctx context.Context, l *storming, key string) error {
	all, err := l.Changesets(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	last := all[len(all)-1]
	if err := l.load.timed(func() error { _, err := l.StartChangeset(ctx, "storm"); return err }); err != nil {
		return err
	}
	if err := l.load.timed(func() error { _, err := l.Seal(ctx, last.ID); return err }); err != nil {
		return err
	}
	err = l.load.timed(func() error {
		_, err := l.Apply(ctx, last.ID, key, api.ApplyChangeset{Database: "memory:storm"})
		return err
	})
	if api.IsCode(err, api.CodeApplying) || api.IsCode(err, api.CodeAlreadyApplied) {
		return nil
	}
	return err
}

// compareTrail counts what the audit trail says otherwise than the receipts.
func compareTrail(ctx context.Context, s *service, told map[string]api.Receipt, d defects) error {
	in := map[string][]string{}      // changesets by change
	applied := map[string][]string{} // changes by changeset
	for line, err := range s.Audit(ctx) {
		switch {
		case err != nil:
			return err
		case line.Kind == api.KindChange:
			in[line.Change.ID] = append(in[line.Change.ID], line.Changeset)
		case line.Kind == api.KindApplied && !line.Replayed:
			applied[line.Changeset] = append(applied[line.Changeset], line.Changes...)
		}
	}
	for _, changes := range applied {
		slices.Sort(changes)
	}
	for id, receipt := range told {
		switch sets := in[id]; {
		case len(sets) == 0:
			d["changes lost"]++
		case len(sets) > 1:
			d["changes doubled"]++
		case sets[0] != receipt.Changeset:
			d["changes misplaced"]++
		default:
			if changes, ok := applied[sets[0]]; ok {
				if _, found := slices.BinarySearch(changes, id); !found {
					d["changes lost at apply"]++
				}
			}
		}
	}
	return nil
}
