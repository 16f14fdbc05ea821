// Package sqlstore keeps the changesets of a cowchangeset.Tracker in a SQL database.
//
// A [Store] works on database/sql, for SQLite and PostgreSQL. The package imports no
// driver. Call [Store.Migrate] once to make the tables, and then resume a tracker:
//
//	db, err := sql.Open("pgx", dsn)
//	store, err := sqlstore.New(db, sqlstore.Options[Change]{Dialect: sqlstore.PostgreSQL})
//	err = store.Migrate(ctx)
//	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: store})
//
// # Transactions
//
// Each call of the tracker is one transaction. Records that wait at the same time share
// a call of Append, and so one transaction. A call that returns nil is committed. A
// call that fails may be committed, as when the connection breaks during the commit;
// the tracker repeats it, and a repeated call changes nothing.
//
// [Store.ApplyTx] runs a function in the transaction that marks the changeset as
// applied. What the function does in that transaction takes effect exactly once.
//
// # Two processes
//
// A tracker claims its store. The claim takes the next epoch from the database, and each
// transaction of the store checks, under a lock on the epoch's row, that its epoch is
// the last one. So the process that claims last has the store: Claim waits for the
// transactions that run, and from then on all calls of the earlier process fail with
// [ErrFenced]. No two processes write, or apply in ApplyTx, at the same time. The claim
// has no deadline and depends on no clock. It does not choose which process should run:
// processes that claim in turn take the store from each other.
//
// A fence protects the database only. A function given to Changeset.Apply that works
// elsewhere may still run in the earlier process.
//
// # Tables
//
// The tables are <prefix>store (one row: schema version, epoch, holder),
// <prefix>changesets and <prefix>entries. The primary key of a changeset is its
// ordinal, that of an entry is the ordinal and the Seq. An entry's value is what the
// [Codec] makes of it. The column applied is 9223372036854775807 when the whole
// changeset is applied. Other programs may read the tables. They must not write them.
package sqlstore
