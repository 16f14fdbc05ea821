package changeset_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

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

// BenchmarkStoreRecord makes entries durable one by one: as Records of a tracker, which
// share messages; as asynchronous ones, until all are durable; and as one publish each,
// over one connection. With sync, the servers sync each write before they acknowledge it.
func BenchmarkStoreRecord(b *testing.B) {
	for _, setting := range []struct {
		replicas int
		sync     bool
	}{{1, false}, {1, true}, {3, false}, {3, true}} {
		for _, recorders := range []int{1, 64} {
			for _, impl := range []string{"tracker", "async", "publish"} {
				b.Run(fmt.Sprintf("replicas=%d/sync=%v/recorders=%d/impl=%s", setting.replicas, setting.sync, recorders, impl), func(b *testing.B) {
					js := natstest.Start(b, setting.replicas, func(o *server.Options) { o.SyncAlways = setting.sync }).JetStream()
					name := stream(b, js, setting.replicas)
					record, flush := publishes(js, name), func() {}
					if impl != "publish" {
						record, flush = records(b, js, name, impl == "async")
					}
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
					flush()
					b.StopTimer()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
				})
			}
		}
	}
}

func records(b *testing.B, js jetstream.JetStream, name string, async bool) (record func(i int64) error, flush func()) {
	s, err := changeset.Open(background, js, changeset.Options[change]{Stream: name})
	if err != nil {
		b.Fatal(err)
	}
	tracker := cowchangeset.MustNew(cowchangeset.Config[change]{Store: s, Async: async})
	if _, err := tracker.Start(background); err != nil {
		b.Fatal(err)
	}
	record = func(i int64) error {
		_, err := tracker.Record(changeOf(i))
		return err
	}
	flush = func() {
		if err := tracker.Flush(background); err != nil {
			b.Error(err)
		}
	}
	return record, flush
}

func publishes(js jetstream.JetStream, name string) func(i int64) error {
	return func(i int64) error {
		value, err := json.Marshal(changeOf(i))
		if err == nil {
			_, err = js.Publish(background, name+".bare", value)
		}
		return err
	}
}
