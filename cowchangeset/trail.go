package cowchangeset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Trail is everything that a tracker had recorded at one moment. It never changes, may
// be copied, and may be used from many goroutines. The zero Trail is empty.
type Trail[E any] struct {
	first *Changeset[E]
	last  *Changeset[E]
	end   *cut[E] // of the last changeset
}

// Trail returns everything recorded so far, as one consistent cut through all changesets.
// It copies nothing.
//
// Trail is lock-free. It takes effect when the latest changeset's reserved slots are
// counted or, if it was sealed before that, when it was sealed.
func (t *Tracker[E]) Trail() Trail[E] {
	// Nothing is in a changeset before current has been swung to it. So if c
	// is sealed by the time it is cut, there was a moment, at its seal or at
	// this load, when it was complete and its successor still empty.
	for {
		first := t.first.Load()
		c := t.current.Load()
		if c == nil {
			return Trail[E]{} // LP(Trail): nothing yet
		}
		m := c.log.cut() // LP(Trail): in it, or the moment above
		if t.first.Load() == first {
			return Trail[E]{first, c, m}
		}
		// A Prune took effect, or the first Start.
	}
}

// Len returns the number of entries, in time in proportion to the number of changesets and
// of the entries that no cut has seen.
func (t Trail[E]) Len() int {
	n := 0
	for c := range t.changesets {
		n += t.cut(c).live
	}
	return n
}

// All yields the entries in order, each with its receipt. It reads what Resume has left in
// the store, and panics, as Changeset.Entries does.
func (t Trail[E]) All() iter.Seq2[Receipt, E] {
	return func(yield func(Receipt, E) bool) {
		for c := range t.changesets {
			if !c.loop(context.Background(), t.cut(c), func(seq uint64, e E) bool { return yield(c.receipt(seq), e) }) {
				return
			}
		}
	}
}

// changesets yields those of the trail.
func (t Trail[E]) changesets(yield func(*Changeset[E]) bool) {
	for c := t.first; c != nil && yield(c) && c != t.last; c = c.next.Load() {
	}
}

// cut returns the cut of one of the trail's changesets. All but the last were
// sealed when the trail was taken, so that their final cuts are as old.
func (t Trail[E]) cut(c *Changeset[E]) *cut[E] {
	if c == t.last {
		return t.end
	}
	return c.log.cut()
}

// IDs returns the changesets' IDs in order.
//
// IDs is lock-free. It takes effect when the latest changeset is seen to have no
// successor.
func (t *Tracker[E]) IDs() []string {
	all := t.span() // LP(IDs)
	if all.last == nil {
		return nil
	}
	ids := make([]string, 0, all.last.ordinal-all.first.ordinal+1)
	for c := range all.changesets {
		ids = append(ids, c.id)
	}
	return ids
}

// All yields the changesets that exist when a loop begins, in order, each with its
// ordinal.
//
// All is lock-free. It takes effect as IDs does, when a loop over it begins.
func (t *Tracker[E]) All() iter.Seq2[uint64, *Changeset[E]] {
	return func(yield func(uint64, *Changeset[E]) bool) {
		for c := range t.span().changesets { // LP(All)
			if !yield(c.ordinal, c) {
				return
			}
		}
	}
}

// ByID returns the first changeset with that ID, and whether Prune has left one. It looks
// at one changeset after the other: for many look-ups keep a map.
//
// ByID is lock-free. It takes effect as IDs does.
func (t *Tracker[E]) ByID(id string) (*Changeset[E], bool) {
	return t.find(func(c *Changeset[E]) bool { return c.id == id }) // LP(ByID)
}

// ByOrdinal returns the changeset with that ordinal, and whether Prune has left it. It
// takes a step for each one before it.
//
// ByOrdinal is lock-free. It takes effect as IDs does.
func (t *Tracker[E]) ByOrdinal(n uint64) (*Changeset[E], bool) {
	return t.find(func(c *Changeset[E]) bool { return c.ordinal == n }) // LP(ByOrdinal)
}

