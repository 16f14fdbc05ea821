package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// receipts are what clients were told of their changes, and of changesets that they have
// applied.
type receipts struct {
	mu      sync.Mutex
	changes map[string]api.Receipt // by the change's ID
	applied map[string]api.Applied // by changeset
}

func newReceipts() *receipts {
	return &receipts{changes: map[string]api.Receipt{}, applied: map[string]api.Applied{}}
}

func (r *receipts) recorded(receipt api.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes[receipt.Change] = receipt
}

func (r *receipts) wasApplied(a api.Applied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied[a.Changeset] = a
}

// replayChangesets records changes while other clients start changesets, seal and apply
// those before.
func replayChangesets(ctx context.Context, l *storming) error {
	err := l.each(func(replica int) error {
		_, err := l.at(replica).StartChangeset(ctx, "storm")
		if l.isLost(err) { // there is one of before
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	starters := 2 // for each replica, if there are clients enough
	if l.clients < 4*len(l.replicas) {
		starters = 1
	}
	starters = max(2, starters*len(l.replicas))
	return together(l.clients, func(client int) error {
		if client < starters {
			return startAndApply(ctx, l, client)
		}
		for i := 0; l.during.Err() == nil; i++ {
			if err := recordOne(ctx, l, client, fmt.Sprintf("%d-%d", client, i)); err != nil && !l.isLost(err) {
				return err
			}
		}
		return nil
	})
}

// recordOne records a change at the replica of a client.
func recordOne(ctx context.Context, l *storming, client int, id string) error {
	var receipt api.Receipt
	err := l.timed(func() (err error) {
		receipt, err = l.at(client).Record(ctx, api.Change{ID: id, Plan: "storm", Action: "count"})
		return err
	})
	switch {
	case isRefusal(err):
		l.defect("changes refused", 1)
		return nil
	case err == nil:
		l.told.recorded(receipt)
	}
	return err
}

// isRefusal reports whether the service finds no changeset, where there always is one.
func isRefusal(err error) bool {
	return api.IsCode(err, api.CodeNoActiveChangeset) || api.IsCode(err, api.CodeInternal) || api.IsCode(err, api.CodeNotFound)
}

// startAndApply starts changesets, and seals and applies the one before each.
func startAndApply(ctx context.Context, l *storming, client int) error {
	before := "" // the changeset that was started last
	for i := 0; l.during.Err() == nil; i++ {
		last := before
		if !l.clustered() {
			all, err := l.Changesets(ctx) // so that clients race for it
			if err != nil {
				return err
			}
			if len(all) > 0 {
				last = all[len(all)-1].ID
			}
		}
		var next api.Changeset
		err := l.timed(func() (err error) { next, err = l.at(client).StartChangeset(ctx, "storm"); return err })
		if err == nil {
			before = next.ID
		}
		if err == nil && last != "" {
			err = l.timed(func() error { _, err := l.at(client).Seal(ctx, last); return err })
		}
		if err == nil && last != "" {
			err = applyEverywhere(ctx, l, client, last, fmt.Sprint(client, "-", i))
		}
		switch {
		case isRefusal(err):
			l.defect("changes refused", 1)
		case err != nil && !l.isLost(err):
			return err
		}
	}
	return nil
}

// applyEverywhere applies a changeset. In a cluster, two replicas are asked at once, with the
// same key.
func applyEverywhere(ctx context.Context, l *storming, client int, changeset, key string) error {
	database := "memory:storm"
	if l.clustered() {
		database = "" // which the replicas share
	}
	answers := make([]api.Applied, min(2, len(l.replicas)))
	err := together(len(answers), func(i int) error {
		apply := func() (err error) {
			answers[i], err = l.at(client+i).Apply(ctx, changeset, key, api.ApplyChangeset{Database: database})
			return err
		}
		err := l.timed(apply)
		// While the engine changes its leader, a replica may not know what others have sealed.
		for began := time.Now(); api.IsCode(err, api.CodeElsewhere) && time.Since(began) < patience; err = l.timed(apply) {
			time.Sleep(20 * time.Millisecond)
		}
		switch {
		case api.IsCode(err, api.CodeApplying) || api.IsCode(err, api.CodeAlreadyApplied), l.isLost(err):
			return nil
		case err == nil:
			l.told.wasApplied(answers[i])
		}
		return err
	})
	first := 0
	for _, a := range answers {
		if a.Changeset != "" && !a.Replayed {
			first++
		}
	}
	l.defect("changesets applied twice", max(0, first-1))
	return err
}
