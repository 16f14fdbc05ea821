package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/values"
)

// Store keeps changesets in the tables of a database: a cowchangeset.Store that
// implements all its optional interfaces. New makes stores; a Store must not be copied.
// All methods may be called concurrently.
//
// A call that repeats what the tables have already changes nothing and succeeds. A call
// that contradicts them, or comes out of order, fails with ErrConflict and changes
// nothing. Any other error leaves open whether the call took effect, if the database
// failed during the commit.
type Store[E any] struct {
	tables
	values values.Values[E]
}

var (
	_ cowchangeset.Loader[int]    = (*Store[int])(nil)
	_ cowchangeset.Applier        = (*Store[int])(nil)
	_ cowchangeset.Validator[int] = (*Store[int])(nil)
	_ cowchangeset.Claimer        = (*Store[int])(nil)
	_ cowchangeset.Pruner         = (*Store[int])(nil)
)

// tables are the part of a Store that does not depend on the type of entries.
type tables struct {
	db           *sql.DB
	dialect      Dialect
	prefix       string
	texts        statements
	holder       string        // Options.Holder
	claimTimeout time.Duration // Options.ClaimTimeout

	// marked has the IDs of changesets whose mark ApplyTx has committed, until the
	// tracker says the same in Applied.
	marked sync.Map

	claiming sync.Mutex   // held by Claim and Release
	epoch    atomic.Int64 // of the claim, negative until a call writes, or tries to; 0 if there is none
}

