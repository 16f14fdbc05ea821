package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// replayEngines applies two changesets to one new database at once, again and again, and
// looks in the audit trail for databases that were opened twice.
func replayEngines(ctx context.Context, l *storming) error {
	err := l.each(func(replica int) error {
		for round := 0; l.during.Err() == nil; round++ {
			if err := openOne(ctx, l, replica, fmt.Sprintf("round-%d-%d", replica, round)); err != nil && !l.isLost(err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	<-l.back
	for _, replica := range l.replicas {
		opened := map[string]int{}
		for line, err := range replica.Audit(ctx) {
			switch {
			case err != nil:
				return err
			case line.Kind == api.KindEngine && strings.Contains(line.Database, "round-"):
				opened[line.Database]++
			}
		}
		for _, n := range opened {
			l.defect("second engines", n-1)
		}
	}
	return nil
}

// openOne lets two requests to a replica open a database at once.
func openOne(ctx context.Context, l *storming, replica int, name string) error {
	at := l.at(replica)
	var sets [2]api.Changeset
	for i := range sets {
		err := l.timed(func() (err error) { sets[i], err = at.StartChangeset(ctx, "storm"); return err })
		if err != nil {
			return err
		}
		err = l.timed(func() error {
			_, err := at.Record(ctx, api.Change{ID: fmt.Sprint(name, "-", i), Plan: "storm", Action: "count"})
			return err
		})
		if err != nil {
			return err
		}
	}
	// So that there is always a current one, in which others record.
	if err := l.timed(func() error { _, err := at.StartChangeset(ctx, "storm"); return err }); err != nil {
		return err
	}
	errs := make([]error, len(sets))
	together(len(sets), func(i int) error {
		errs[i] = l.timed(func() error {
			_, err := at.Apply(ctx, sets[i].ID, sets[i].ID, api.ApplyChangeset{Database: "memory:" + name})
			return err
		})
		return nil
	})
	for _, err := range errs {
		switch {
		case api.IsCode(err, api.CodeEngine), api.IsCode(err, api.CodeInternal): // no such table
			l.defect("errors of engines", 1)
		case err != nil:
			return err
		}
	}
	return nil
}
