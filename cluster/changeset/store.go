package changeset

import (
	"context"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/values"
)

// Store keeps the changesets of one tracker in a stream: a cowchangeset.Store that
// implements all its optional interfaces. Without a claim it reads, and never writes. Open makes stores; a Store must not be copied.
// It has no goroutines and needs no closing. All methods may be called concurrently.
//
// A call that repeats what the trail has already changes nothing and succeeds. A call
// that contradicts it, or comes out of order, fails with ErrConflict and changes nothing.
// ErrUnknown leaves open whether the call took effect. After ErrFenced the call itself has
// not, and never will, unless what it wrote was pruned meanwhile.
type Store[E any] struct {
	trail
	values values.Values[E]
}

var (
	_ cowchangeset.Loader[int]    = (*Store[int])(nil)
	_ cowchangeset.Applier        = (*Store[int])(nil)
	_ cowchangeset.Validator[int] = (*Store[int])(nil)
	_ cowchangeset.Claimer        = (*Store[int])(nil)
	_ cowchangeset.Pruner         = (*Store[int])(nil)
)

// Open returns a Store on a stream, which exists: see StreamConfig. It returns an error
// that names the wrong setting, or an ErrStream if the stream's settings do not keep a
// trail. The caller owns the connection. Open panics if ctx or js is nil.
//
// Open is blocking: it waits for the servers.
func Open[E any](ctx context.Context, js jetstream.JetStream, o Options[E]) (*Store[E], error) {
	needContext(ctx, "Open")
	if js == nil {
		panic("changeset: Open called with a nil JetStream")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	at, err := open(ctx, js, o)
	if err != nil {
		return nil, failed("Open", err)
	}
	s := &Store[E]{values: values.Of(o.Codec, o.MaxEntry, ErrValue)}
	s.stream, s.holder = at, o.Holder
	s.turn = make(chan struct{}, 1)
	return s, nil
}

// Start writes that the changeset exists. Its ordinal is the next one, or that of the
// latest changeset if only its Start was written: then the new changeset replaces that.
// The ID must be UTF-8, not empty, and at most 1,024 bytes. Start panics if ctx is nil.
//
// Start is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Start(ctx context.Context, h cowchangeset.Header) error {
	return s.write(ctx, "Start", func(at *state) (*record, []byte, error) {
		if h.ID == "" || badID(h.ID) || badID(h.Previous) {
			return nil, nil, conflict(h.ID[:min(len(h.ID), 64)], "an ID must be UTF-8, not empty, and at most %d bytes", maxID)
		}
		if c := at.ids[h.ID]; c != nil {
			if c.Header == h {
				return nil, nil, nil
			}
			return nil, nil, conflict(h.ID, "it was started with ordinal %d after %q", c.Ordinal, c.Previous)
		}
		before, previous := uint64(0), ""
		if c := at.latest(); c != nil {
			before, previous = c.Ordinal, c.ID
			if h.Ordinal == c.Ordinal && !c.sealed && c.entries == 0 {
				before, previous = c.Ordinal-1, c.Previous
			}
		}
		switch {
		case h.Ordinal != before+1:
			return nil, nil, conflict(h.ID, "its ordinal is %d, and the latest changeset's is %d", h.Ordinal, before)
		case h.Previous != previous:
			return nil, nil, conflict(h.ID, "the changeset before it is %q, and not %q", previous, h.Previous)
		}
		return &record{Kind: Started, Ordinal: h.Ordinal, ID: h.ID, Previous: h.Previous}, nil, nil
	})
}

// maxSeq is the largest Seq that a changeset can have.
const maxSeq = 1<<62 - 1

// Append writes entries of a changeset, as one record. It skips entries up to the last
// Seq that the changeset has, as repeated ones. If a value cannot be encoded, Append
// writes nothing, and the error names its Seq. Append panics if ctx is nil.
//
// Append is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Append(ctx context.Context, id string, entries []cowchangeset.Entry[E]) error {
	needContext(ctx, "Store.Append")
	encoded := make([]entry, len(entries))
	size := 0
	for i, e := range entries {
		if e.Seq > maxSeq || i > 0 && e.Seq <= entries[i-1].Seq {
			return conflict(id, "entry %d is out of order", e.Seq)
		}
		value, err := s.values.Encode(e.Value)
		if err != nil {
			return fmt.Errorf("%w (entry %d of changeset %q)", err, e.Seq, id)
		}
		encoded[i] = entry{e.Seq, value}
		size += len(value) + 32
	}
	if len(encoded) == 0 {
		return nil
	}
	return s.write(ctx, "Append", func(at *state) (*record, []byte, error) {
		c := at.ids[id]
		if c == nil {
			return nil, nil, conflict(id, "it was not started, or was pruned")
		}
		fresh := encoded
		for c.entries > 0 && len(fresh) > 0 && fresh[0].seq <= c.last {
			fresh = fresh[1:] // repeated
		}
		if len(fresh) == 0 {
			return nil, nil, nil
		}
		if c.sealed {
			return nil, nil, conflict(id, "it is sealed")
		}
		body := make([]byte, 0, size)
		for _, e := range fresh {
			body = appendEntry(body, e)
		}
		return &record{Kind: Appended, Ordinal: c.Ordinal, ID: id, Len: len(fresh), First: fresh[0].seq, Last: fresh[len(fresh)-1].seq}, body, nil
	})
}

