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
	for round := 0; l.during.Err() == nil; round++ {
		var sets [2]api.Changeset
		for i := range sets {
			var err error
			if sets[i], err = l.StartChangeset(ctx, "storm"); err != nil {
				return err
			}
			if _, err := l.Record(ctx, api.Change{ID: fmt.Sprintf("engine-%d-%d", round, i), Plan: "storm", Action: "count"}); err != nil {
				return err
			}
		}
		if _, err := l.Seal(ctx, sets[1].ID); err != nil {
			return err
		}
		errs := make([]error, len(sets))
		together(len(sets), func(i int) error {
			errs[i] = l.load.timed(func() error {
				_, err := l.Apply(ctx, sets[i].ID, sets[i].ID, api.ApplyChangeset{Database: fmt.Sprint("memory:round-", round)})
				return err
			})
			return nil
		})
		for _, err := range errs {
			switch {
			case api.IsCode(err, api.CodeEngine), api.IsCode(err, api.CodeInternal): // no such table
				l.defects["errors of engines"]++
			case err != nil:
				return err
			}
		}
	}
	opened := map[string]int{}
	for line, err := range l.Audit(ctx) {
		switch {
		case err != nil:
			return err
		case line.Kind == api.KindEngine && strings.Contains(line.Database, "round-"):
			opened[line.Database]++
		}
	}
	for _, n := range opened {
		l.defects["second engines"] += n - 1
	}
	return nil
}
