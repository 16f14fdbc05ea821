package scale

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/registry"
)

// What a key takes: on the disk and in the memory of a server, and in that of a mirror, and
// how long a mirror needs to attach.
func BenchmarkKeys(b *testing.B) {
	natstest.NeedsLong(b, "takes minutes")
	for _, keys := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := natstest.Start(b, 1)
			js := c.JetStream()
			kv := bucket(b, js, 1)
			empty := heap()
			for i := range keys {
				data, err := json.Marshal(some(i))
				require.NoError(b, err)
				_, err = js.PublishAsync(fmt.Sprintf("$KV.%s.plan.%07d", kv.Bucket(), i), data, jetstream.WithStallWait(patience))
				require.NoError(b, err)
			}
			<-js.PublishAsyncComplete()
			status, err := kv.Status(within(b))
			require.NoError(b, err)
			require.EqualValues(b, keys, status.Values())
			full := heap()
			for b.Loop() {
				began := time.Now()
				r := mirrors(b, c, kv, 1, registry.Config[string, value]{})[0]
				took := time.Since(began)
				with := heap()
				require.Equal(b, keys, r.Len())
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(status.Bytes())/float64(keys), "B/key-disk")
				b.ReportMetric((full-empty)/float64(keys), "B/key-server")
				b.ReportMetric((with-full)/float64(keys), "B/key-mirror")
				b.ReportMetric(float64(took.Milliseconds()), "ms-attach")
			}
		})
	}
}

// How many writes a second one bucket takes, of values of 100 bytes to keys of their own.
func BenchmarkWriters(b *testing.B) {
	natstest.NeedsLong(b, "takes minutes")
	const clients, writes = 64, 300
	for _, servers := range []int{1, 3} {
		c := natstest.Start(b, servers)
		js := c.JetStream(quiet...)
		kv := bucket(b, js, servers)
		plain := bucket(b, js, servers)
		r := mirrors(b, c, kv, 1, registry.Config[string, value]{})[0]
		run := func(impl string, write func(k string, n int) error) {
			b.Run(fmt.Sprintf("servers=%d/clients=%d/impl=%s", servers, clients, impl), func(b *testing.B) {
				began := time.Now()
				for b.Loop() {
					done := make(chan error, clients)
					for i := range clients {
						go func() {
							var err error
							for n := 0; n < writes && err == nil; n++ {
								err = write(fmt.Sprint("k", i), n)
							}
							done <- err
						}()
					}
					for range clients {
						require.NoError(b, <-done)
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(b.N*clients*writes)/time.Since(began).Seconds(), "writes/s")
			})
		}
		ctx := within(b)
		run("bare", func(k string, n int) error {
			data, _ := json.Marshal(some(n))
			_, err := plain.Put(ctx, k, data)
			return err
		})
		run("registry", func(k string, n int) error {
			_, err := r.Put(ctx, k, some(n))
			return err
		})
	}
}
