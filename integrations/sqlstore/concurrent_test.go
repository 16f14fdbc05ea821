package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// Stores with different prefixes work in one database at the same time: no call fails
// because another one has a lock.
func TestStoresSideBySide(t *testing.T) {
	eachShared(t, func(t *testing.T, d database) {
		var wg sync.WaitGroup
		for g := range 4 {
			e := d.other(t)
			e.prefix = fmt.Sprintf("%s%d_", d.prefix, g)
			t.Cleanup(func() {
				for _, name := range []string{"store", "changesets", "entries"} {
					d.exec(t, "DROP TABLE "+e.prefix+name)
				}
			})
			wg.Go(func() {
				s, err := sqlstore.New(e.DB, e.options())
				check := func(err error) {
					if err != nil {
						t.Error(g, err)
					}
				}
				check(err)
				check(s.Migrate(background))
				check(s.Claim(background))
				check(s.Start(background, header{ID: "a", Ordinal: 1}))
				for n := range uint64(30) {
					check(s.Append(background, "a", []entry{{Seq: n}}))
				}
				check(s.Seal(background, "a", manifest{Len: 30, Last: 29}))
			})
		}
		wg.Wait()
	})
}

// A call that overlaps with its own repetition, as when the database still works on the
// one that was given up, has one effect, and all succeed.
func TestOverlappingRepetitions(t *testing.T) {
	eachShared(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		for n := range uint64(10) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if err := s.Append(background, "a", []entry{{Seq: 2 * n}, {Seq: 2*n + 1}}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		require.NoError(t, s.Seal(background, "a", manifest{Len: 20, Last: 19}))
		require.EqualValues(t, 20, d.number(t, "SELECT COUNT(*) FROM #entries"))
	})
}

// A Load beside a writer, without a claim, yields whole changesets: a prefix of their
// entries.
func TestLoadBesideAppend(t *testing.T) {
	eachShared(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		reader := d.other(t).store(t)
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := range uint64(60) {
				if err := s.Append(background, "a", []entry{{Seq: 2 * n}, {Seq: 2*n + 1}}); err != nil {
					t.Error(err)
				}
			}
		})
		for seen := 0; seen < 120; {
			for saved, err := range reader.Load(background) {
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(saved.Entries), seen)
				require.Zero(t, len(saved.Entries)%2)
				seen = len(saved.Entries)
			}
		}
		wg.Wait()
	})
}

// A Load beside a Prune skips what is gone.
func TestLoadBesidePrune(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		previous := ""
		for n, id := range []string{"a", "b", "c", "d"} {
			require.NoError(t, s.Start(background, header{ID: id, Ordinal: uint64(n) + 1, Previous: previous}))
			require.NoError(t, s.Append(background, id, []entry{{Seq: 0, Value: id}}))
			require.NoError(t, s.Seal(background, id, manifest{Len: 1}))
			require.NoError(t, s.Applied(background, id, cowchangeset.AllApplied))
			previous = id
		}
		var ids string
		for saved, err := range s.Load(background) {
			require.NoError(t, err)
			require.Len(t, saved.Entries, 1)
			ids += saved.ID
			require.NoError(t, s.Prune(background, 4))
		}
		require.Equal(t, "ad", ids)
	})
}

// The store's own transactions have the isolation that they need, whatever is the
// database's default; that of ApplyTx has the default.
func TestIsolation(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			d := postgres(t)
			d.dsn += "&default_transaction_isolation=" + url.PathEscape(level)
			d = d.other(t)
			d.SetMaxOpenConns(8)
			s, err := sqlstore.New(d.DB, d.options())
			require.NoError(t, err)
			require.NoError(t, s.Migrate(background))
			tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
			require.NoError(t, err)
			_, err = tracker.Start(background)
			require.NoError(t, err)
			var recorders sync.WaitGroup
			done := make(chan struct{})
			for range 4 {
				recorders.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						if _, err := tracker.Record("x"); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			applied := ""
			for range 50 {
				_, err := tracker.Start(background)
				require.NoError(t, err)
				for c := range tracker.Pending() {
					require.NoError(t, s.ApplyTx(background, c, func(ctx context.Context, tx *sql.Tx, _ cowchangeset.Final[string]) error {
						return tx.QueryRowContext(ctx, "SHOW transaction_isolation").Scan(&applied)
					}))
				}
			}
			close(done)
			recorders.Wait()
			require.NoError(t, tracker.Flush(background))
			require.Equal(t, level, applied)
		})
	}
}
