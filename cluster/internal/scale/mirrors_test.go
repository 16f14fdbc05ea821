package scale

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/registry"
)

// What one more mirror costs: a bare client writes as fast as it can, until all mirrors
// have it, and then one write after the other.
func BenchmarkMirrors(b *testing.B) {
	natstest.NeedsLong(b, "takes minutes")
	for _, servers := range []int{1, 3} {
		for _, n := range []int{1, 10, 100, 300, 1000} {
			b.Run(fmt.Sprintf("servers=%d/mirrors=%d", servers, n), func(b *testing.B) {
				c := natstest.Start(b, servers)
				js := c.JetStream(quiet...)
				kv := bucket(b, js, servers)
				before := heap()
				began := time.Now()
				all := mirrors(b, c, kv, n, registry.Config[string, value]{})
				attached := time.Since(began)
				with := heap()
				for b.Loop() {
					b.ReportMetric(0, "ns/op")
					b.ReportMetric((with-before)/float64(n)/1024, "KiB/mirror")
					b.ReportMetric(attached.Seconds()*1000/float64(n), "ms/attach")
					writes := min(max(200_000/n, 500), 20_000)
					began = time.Now()
					for i := range writes {
						data, _ := json.Marshal(some(i))
						_, err := js.PublishAsync(fmt.Sprintf("$KV.%s.k%d", kv.Bucket(), i%1000), data, jetstream.WithStallWait(patience))
						require.NoError(b, err)
					}
					<-js.PublishAsyncComplete()
					last := lastRevision(b, kv)
					require.Greater(b, int(last), writes)
					until(b, func() bool {
						for _, r := range all {
							if r.Revision() < last {
								return false
							}
						}
						return true
					})
					took := time.Since(began).Seconds()
					b.ReportMetric(float64(writes)/took, "writes/s")
					var deliveries uint64
					for _, r := range all {
						deliveries += r.Stats().Deliveries
					}
					b.ReportMetric(float64(deliveries)/took, "deliveries/s")

					var acks, shown []time.Duration
					for i := range 50 {
						data, _ := json.Marshal(some(i))
						began := time.Now()
						v, err := kv.Put(within(b), "one", data)
						require.NoError(b, err)
						acks = append(acks, time.Since(began))
						until(b, func() bool {
							return !slices.ContainsFunc(all, func(r *registry.Registry[string, value]) bool { return uint64(r.Revision()) < v })
						})
						shown = append(shown, time.Since(began))
					}
					slices.Sort(acks)
					slices.Sort(shown)
					b.ReportMetric(acks[25].Seconds()*1000, "ms-ack")
					b.ReportMetric(shown[25].Seconds()*1000, "ms-shown")
				}
			})
		}
	}
}