// Seal writes that the changeset is complete. It fails with ErrConflict if the manifest
// does not match the entries that the trail has. It panics if ctx is nil.
//
// Seal is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Seal(ctx context.Context, id string, m cowchangeset.Manifest) error {
	return s.tell(ctx, "Seal", id, func(c *changeset) (*record, []byte, error) {
		if m.Len != c.entries || m.Last != c.last {
			return nil, nil, conflict(id, "the manifest says %d entries up to seq %d, and there are %d up to %d", m.Len, m.Last, c.entries, c.last)
		}
		if c.sealed {
			return nil, nil, nil
		}
		return &record{Kind: Sealed, Len: m.Len, Last: m.Last}, nil, nil
	})
}

// Abort writes that the changeset, which is sealed, will not be applied, and why. Bytes
// of the reason that are not UTF-8 become U+FFFD. It panics if ctx is nil.
//
// Abort is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Abort(ctx context.Context, id, reason string) error {
	reason = textual(reason)
	return s.tell(ctx, "Abort", id, func(c *changeset) (*record, []byte, error) {
		switch {
		case !c.sealed:
			return nil, nil, conflict(id, "it is not sealed")
		case c.aborted && c.reason != reason:
			return nil, nil, conflict(id, "it was aborted for another reason: %q", c.reason)
		case c.aborted:
			return nil, nil, nil
		}
		return &record{Kind: Aborted}, []byte(reason), nil
	})
}

// Applied writes how far the changeset, which is sealed, is applied. A number that is
// not above the last one changes nothing. It panics if ctx is nil.
//
// Applied is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Applied(ctx context.Context, id string, next uint64) error {
	return s.tell(ctx, "Applied", id, func(c *changeset) (*record, []byte, error) {
		switch {
		case !c.sealed:
			return nil, nil, conflict(id, "it is not sealed")
		case next <= c.applied:
			return nil, nil, nil
		}
		return &record{Kind: Applied, Next: next}, nil, nil
	})
}

// tell is a write about a changeset. One that was pruned needs no more news: a repeated
// call may be late.
func (t *trail) tell(ctx context.Context, method, id string, plan func(*changeset) (*record, []byte, error)) error {
	return t.write(ctx, method, func(at *state) (*record, []byte, error) {
		c := at.ids[id]
		if c == nil {
			if at.first > 1 && id != "" {
				return nil, nil, nil
			}
			return nil, nil, conflict(id, "it was not started")
		}
		r, body, err := plan(c)
		if r != nil {
			r.Ordinal, r.ID = c.Ordinal, c.ID
		}
		return r, body, err
	})
}

// Validate returns an error if the store would refuse to keep e: if the codec cannot
// encode e, or not decode what it has encoded, or if that is longer than
// Options.MaxEntry. The error matches ErrValue and that of the codec.
//
// Validate is wait-free, but for the code of the codec. It takes effect at once: it only
// looks at e.
func (s *Store[E]) Validate(e E) error { return s.values.Validate(e) }

// Load yields the changesets in the order of their ordinals, those that were not pruned when the loop begins. If it fails, it yields the
// error and ends: a *DecodeError for a value that the codec cannot decode, ErrForeign or
// ErrCorrupt for messages that do not fit together, or why the stream cannot be read. With
// a claim it has everything that was acknowledged to any Store before the last message of
// this one, which is its claim at least; or it fails with ErrFenced if a later one has
// pruned some of that. It has the encoded entries of all changesets in memory, until it
// yields them. It panics if ctx is nil.
//
// Load is blocking: it waits for the servers. It takes effect when a loop begins; without a claim, when it asks for the last
// sequence. A leader that is cut off from the others may answer that, with old contents, for up to 10 seconds.
func (s *Store[E]) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Store.Load")
	return func(yield func(cowchangeset.Saved[E], error) bool) {
		at, err := s.load(ctx)
		if err != nil {
			yield(cowchangeset.Saved[E]{}, failed("Load", err))
			return
		}
		yieldAll(s.values, at, yield)
	}
}

// Prune forgets changesets with an ordinal below before, from the oldest on, as far as
// they are sealed. The latest changeset stays. A tracker's Prune calls it when it has
// forgotten the same changesets. Prune writes down which ones, and then purges the messages before the start of the first
// one that it keeps. It panics if ctx is nil.
//
// Seal, Abort and Applied of a pruned changeset succeed and do nothing, so that a caller
// that missed their success can repeat them.
//
// Prune is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Prune(ctx context.Context, before uint64) error {
	err := s.write(ctx, "Prune", func(at *state) (*record, []byte, error) {
		latest := at.latest()
		if latest == nil {
			return nil, nil, nil
		}
		keep := at.sets[0].Ordinal
		for keep < before && keep < latest.Ordinal && at.at(keep).sealed {
			keep++
		}
		if keep <= at.first {
			return nil, nil, nil
		}
		return &record{Kind: Pruned, Next: keep}, nil, nil
	})
	if err != nil {
		return err
	}
	if err := s.purge(ctx); err != nil {
		return failed("Prune", err)
	}
	return nil
}

// purge removes the messages that nobody needs, according to a prune that is written in
// the stream, if that still has this Store's last message: the sequences of a stream that
// was restored from a backup are not those of the prune.
func (t *trail) purge(ctx context.Context) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	defer t.unlock()
	if t.state == nil || t.state.first <= 1 {
		return nil
	}
	start := t.state.sets[0].start
	return t.ask(ctx, func(ctx context.Context) error {
		there, err := t.last(ctx)
		if err != nil || there.at.CachedInfo().Config.DenyPurge || there.first > t.place.own {
			return err
		}
		if there.last < t.place.seq { // it was restored from a backup, or is that of a leader that is cut off
			return there.rewound(t.place.seq)
		}
		if err := t.mine(ctx, there); err != nil {
			return err
		}
		return there.at.Purge(ctx, jetstream.WithPurgeSequence(start))
	})
}
