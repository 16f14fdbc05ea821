package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// BenchmarkStoreRecord makes entries durable one by one: as Records of a tracker, which
// share transactions, and as one INSERT each. Both sync each commit to the disk.
func BenchmarkStoreRecord(b *testing.B) {
	for _, db := range []struct {
		name string
		open func(testing.TB) database
	}{
		{"SQLite", func(b testing.TB) database { return fileSynced(b, "FULL") }},
		{"PostgreSQL", postgres},
	} {
		for _, recorders := range []int{1, 64} {
			for _, impl := range []string{"tracker", "insert"} {
				b.Run(fmt.Sprintf("db=%s/recorders=%d/impl=%s", db.name, recorders, impl), func(b *testing.B) {
					d := db.open(b)
					implementation := records
					if impl == "insert" {
						implementation = inserts
					}
					record := implementation(b, d)
					var next atomic.Int64
					var wg sync.WaitGroup
					b.ResetTimer()
					for range recorders {
						wg.Go(func() {
							for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
								if err := record(i); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
				})
			}
		}
	}
}

// change is a value as services record it.
type change struct {
	Tenant, Table, Key string
	Version            int64
	Columns            map[string]string
}

func changeOf(i int64) change {
	return change{
		Tenant: fmt.Sprint("tenant-", i%97), Table: "orders", Key: fmt.Sprint("order-", i), Version: i,
		Columns: map[string]string{"state": "shipped", "carrier": "north", "note": fmt.Sprint("parcel ", i)},
	}
}

func records(b *testing.B, d database) func(i int64) error {
	s, err := sqlstore.New(d.DB, sqlstore.Options[change]{Dialect: d.dialect, Prefix: d.prefix})
	if err == nil {
		err = s.Migrate(background)
	}
	if err != nil {
		b.Fatal(err)
	}
	tracker := cowchangeset.MustNew(cowchangeset.Config[change]{Store: s})
	if _, err := tracker.Start(background); err != nil {
		b.Fatal(err)
	}
	return func(i int64) error {
		_, err := tracker.Record(changeOf(i))
		return err
	}
}

func inserts(b *testing.B, d database) func(i int64) error {
	blob, text := "BLOB", "INSERT INTO #entries (seq, value) VALUES (?, ?)"
	d.SetMaxOpenConns(1) // more would wait for SQLite's lock, and sleep meanwhile
	if d.dialect == sqlstore.PostgreSQL {
		blob, text = "BYTEA", "INSERT INTO #entries (seq, value) VALUES ($1, $2)"
		d.SetMaxOpenConns(32)
		d.SetMaxIdleConns(32)
	}
	d.exec(b, "CREATE TABLE #entries (seq BIGINT PRIMARY KEY, value "+blob+" NOT NULL)")
	insert, err := d.Prepare(replacePrefix(text, d.prefix))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { insert.Close() })
	return func(i int64) error {
		value, err := json.Marshal(changeOf(i))
		if err == nil {
			_, err = insert.Exec(i, value)
		}
		return err
	}
}
