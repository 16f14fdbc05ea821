package latchotel

import (
	"errors"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/shardedregistry"
	"go.opentelemetry.io/otel/metric"
)

var (
	registryEntries   = family{"latchfree.registry.entries", "{entry}", "Entities in the registry.", amount}
	trackerChangesets = family{"latchfree.tracker.changesets", "{changeset}", "Changesets that were started; the ordinal of the latest.", counter}
	trackerOpen       = family{"latchfree.tracker.open", "1", "1 if the latest changeset accepts entries.", amount}
	trackerEntries    = family{"latchfree.tracker.entries", "{entry}", "Entries in the latest changeset.", amount}
	trackerDurable    = family{"latchfree.tracker.durable_seq", "1", "The store has every entry of the latest changeset with a Seq below this; 0 without a store.", gauge}
	journalLines      = family{"latchfree.journal.lines", "{line}", "Lines of the journal since it was made, also of removed segments.", counter}
	journalEntries    = family{"latchfree.journal.entries", "{entry}", "Entries that Append has written since the journal was opened.", counter}
	journalBytes      = family{"latchfree.journal.written", "By", "Bytes of the lines that were written since the journal was opened.", counter}
	journalWrites     = family{"latchfree.journal.writes", "{write}", "Writes; one has the lines of all calls that waited at the same time.", counter}
	journalSyncs      = family{"latchfree.journal.syncs", "{sync}", "Fsyncs of segments.", counter}
	journalFailures   = family{"latchfree.journal.failures", "{failure}", "Failed attempts to write, to sync, to begin a segment or to remove one.", counter}
	journalBroken     = family{"latchfree.journal.broken", "1", "1 if the journal is broken and accepts no more calls.", amount}
	journalSegments   = family{"latchfree.journal.segments", "{segment}", "Segments in the directory, without archived ones.", amount}
	journalSize       = family{"latchfree.journal.size", "By", "Bytes of the segments in the directory, without archived ones.", amount}
	journalWaiting    = family{"latchfree.journal.waiting", "{call}", "Calls that wait for their turn to write.", amount}
	journalRecovered  = family{"latchfree.journal.recovered", "By", "Bytes of a write that a crash had cut off, which Open has removed.", amount}
)

// Registry registers the metrics of r. It panics if meter or r is nil.
func Registry[K comparable, V any](meter metric.Meter, name string, r *shardedregistry.Registry[K, V]) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Registry: nil meter")
	}
	if r == nil {
		panic("latchotel: Registry: nil registry")
	}
	return register(meter, "latchfree.registry.name", name, func(emit emit) {
		emit(&registryEntries, float64(r.Len()))
	}, &registryEntries)
}

// Tracker registers the metrics of t. To count entries, a collection takes a cut of the
// latest changeset: a Record whose slot is reserved but not written may then take another
// slot. It panics if meter or t is nil.
func Tracker[E any](meter metric.Meter, name string, t *cowchangeset.Tracker[E]) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Tracker: nil meter")
	}
	if t == nil {
		panic("latchotel: Tracker: nil tracker")
	}
	return register(meter, "latchfree.tracker.name", name, func(emit emit) {
		var ordinal, durable uint64
		var entries int
		c, open := t.Current()
		if c != nil {
			ordinal, entries, durable = c.Ordinal(), c.Len(), c.Durable()
		}
		emit(&trackerChangesets, float64(ordinal))
		emit(&trackerOpen, truth(open))
		emit(&trackerEntries, float64(entries))
		emit(&trackerDurable, float64(durable))
	}, &trackerChangesets, &trackerOpen, &trackerEntries, &trackerDurable)
}

// Journal registers the metrics of j. A collection waits for calls that look at the
// journal's state, not for the disk. It panics if meter or j is nil.
func Journal[E any](meter metric.Meter, name string, j *journal.Journal[E]) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Journal: nil meter")
	}
	if j == nil {
		panic("latchotel: Journal: nil journal")
	}
	return register(meter, "latchfree.journal.name", name, func(emit emit) {
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
	}, &journalLines, &journalRecovered, &journalEntries, &journalBytes, &journalWrites, &journalSyncs, &journalFailures,
		&journalBroken, &journalSegments, &journalSize, &journalWaiting)
}