// New returns a Store on db, or an error that names the wrong setting. It does not use
// the database. The store does not close db. New panics if db is nil.
func New[E any](db *sql.DB, o Options[E]) (*Store[E], error) {
	if db == nil {
		panic("sqlstore: New called with a nil *sql.DB")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Store[E]{values: values.Of(o.Codec, o.MaxEntry, ErrValue)}
	s.db, s.dialect, s.prefix = db, o.Dialect, cmp.Or(o.Prefix, defaultPrefix)
	s.texts = newStatements(s.dialect, s.prefix)
	s.holder, s.claimTimeout = o.Holder, cmp.Or(o.ClaimTimeout, defaultClaimTimeout)
	return s, nil
}

// Start writes that the changeset exists. Its ordinal is the next one, or that of the
// latest changeset if only its Start was written: then the new changeset replaces that.
// The ID must be UTF-8 without NUL, not empty, and at most 1,024 bytes. Start panics if
// ctx is nil.
//
// Start is blocking: it waits for the database. It takes effect when its transaction
// commits.
func (s *Store[E]) Start(ctx context.Context, h cowchangeset.Header) error {
	needContext(ctx, "Start")
	switch {
	case h.ID == "" || badText(h.ID, maxID):
		return conflict(h.ID[:min(len(h.ID), 64)], "an ID must be UTF-8 without NUL, not empty, and at most %d bytes", maxID)
	case h.Ordinal == 0 || h.Ordinal > maxOrdinal:
		return conflict(h.ID, "no changeset can have the ordinal %d", h.Ordinal)
	}
	return s.transact(ctx, "Start", func(tx *sql.Tx) error {
		c, err := s.find(ctx, tx, h.ID)
		if err != nil {
			return err
		}
		if c != nil {
			if c.ordinal == int64(h.Ordinal) && c.previous == h.Previous {
				return nil
			}
			return conflict(h.ID, "it was started with ordinal %d after %q", c.ordinal, c.previous)
		}
		return s.start(ctx, tx, h)
	})
}

// maxOrdinal is far beyond what a tracker can reach.
const maxOrdinal = 1 << 62

// start inserts a changeset that is not there. It does not lock the latest one, which an
// ApplyTx may have locked for long, unless it replaces that: another Start that is under
// way has inserted the same ordinal or ID, and only one of them can.
func (s *tables) start(ctx context.Context, tx *sql.Tx, h cowchangeset.Header) error {
	ordinal, previous, err := s.latest(ctx, tx)
	if err != nil {
		return err
	}
	if int64(h.Ordinal) == ordinal {
		latest, err := s.find(ctx, tx, previous)
		if err != nil {
			return err
		}
		if latest != nil && latest.entries == 0 && !latest.sealed && latest.previous == h.Previous {
			if _, err := tx.ExecContext(ctx, s.texts.replace, ordinal); err != nil {
				return err
			}
			ordinal, previous = ordinal-1, latest.previous
		}
	}
	switch {
	case int64(h.Ordinal) != ordinal+1:
		return conflict(h.ID, "its ordinal is %d, and the latest changeset's is %d", h.Ordinal, ordinal)
	case h.Previous != previous:
		return conflict(h.ID, "the changeset before it is %q, and not %q", previous, h.Previous)
	}
	_, err = tx.ExecContext(ctx, s.texts.start, int64(h.Ordinal), h.ID, h.Previous)
	return err
}

// latest returns the latest changeset, or 0 if there is none.
func (s *tables) latest(ctx context.Context, tx *sql.Tx) (ordinal int64, id string, err error) {
	err = tx.QueryRowContext(ctx, s.texts.latest).Scan(&ordinal, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return ordinal, id, err
}

// Append writes entries of a changeset, in one transaction. It skips entries up to the
// last Seq that the changeset has, as repeated ones. If a value cannot be encoded,
// Append writes nothing, and the error names its Seq. Append panics if ctx is nil.
//
// Append is blocking: it waits for the database. It takes effect when its transaction
// commits.
func (s *Store[E]) Append(ctx context.Context, id string, entries []cowchangeset.Entry[E]) error {
	needContext(ctx, "Append")
	if len(entries) == 0 {
		return nil
	}
	rows := make([]row, len(entries)) // encoded before the transaction begins: a codec may be slow
	for i, e := range entries {
		if e.Seq > maxSeq || i > 0 && e.Seq <= entries[i-1].Seq {
			return conflict(id, "entry %d is out of order", e.Seq)
		}
		value, err := s.values.Encode(e.Value)
		if err != nil {
			return fmt.Errorf("%w (entry %d of changeset %q)", err, e.Seq, id)
		}
		rows[i] = row{int64(e.Seq), value}
	}
	return s.transact(ctx, "Append", func(tx *sql.Tx) error { return s.append(ctx, tx, id, rows) })
}

// maxSeq is the largest Seq that a changeset can have.
const maxSeq = 1<<62 - 1

// row is an entry as the tables have it.
type row struct {
	seq   int64
	value []byte
}

func (s *tables) append(ctx context.Context, tx *sql.Tx, id string, rows []row) error {
	c, err := s.find(ctx, tx, id)
	if err != nil {
		return err
	}
	if c == nil {
		return conflict(id, "it was not started, or was pruned")
	}
	for c.entries > 0 && len(rows) > 0 && rows[0].seq <= c.last {
		rows = rows[1:] // repeated
	}
	if len(rows) == 0 {
		return nil
	}
	if c.sealed {
		return conflict(id, "it is sealed")
	}
	last := rows[len(rows)-1].seq
	if _, err := tx.ExecContext(ctx, s.texts.extend, len(rows), last, c.ordinal); err != nil {
		return err
	}
	for len(rows) > 0 {
		n := min(len(rows), maxRows)
		args := make([]any, 0, 3*n)
		for _, r := range rows[:n] {
			args = append(args, c.ordinal, r.seq, r.value)
		}
		if _, err := tx.ExecContext(ctx, s.texts.insert(s.dialect, n), args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// Seal writes that the changeset is complete. It fails with ErrConflict if the manifest
// does not match the entries that the tables have. It panics if ctx is nil.
//
// Seal is blocking: it waits for the database. It takes effect when its transaction
// commits.
func (s *Store[E]) Seal(ctx context.Context, id string, m cowchangeset.Manifest) error {
	return s.tell(ctx, "Seal", id, func(tx *sql.Tx, c *changeset) error {
		if int64(m.Len) != c.entries || m.Last != uint64(c.last) {
			return conflict(id, "the manifest says %d entries up to seq %d, and there are %d up to %d", m.Len, m.Last, c.entries, c.last)
		}
		if c.sealed {
			return nil
		}
		_, err := tx.ExecContext(ctx, s.texts.seal, c.ordinal)
		return err
	})
}

// Abort writes that the changeset, which is sealed, will not be applied, and why. NUL
// and bytes of the reason that are not UTF-8 become U+FFFD. It panics if ctx is nil.
//
// Abort is blocking: it waits for the database. It takes effect when its transaction
// commits.
func (s *Store[E]) Abort(ctx context.Context, id, reason string) error {
	reason = textual(reason)
	return s.tell(ctx, "Abort", id, func(tx *sql.Tx, c *changeset) error {
		switch {
		case !c.sealed:
			return conflict(id, "it is not sealed")
		case c.aborted && c.reason != reason:
			return conflict(id, "it was aborted for another reason: %q", c.reason)
		case c.aborted:
			return nil
		}
		_, err := tx.ExecContext(ctx, s.texts.abort, reason, c.ordinal)
		return err
	})
}

// Applied writes how far the changeset, which is sealed, is applied. A number that is
// not above the last one changes nothing; nor does the one with which the tracker repeats
// what ApplyTx has committed. It panics if ctx is nil.
//
// Applied is blocking: it waits for the database. It takes effect when its transaction
// commits.
func (s *Store[E]) Applied(ctx context.Context, id string, next uint64) error {
	needContext(ctx, "Applied")
	if _, marked := s.marked.Load(id); marked {
		if next == cowchangeset.AllApplied { // a lower one is late
			s.marked.Delete(id)
		}
		return nil // also if another process has the tables by now: it finds the mark
	}
	return s.tell(ctx, "Applied", id, func(tx *sql.Tx, c *changeset) error {
		if !c.sealed {
			return conflict(id, "it is not sealed")
		}
		column := int64(min(next, wholeColumn))
		if column <= c.applied {
			return nil
		}
		_, err := tx.ExecContext(ctx, s.texts.applied, column, c.ordinal)
		return err
	})
}

// tell is a transaction about a changeset. One that was pruned needs no more news: a
// repeated call may be late.
func (s *tables) tell(ctx context.Context, method, id string, fn func(*sql.Tx, *changeset) error) error {
	needContext(ctx, method)
	return s.transact(ctx, method, func(tx *sql.Tx) error {
		c, err := s.find(ctx, tx, id)
		if err != nil {
			return err
		}
		if c == nil {
			pruned, err := s.pruned(ctx, tx)
			if err != nil || pruned && id != "" {
				return err
			}
			return conflict(id, "it was not started, or was pruned")
		}
		return fn(tx, c)
	})
}

// Validate returns an error if the store would refuse to keep e: if the codec cannot
// encode e, or not decode what it has encoded, or if that is longer than
// Options.MaxEntry. The error matches ErrValue and that of the codec.
//
// Validate is wait-free, but for the code of the codec. It takes effect at once: it only
// looks at e.
func (s *Store[E]) Validate(e E) error { return s.values.Validate(e) }

// changeset is a row of the table.
type changeset struct {
	ordinal         int64
	previous        string
	entries         int64
	last            int64 // the Seq of the last entry; 0 if there is none
	sealed, aborted bool
	reason          string
	applied         int64
}

// find returns the changeset with an ID, locked until tx ends, or nil.
func (s *tables) find(ctx context.Context, tx *sql.Tx, id string) (*changeset, error) {
	if badText(id, maxID) {
		return nil, nil
	}
	var c changeset
	err := tx.QueryRowContext(ctx, s.texts.find, id).Scan(&c.ordinal, &c.previous, &c.entries, &c.last, &c.sealed, &c.aborted, &c.reason, &c.applied)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &c, c.check(id)
}

// check returns an ErrCorrupt if no Store has written c.
func (c *changeset) check(id string) error {
	if c.ordinal <= 0 || c.entries < 0 || c.last < 0 || c.last > maxSeq || c.applied < 0 {
		return fmt.Errorf("%w: changeset %q has impossible numbers", ErrCorrupt, id)
	}
	return nil
}

// appliedTo returns the argument of Applied.
func (c *changeset) appliedTo() uint64 {
	if c.applied == wholeColumn {
		return math.MaxUint64
	}
	return uint64(c.applied)
}
