package metrics

import (
	"errors"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/shardedregistry"
)

var (
	registryEntries   = Family{"registry.entries", "{entry}", "Entities in the registry.", Amount, nil}
	registryChanges   = Family{"registry.changes", "{change}", "Changes in the feed of WatchFrom, with Config.History; the revision of the last.", Counter, nil}
	trackerChangesets = Family{"tracker.changesets", "{changeset}", "Changesets that were started; the ordinal of the latest.", Counter, nil}
	trackerPending    = Family{"tracker.pending", "{changeset}", "Changesets that are sealed, and neither applied to the end nor aborted.", Amount, nil}
	trackerOpen       = Family{"tracker.open", "1", "1 if the latest changeset accepts entries.", Amount, nil}
	trackerEntries    = Family{"tracker.entries", "{entry}", "Entries in the latest changeset.", Amount, nil}
	trackerDurable    = Family{"tracker.durable_seq", "1", "The store has every entry of the latest changeset with a Seq below this; 0 without a store.", Gauge, nil}
	journalLines      = Family{"journal.lines", "{line}", "Lines of the journal since it was made, also of removed segments.", Counter, nil}
	journalEntries    = Family{"journal.entries", "{entry}", "Entries that Append has written since the journal was opened.", Counter, nil}
	journalBytes      = Family{"journal.written", "By", "Bytes of the lines that were written since the journal was opened.", Counter, nil}
	journalWrites     = Family{"journal.writes", "{write}", "Writes; one has the lines of all calls that waited at the same time.", Counter, nil}
	journalSyncs      = Family{"journal.syncs", "{sync}", "Fsyncs of segments.", Counter, nil}
	journalFailures   = Family{"journal.failures", "{failure}", "Failed attempts to write, to sync, to begin a segment or to remove one.", Counter, nil}
	journalBroken     = Family{"journal.broken", "1", "1 if the journal is broken and accepts no more calls.", Amount, nil}
	journalSegments   = Family{"journal.segments", "{segment}", "Segments in the directory, without archived ones.", Amount, nil}
	journalSize       = Family{"journal.size", "By", "Bytes of the segments in the directory, without archived ones.", Amount, nil}
	journalWaiting    = Family{"journal.waiting", "{call}", "Calls that wait for their turn to write.", Amount, nil}
	journalRecovered  = Family{"journal.recovered", "By", "Bytes of a write that a crash had cut off, which Open has removed.", Amount, nil}
)

// Registry returns the source of r.
func Registry[K comparable, V any](r *shardedregistry.Registry[K, V]) *Source {
	return &Source{"registry", []*Family{&registryEntries, &registryChanges}, func(emit Emit) {
		emit(&registryEntries, float64(r.Len()))
		emit(&registryChanges, float64(r.Revision()))
	}}
}

// Tracker returns the source of t.
func Tracker[E any](t *cowchangeset.Tracker[E]) *Source {
	return &Source{"tracker", []*Family{&trackerChangesets, &trackerPending, &trackerOpen, &trackerEntries, &trackerDurable}, func(emit Emit) {
		var ordinal, durable uint64
		var entries, pending int
		c, open := t.Current()
		if c != nil {
			ordinal, entries, durable = c.Ordinal(), c.Len(), c.Durable()
		}
		for range t.Pending() {
			pending++
		}
		emit(&trackerChangesets, float64(ordinal))
		emit(&trackerPending, float64(pending))
		emit(&trackerOpen, truth(open))
		emit(&trackerEntries, float64(entries))
		emit(&trackerDurable, float64(durable))
	}}
}

// Journal returns the source of j.
func Journal[E any](j *journal.Journal[E]) *Source {
	return &Source{"journal", []*Family{&journalLines, &journalRecovered, &journalEntries, &journalBytes, &journalWrites, &journalSyncs,
		&journalFailures, &journalBroken, &journalSegments, &journalSize, &journalWaiting}, func(emit Emit) {
		emit(&journalLines, float64(j.Hash().Line))
		emit(&journalRecovered, float64(j.Recovered()))
		s := j.Stats()
		emit(&journalEntries, float64(s.Entries))
		emit(&journalBytes, float64(s.Bytes))
		emit(&journalWrites, float64(s.Writes))
		emit(&journalSyncs, float64(s.Syncs))
		emit(&journalFailures, float64(s.Failures))
		emit(&journalBroken, truth(errors.Is(s.LastError, journal.ErrBroken)))
		emit(&journalSegments, float64(s.Segments))
		emit(&journalSize, float64(s.Size))
		emit(&journalWaiting, float64(s.Waiting))
	}}
}