// Pending yields the changesets that are sealed and neither applied nor aborted, in order:
// those that a service goes on with after Resume.
//
// Pending is lock-free. It takes effect as IDs does, when a loop over it begins, and for
// each changeset when that is seen not to be applied or aborted.
func (t *Tracker[E]) Pending() iter.Seq[*Changeset[E]] {
	return func(yield func(*Changeset[E]) bool) {
		for c := range t.span().changesets { // LP(Pending): which there are
			if !c.log.open() && !c.applyState.Load().finished() && !yield(c) { // LP(Pending): each
				return
			}
		}
	}
}

// find returns the first changeset for which wanted returns true.
func (t *Tracker[E]) find(wanted func(*Changeset[E]) bool) (*Changeset[E], bool) {
	for c := range t.span().changesets {
		if wanted(c) {
			return c, true
		}
	}
	return nil, false
}

// span returns the changesets that exist at one moment, as a Trail without a cut.
func (t *Tracker[E]) span() Trail[E] {
	for {
		first := t.first.Load()
		last := t.latest() // LP(span)
		if t.first.Load() == first {
			return Trail[E]{first: first, last: last}
		}
		// A Prune took effect, or the first Start.
	}
}

// exportBuffer is how many bytes WriteJSONLines collects before it writes them, not
// counting the line that exceeds it: enough to make a system call's cost small beside
// that of encoding.
const exportBuffer = 32 << 10

// Exported is an entry that was read back from a line of JSON.
type Exported[E any] struct {
	Receipt
	Value E
}

// jsonLine has the names and the order of the fields of a line.
type jsonLine[E any] struct {
	ChangesetID string `json:"changeset"`
	Ordinal     uint64 `json:"ordinal"`
	Seq         uint64 `json:"seq"`
	Value       E      `json:"value"`
}

// WriteJSONLines writes the entries in order, one JSON object on each line:
//
//	{"changeset":"plan-1","ordinal":1,"seq":0,"value":{"table":"users"}}
//
// encoding/json encodes values, and replaces bytes that are not UTF-8 in strings. Lines
// are written from a buffer of 32 KiB. If a value cannot be encoded, or the store fails,
// the lines before it are written, and the error wraps the cause. If w fails, a part of a
// line may have been written. WriteJSONLines panics if w is nil.
func (t Trail[E]) WriteJSONLines(w io.Writer) error {
	if w == nil {
		panic("cowchangeset: Trail.WriteJSONLines called with a nil writer")
	}
	var lines bytes.Buffer
	flush := func() error {
		if _, err := lines.WriteTo(w); err != nil {
			return fmt.Errorf("cowchangeset: writing the trail: %w", err)
		}
		return nil
	}
	encoder := json.NewEncoder(&lines) // which writes whole lines or nothing
	for c := range t.changesets {
		var failed error
		_, err := c.walk(context.Background(), t.cut(c), func(seq uint64, e E) bool {
			if err := encoder.Encode(jsonLine[E]{c.id, c.ordinal, seq, e}); err != nil {
				failed = fmt.Errorf("cowchangeset: entry %d of changeset %q (number %d): %w", seq, c.id, c.ordinal, err)
				failed = errors.Join(failed, flush())
			} else if lines.Len() >= exportBuffer {
				failed = flush()
			}
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		if err != nil {
			return errors.Join(err, flush())
		}
	}
	return flush()
}

// ReadJSONLines yields the entries that WriteJSONLines wrote to r, in one loop. If it
// fails, it yields an error that names the line, and ends; a line that ends early is an
// io.ErrUnexpectedEOF. Numbers in an any are json.Number. ReadJSONLines panics if r is
// nil.
func ReadJSONLines[E any](r io.Reader) iter.Seq2[Exported[E], error] {
	if r == nil {
		panic("cowchangeset: ReadJSONLines called with a nil reader")
	}
	return func(yield func(Exported[E], error) bool) {
		decoder := json.NewDecoder(r)
		decoder.UseNumber() // a float64 has other numbers above 2^53
		for n := 1; ; n++ {
			var line jsonLine[E]
			err := decoder.Decode(&line)
			if err == io.EOF {
				return
			}
			if err == nil && line.Ordinal == 0 {
				err = errors.New("it has no ordinal")
			}
			if err != nil {
				yield(Exported[E]{}, fmt.Errorf("cowchangeset: line %d: %w", n, err))
				return
			}
			if !yield(Exported[E]{Receipt{line.ChangesetID, line.Ordinal, line.Seq}, line.Value}, nil) {
				return
			}
		}
	}
}
