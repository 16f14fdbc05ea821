package latchprom

import (
	"errors"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	registryEntries   = family{"latchfree_registry_entries", "Entities in the registry.", prometheus.GaugeValue, nil}
	trackerChangesets = family{"latchfree_tracker_changesets_total", "Changesets that were started; the ordinal of the latest.", prometheus.CounterValue, nil}
	trackerOpen       = family{"latchfree_tracker_open", "1 if the latest changeset accepts entries.", prometheus.GaugeValue, nil}
	trackerEntries    = family{"latchfree_tracker_entries", "Entries in the latest changeset.", prometheus.GaugeValue, nil}
	trackerDurable    = family{"latchfree_tracker_durable_seq", "The store has every entry of the latest changeset with a Seq below this; 0 without a store.", prometheus.GaugeValue, nil}
	journalLines      = family{"latchfree_journal_lines_total", "Lines of the journal since it was made, also of removed segments.", prometheus.CounterValue, nil}
	journalEntries    = family{"latchfree_journal_entries_total", "Entries that Append has written since the journal was opened.", prometheus.CounterValue, nil}
	journalBytes      = family{"latchfree_journal_written_bytes_total", "Bytes of the lines that were written since the journal was opened.", prometheus.CounterValue, nil}
	journalWrites     = family{"latchfree_journal_writes_total", "Writes; one has the lines of all calls that waited at the same time.", prometheus.CounterValue, nil}
	journalSyncs      = family{"latchfree_journal_syncs_total", "Fsyncs of segments.", prometheus.CounterValue, nil}
	journalFailures   = family{"latchfree_journal_failures_total", "Failed attempts to write, to sync, to begin a segment or to remove one.", prometheus.CounterValue, nil}
	journalBroken     = family{"latchfree_journal_broken", "1 if the journal is broken and accepts no more calls.", prometheus.GaugeValue, nil}
	journalSegments   = family{"latchfree_journal_segments", "Segments in the directory, without archived ones.", prometheus.GaugeValue, nil}
	journalSize       = family{"latchfree_journal_size_bytes", "Bytes of the segments in the directory, without archived ones.", prometheus.GaugeValue, nil}
	journalWaiting    = family{"latchfree_journal_waiting_calls", "Calls that wait for their turn to write.", prometheus.GaugeValue, nil}
	journalRecovered  = family{"latchfree_journal_recovered_bytes", "Bytes of a write that a crash had cut off, which Open has removed.", prometheus.GaugeValue, nil}
)

// Registry returns a collector for r. Its label is registry. It panics if r is nil.
func Registry[K comparable, V any](name string, r *shardedregistry.Registry[K, V]) prometheus.Collector {
	if r == nil {
		panic("latchprom: Registry: nil registry")
	}
	return newCollector("registry", name, func(emit emit) {
		emit(&registryEntries, float64(r.Len()))
	}, &registryEntries)
}

// Tracker returns a collector for t. Its label is tracker. To count entries, a scrape takes
// a cut of the latest changeset: a Record whose slot is reserved but not written may then
// take another slot. It panics if t is nil.
func Tracker[E any](name string, t *cowchangeset.Tracker[E]) prometheus.Collector {
	if t == nil {
		panic("latchprom: Tracker: nil tracker")
	}
	return newCollector("tracker", name, func(emit emit) {
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

// Journal returns a collector for j. Its label is journal. A scrape waits for calls that
// look at the journal's state, not for the disk. It panics if j is nil.
func Journal[E any](name string, j *journal.Journal[E]) prometheus.Collector {
	if j == nil {
		panic("latchprom: Journal: nil journal")
	}
	return newCollector("journal", name, func(emit emit) {
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
