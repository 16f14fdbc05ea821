package sqlstore_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

type manifest = cowchangeset.Manifest

// A value that the codec cannot encode, or not decode, or that is too long, is the error
// of its own Record; nothing else notices.
func TestBadValues(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s, err := sqlstore.New(d.DB, sqlstore.Options[any]{Dialect: d.dialect, Prefix: d.prefix, MaxEntry: 10})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(background))
		tracker := cowchangeset.MustNew(cowchangeset.Config[any]{Store: s})
		c, err := tracker.Start(background)
		require.NoError(t, err)
		for _, bad := range []any{math.NaN(), func() {}, "more than ten"} {
			_, err := tracker.Record(bad)
			require.ErrorIs(t, err, cowchangeset.ErrRefused)
			require.ErrorIs(t, err, sqlstore.ErrValue)
			_, err = tracker.RecordBatch([]any{1, bad})
			require.ErrorIs(t, err, cowchangeset.ErrRefused)
			_, err = tracker.Record("good")
			require.NoError(t, err)
			err = s.Append(background, c.ID(), []cowchangeset.Entry[any]{{Seq: 90, Value: "x"}, {Seq: 91, Value: bad}})
			require.ErrorIs(t, err, sqlstore.ErrValue)
			require.ErrorContains(t, err, "(entry 91 of changeset ")
		}
		require.EqualValues(t, 3, d.number(t, "SELECT COUNT(*) FROM #entries"))
	})
}

// oneWay is a codec that cannot decode what it encodes, and encodes nothing as nil.
type oneWay struct{}

var errOneWay = errors.New("one way")

func (oneWay) Encode(e string) ([]byte, error) {
	if e == "" {
		return nil, nil
	}
	return []byte(e), nil
}

func (oneWay) Decode(b []byte) (string, error) {
	if strings.HasPrefix(string(b), "bad") {
		return "", errOneWay
	}
	return string(b), nil
}

// Another codec is used both ways. A value in the tables that it cannot decode is an
// error that names the entry.
func TestCodec(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		o := d.options()
		o.Codec = oneWay{}
		s, err := sqlstore.New(d.DB, o)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(background))
		require.NoError(t, s.Claim(background))
		require.ErrorIs(t, s.Validate("bad"), errOneWay)
		require.ErrorIs(t, s.Validate("bad"), sqlstore.ErrValue)
		require.NoError(t, s.Validate(""))
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		want := []entry{{Seq: 0, Value: ""}, {Seq: 1, Value: "\xff\x00'"}}
		require.NoError(t, s.Append(background, "a", want))
		for saved, err := range s.Load(background) {
			require.NoError(t, err)
			require.Equal(t, want, saved.Entries)
		}
		require.NoError(t, s.Append(background, "a", []entry{{Seq: 7, Value: "bad"}}))
		s, err = sqlstore.New(d.DB, o)
		require.NoError(t, err)
		for range 2 { // the claim is released
			_, err = cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
			var undecodable *sqlstore.DecodeError
			require.ErrorAs(t, err, &undecodable)
			require.ErrorIs(t, err, errOneWay)
			require.Equal(t, sqlstore.DecodeError{ChangesetID: "a", Seq: 7, Err: errOneWay}, *undecodable)
			require.ErrorContains(t, err, `sqlstore: Load: entry 7 of changeset "a": one way`)
		}
	})
}

// Numbers in an any come back as they were, also those that a float64 has not.
func TestNumbers(t *testing.T) {
	var codec sqlstore.JSON[any]
	for _, n := range []any{int64(1<<53 + 1), uint64(math.MaxUint64), int64(math.MinInt64), 0.1} {
		encoded, err := codec.Encode(map[string]any{"id": n})
		require.NoError(t, err)
		decoded, err := codec.Decode(encoded)
		require.NoError(t, err)
		again, err := codec.Encode(decoded)
		require.NoError(t, err)
		require.Equal(t, string(encoded), string(again))
	}
	for _, bad := range []string{"", "{", "1 2", "1,", "nul"} {
		_, err := codec.Decode([]byte(bad))
		require.Error(t, err, bad)
	}
}

// IDs that a database would not keep are refused, and those that it does are kept.
func TestIDs(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		for _, bad := range []string{"", "\xff", "a\x00b", strings.Repeat("x", 1025)} {
			err := s.Start(background, header{ID: bad, Ordinal: 1})
			require.ErrorIs(t, err, sqlstore.ErrConflict)
			require.ErrorContains(t, err, "an ID must be UTF-8 without NUL, not empty, and at most 1024 bytes")
			require.Less(t, len(err.Error()), 300)
			require.ErrorIs(t, s.Append(background, bad, []entry{{}}), sqlstore.ErrConflict)
			require.ErrorIs(t, s.Seal(background, bad, manifest{}), sqlstore.ErrConflict)
		}
		require.ErrorIs(t, s.Start(background, header{ID: "a", Ordinal: 0}), sqlstore.ErrConflict)
		require.ErrorIs(t, s.Start(background, header{ID: "a", Ordinal: math.MaxUint64}), sqlstore.ErrConflict)
		long := strings.Repeat("é", 512)
		require.NoError(t, s.Start(background, header{ID: long, Ordinal: 1}))
		for _, seq := range []uint64{1 << 62, math.MaxUint64} {
			require.ErrorIs(t, s.Append(background, long, []entry{{Seq: seq}}), sqlstore.ErrConflict)
		}
		require.ErrorIs(t, s.Append(background, long, []entry{{Seq: 2}, {Seq: 2}}), sqlstore.ErrConflict)
		require.NoError(t, s.Append(background, long, []entry{{Seq: 1<<62 - 1}}))
		require.NoError(t, s.Seal(background, long, manifest{Len: 1, Last: 1<<62 - 1}))
		require.NoError(t, s.Abort(background, long, "a\xff\x00b"))
		require.NoError(t, s.Abort(background, long, "a\xff\x00b"))
		require.ErrorIs(t, s.Abort(background, long, "other"), sqlstore.ErrConflict)
		for saved, err := range s.Load(background) {
			require.NoError(t, err)
			require.Equal(t, long, saved.ID)
			require.Equal(t, "a\ufffd\ufffdb", saved.Reason)
			require.Len(t, saved.Entries, 1)
		}
	})
}

