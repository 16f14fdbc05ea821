package metrics

import (
	"errors"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Registry returns the source of r.
func Registry[K comparable, V any](r *shardedregistry.Registry[K, V]) *Source {
	s := &Source{Type: "registry"}
	entries := s.family("registry.entries", "{entry}", "Entities in the registry.", Amount)
	changes := s.family("registry.changes", "{change}", "Changes in the feed of WatchFrom, with Config.History; the revision of the last.", Counter)
	s.Read = func(emit Emit) {
		emit(entries, float64(r.Len()))
		emit(changes, float64(r.Revision()))
	}
	return s
}

// Tracker returns the source of t.
func Tracker[E any](t *cowchangeset.Tracker[E]) *Source {
	s := &Source{Type: "tracker"}
	changesets := s.family("tracker.changesets", "{changeset}", "Changesets that were started; the ordinal of the latest.", Counter)
	pending := s.family("tracker.pending", "{changeset}", "Changesets that are sealed, and neither applied to the end nor aborted.", Amount)
	open := s.family("tracker.open", "1", "1 if the latest changeset accepts entries.", Amount)
	entries := s.family("tracker.entries", "{entry}", "Entries in the latest changeset.", Amount)
	durable := s.family("tracker.durable_seq", "1", "The store has every entry of the latest changeset with a Seq below this; 0 without a store.", Gauge)
	s.Read = func(emit Emit) {
		var ordinal, seq uint64
		var n, waiting int
		c, accepts := t.Current()
		if c != nil {
			ordinal, n, seq = c.Ordinal(), c.Len(), c.Durable()
		}
		for range t.Pending() {
			waiting++
		}
		emit(changesets, float64(ordinal))
		emit(pending, float64(waiting))
		emit(open, truth(accepts))
		emit(entries, float64(n))
		emit(durable, float64(seq))
	}
	return s
}

// Journal returns the source of j.
func Journal[E any](j *journal.Journal[E]) *Source {
	s := &Source{Type: "journal"}
	lines := s.family("journal.lines", "{line}", "Lines of the journal since it was made, also of removed segments.", Counter)
	entries := s.family("journal.entries", "{entry}", "Entries that Append has written since the journal was opened.", Counter)
	bytes := s.family("journal.written", "By", "Bytes of the lines that were written since the journal was opened.", Counter)
	writes := s.family("journal.writes", "{write}", "Writes; one has the lines of all calls that waited at the same time.", Counter)
	syncs := s.family("journal.syncs", "{sync}", "Fsyncs of segments.", Counter)
	failures := s.family("journal.failures", "{failure}", "Failed attempts to write, to sync, to begin a segment or to remove one.", Counter)
	broken := s.family("journal.broken", "1", "1 if the journal is broken and accepts no more calls.", Amount)
	segments := s.family("journal.segments", "{segment}", "Segments in the directory, without archived ones.", Amount)
	size := s.family("journal.size", "By", "Bytes of the segments in the directory, without archived ones.", Amount)
	quarantined := s.family("journal.quarantined", "{segment}", "Segments that Repair has taken out, and that are not back.", Amount)
	waiting := s.family("journal.waiting", "{call}", "Calls that wait for their turn to write.", Amount)
	recovered := s.family("journal.recovered", "By", "Bytes of a write that a crash had cut off, which Open has removed.", Amount)
	s.Read = func(emit Emit) {
		emit(lines, float64(j.Hash().Line))
		emit(recovered, float64(j.Recovered()))
		now := j.Stats()
		emit(entries, float64(now.Entries))
		emit(bytes, float64(now.Bytes))
		emit(writes, float64(now.Writes))
		emit(syncs, float64(now.Syncs))
		emit(failures, float64(now.Failures))
		emit(broken, truth(errors.Is(now.LastError, journal.ErrBroken)))
		emit(segments, float64(now.Segments))
		emit(size, float64(now.Size))
		emit(quarantined, float64(now.Quarantined))
		emit(waiting, float64(now.Waiting))
	}
	return s
}
