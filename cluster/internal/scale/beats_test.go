package scale

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/registry"
)

// What Config.MaxLag costs: replicas of a service that does nothing else.
func BenchmarkBeats(b *testing.B) {
	natstest.NeedsLong(b, "takes minutes")
	const period = 5 * time.Second
	for _, n := range []int{1, 3, 10, 30, 100, 300} {
		b.Run(fmt.Sprintf("MaxLag=1s/replicas=%d", n), func(b *testing.B) {
			c := natstest.Start(b, 3)
			kv := bucket(b, c.JetStream(), 3)
			all := mirrors(b, c, kv, n, registry.Config[string, value]{MaxLag: time.Second})
			deliveries := func() (sum uint64) {
				for _, r := range all {
					sum += r.Stats().Deliveries
				}
				return sum
			}
			time.Sleep(period) // until all have beaten
			for b.Loop() {
				first, was, stale, looks := lastRevision(b, kv), deliveries(), 0, 0
				began := time.Now()
				for time.Since(began) < period {
					for _, r := range all {
						looks++
						if r.Fresh() != nil {
							stale++
						}
					}
					time.Sleep(10 * time.Millisecond)
				}
				took := time.Since(began).Seconds()
				now := deliveries()
				beats := lastRevision(b, kv) - first - 1
				require.NotZero(b, beats)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(beats)/took, "beats/s")
				b.ReportMetric(float64(now-was)/took, "deliveries/s")
				b.ReportMetric(100*float64(stale)/float64(looks), "%stale")
			}
		})
	}
}