// Rows that no store has written are an error that says so, of Load and of Resume.
func TestForeignRows(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		for name, c := range map[string]struct{ do, undo, text string }{
			"a missing entry":   {"DELETE FROM #entries WHERE seq = 1", "INSERT INTO #entries (ordinal, seq, value) VALUES (1, 1, '\"y\"')", "should have 3 entries up to seq 2, and has 2"},
			"another entry":     {"INSERT INTO #entries (ordinal, seq, value) VALUES (1, -1, '\"y\"')", "DELETE FROM #entries WHERE seq = -1", "has an entry -1"},
			"a negative number": {"UPDATE #changesets SET applied = -1", "UPDATE #changesets SET applied = 0", "impossible numbers"},
			"a wrong count":     {"UPDATE #changesets SET entries = 4 WHERE ordinal = 1", "UPDATE #changesets SET entries = 3 WHERE ordinal = 1", "should have 4 entries"},
			"a foreign value":   {"UPDATE #entries SET value = 'foreign' WHERE seq = 1", "UPDATE #entries SET value = '\"y\"' WHERE seq = 1", `sqlstore: Load: entry 1 of changeset "a": invalid character`},
			"a gap":             {"UPDATE #changesets SET ordinal = 3 WHERE ordinal = 2", "UPDATE #changesets SET ordinal = 2 WHERE ordinal = 3", "its ordinal is 3, after 1"},
		} {
			t.Run(name, func(t *testing.T) {
				s := d.store(t)
				if d.number(t, "SELECT COUNT(*) FROM #changesets") == 0 {
					require.NoError(t, s.Claim(background))
					require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
					require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}, {Seq: 1, Value: "y"}, {Seq: 2, Value: "z"}}))
					require.NoError(t, s.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}))
					s = d.store(t)
				}
				d.exec(t, c.do)
				_, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
				require.ErrorContains(t, err, c.text)
				require.ErrorIs(t, err, cowchangeset.ErrStore)
				d.exec(t, c.undo)
				_, err = cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
				require.NoError(t, err)
			})
		}
	})
}

// A call that waits for a lock of another process ends with its context.
func TestContextEndsAWait(t *testing.T) {
	eachShared(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		tx, err := d.other(t).BeginTx(background, nil)
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = tx.Exec("UPDATE " + d.prefix + "store SET epoch = epoch")
		require.NoError(t, err)
		errOurs := errors.New("ours")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errOurs)
		defer cancel()
		err = s.Append(ctx, "a", []entry{{Seq: 0, Value: "x"}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errOurs)
		require.ErrorContains(t, err, "sqlstore: Append: ours: ")
		require.NoError(t, tx.Rollback())
		require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #entries"))
	})
}

// The body of a loop over Load may use the store, also with one connection.
func TestLoadHoldsNoConnection(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		previous := ""
		for n := range uint64(100) { // more than one page
			id := strings.Repeat("i", int(n)+1)
			require.NoError(t, s.Start(background, header{ID: id, Ordinal: n + 1, Previous: previous}))
			previous = id
		}
		next := uint64(1)
		for saved, err := range s.Load(background) {
			require.NoError(t, err)
			require.Equal(t, next, saved.Ordinal)
			require.NoError(t, s.Seal(background, saved.ID, manifest{}))
			next++
		}
		require.EqualValues(t, 101, next)
		for range s.Load(background) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range s.Load(ctx) {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

// Prune stops at the first changeset that somebody may still need.
func TestPrune(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		previous := ""
		for n, id := range []string{"a", "b", "c", "d"} {
			require.NoError(t, s.Start(background, header{ID: id, Ordinal: uint64(n) + 1, Previous: previous}))
			require.NoError(t, s.Append(background, id, []entry{{Seq: 0, Value: id}}))
			require.NoError(t, s.Seal(background, id, manifest{Len: 1}))
			previous = id
		}
		left := func(s *sqlstore.Store[string], before uint64) (ids string) {
			require.NoError(t, s.Prune(background, before))
			for saved, err := range s.Load(background) {
				require.NoError(t, err)
				ids += saved.ID
			}
			require.EqualValues(t, len(ids), d.number(t, "SELECT COUNT(*) FROM #entries"))
			return ids
		}
		require.Equal(t, "abcd", left(s, 1))
		require.Equal(t, "bcd", left(s, 2))
		require.NoError(t, s.Applied(background, "a", cowchangeset.AllApplied)) // late
		require.ErrorIs(t, s.Append(background, "a", []entry{{Seq: 1}}), sqlstore.ErrConflict)
		require.Equal(t, "cd", left(s, 3))
		require.Equal(t, "d", left(s, math.MaxUint64))
	})
}
