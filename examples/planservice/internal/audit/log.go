// Package audit keeps what has happened, in the order in which it was written. It uses a
// tracker with each of planservice's stores, so that it can tell what the others lose.
package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
)

// Log is a sequence of events. It may be used concurrently.
type Log struct {
	tracker *cowchangeset.Tracker[api.AuditLine]
	journal *journal.Journal[api.AuditLine] // nil: in memory
}

// Open opens the log at path and reads what it has. An empty path means in memory.
func Open(ctx context.Context, path string, o journal.Options) (l *Log, err error) {
	l = &Log{tracker: new(cowchangeset.Tracker[api.AuditLine])}
	if path != "" {
		if l.journal, err = journal.Open[api.AuditLine](path, o); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		l.tracker, err = cowchangeset.Resume(ctx, cowchangeset.Config[api.AuditLine]{Store: l.journal})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("audit: %w", err), l.journal.Close())
		}
	}
	if _, open := l.tracker.Current(); !open {
		if _, err := l.tracker.Start(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("audit: %w", err), l.Close(ctx))
		}
	}
	return l, nil
}

// Write adds an event. When it returns nil, the journal has it.
func (l *Log) Write(line api.AuditLine) error {
	line.At = time.Now().UTC()
	if _, err := l.tracker.Record(line); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// All yields the events that there are when it is called, in order.
func (l *Log) All() iter.Seq[api.AuditLine] {
	trail := l.tracker.Trail()
	return func(yield func(api.AuditLine) bool) {
		n := uint64(0)
		for _, line := range trail.All() {
			n++
			line.N = n
			if !yield(line) {
				return
			}
		}
	}
}

// Close ends the log.
func (l *Log) Close(ctx context.Context) error {
	err := l.tracker.Flush(ctx)
	if l.journal != nil {
		err = errors.Join(err, l.journal.Close())
	}
	return err
}
