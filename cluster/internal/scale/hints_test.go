package scale

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// How many hints an outage makes: all replicas of a service call a dependency that fails,
// once a millisecond each, until their breakers are open, and have heard what there is to hear.
func BenchmarkHints(b *testing.B) {
	natstest.NeedsLong(b, "takes minutes")
	for _, n := range []int{1, 10, 100, 300} {
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			c := natstest.Start(b, 3)
			var all []*breaker.Group[string]
			for range n {
				g, err := breaker.NewGroup(c.JetStream(quiet...), breaker.Config[string]{Stream: "hints", StreamReplicas: 3})
				require.NoError(b, err)
				b.Cleanup(g.Close)
				require.NoError(b, g.Wait(within(b)))
				all = append(all, g)
			}
			sum := func(f func(breaker.Hints) int64) (sum int64) {
				for _, g := range all {
					sum += f(g.Hints())
				}
				return sum
			}
			published := func() int64 { return sum(func(h breaker.Hints) int64 { return h.Published + int64(h.Waiting) }) }
			heard := func() int64 { return sum(func(h breaker.Hints) int64 { return h.Heard }) }
			outage := 0
			for b.Loop() {
				key := fmt.Sprint("db", outage)
				outage++
				was, wasHeard := published(), heard()
				began := time.Now()
				for _, g := range all {
					go func() {
						for g.State(key) == atomicbreaker.Closed {
							g.RecordFailure(key)
							time.Sleep(time.Millisecond)
						}
					}()
				}
				until(b, func() bool {
					for _, g := range all {
						if g.State(key) == atomicbreaker.Closed {
							return false
						}
					}
					return true
				})
				opened := time.Since(began)
				until(b, func() bool { return heard()-wasHeard >= (published()-was)*int64(n) })
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(published()-was), "published")
				b.ReportMetric(float64(heard()-wasHeard), "heard")
				b.ReportMetric(opened.Seconds()*1000, "ms-open")
				b.ReportMetric(time.Since(began).Seconds()*1000, "ms-heard")
			}
		})
	}
}
