package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// A tracker on a database applies its changes to a table of the same database.
func Example() {
	ctx := context.Background()
	db := openDatabase() // with a table of stock
	defer db.Close()

	type Change struct {
		Item string
		N    int
	}
	store, err := sqlstore.New(db, sqlstore.Options[Change]{Dialect: sqlstore.SQLite})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(ctx); err != nil { // makes the tables
		log.Fatal(err)
	}
	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: store})
	if err != nil {
		log.Fatal(err)
	}

	plan, _ := tracker.Start(ctx)
	tracker.Record(Change{"bolts", 100}) // committed when it returns
	err = store.ApplyTx(ctx, plan, func(ctx context.Context, tx *sql.Tx, changes cowchangeset.Final[Change]) error {
		for _, c := range changes.All() {
			if _, err := tx.ExecContext(ctx, "INSERT INTO stock VALUES (?, ?)", c.Item, c.N); err != nil {
				return err // nothing is applied
			}
		}
		return nil
	})
	fmt.Println(plan.Len(), "change applied:", err)
	// Output: 1 change applied: <nil>
}

// openDatabase returns a database in memory, which has one connection.
func openDatabase() *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL)"); err != nil {
		log.Fatal(err)
	}
	return db
}

// A process records changes into a database, and ends. The next one resumes the tracker,
// and applies what is left in the transaction that marks it as applied.
func ExampleStore_ApplyTx() {
	dir, err := os.MkdirTemp("", "changes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	db.ExecContext(ctx, "CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL)")

	type Change struct {
		Item string
		N    int
	}
	resume := func() (*sqlstore.Store[Change], *cowchangeset.Tracker[Change]) {
		store, err := sqlstore.New(db, sqlstore.Options[Change]{Dialect: sqlstore.SQLite})
		if err != nil {
			log.Fatal(err)
		}
		if err := store.Migrate(ctx); err != nil {
			log.Fatal(err)
		}
		tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: store})
		if err != nil {
			log.Fatal(err)
		}
		return store, tracker
	}

	_, tracker := resume()
	plan, _ := tracker.Start(ctx)
	tracker.Record(Change{"bolts", 100}) // committed when it returns
	tracker.Record(Change{"bolts", -30})
	plan.Seal(ctx)

	store, tracker := resume() // as the next process does
	for plan := range tracker.Pending() {
		err := store.ApplyTx(ctx, plan, func(ctx context.Context, tx *sql.Tx, changes cowchangeset.Final[Change]) error {
			for _, c := range changes.All() {
				if _, err := tx.ExecContext(ctx, "INSERT INTO stock (item, n) VALUES (?, ?) ON CONFLICT (item) DO UPDATE SET n = n + excluded.n", c.Item, c.N); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Println("applied changeset", plan.Ordinal(), err)
	}
	var n int
	err = db.QueryRowContext(ctx, "SELECT n FROM stock WHERE item = 'bolts'").Scan(&n)
	fmt.Println(n, "bolts", err)
	// Output:
	// applied changeset 1 <nil>
	// 70 bolts <nil>
}
