package gobreaker

import (
	"testing"
	"time"

	peer "github.com/sony/gobreaker/v2"
)

// BenchmarkCircuitBreakerExecute runs a function that does nothing, here and in gobreaker.
// With state=open all calls are rejected. failures=10% has one call of ten fail.
func BenchmarkCircuitBreakerExecute(b *testing.B) {
	never := func(Counts) bool { return false }
	for _, c := range []struct {
		name  string
		st    Settings
		fails int // every n-th call; 0 for none
	}{
		{"state=closed/window=none", Settings{}, 0},
		{"state=closed/window=fixed", Settings{Interval: time.Minute}, 0},
		{"state=closed/window=rolling", Settings{Interval: time.Minute, BucketPeriod: time.Second}, 0},
		{"state=closed/window=none/failures=10%", Settings{ReadyToTrip: never}, 10},
		{"state=open/window=none", Settings{Timeout: time.Hour}, 1},
	} {
		for _, parallel := range []bool{false, true} {
			mode := "/callers=one"
			if parallel {
				mode = "/callers=parallel"
			}
			run := func(impl string, execute func(func() (int, error)) (int, error)) {
				b.Run(c.name+mode+"/impl="+impl, func(b *testing.B) {
					b.ReportAllocs()
					loop := func(next func() bool) {
						good := func() (int, error) { return 1, nil }
						bad := func() (int, error) { return 0, errBad }
						for n := 1; next(); n++ {
							if c.fails != 0 && n%c.fails == 0 {
								_, _ = execute(bad)
							} else {
								_, _ = execute(good)
							}
						}
					}
					if parallel {
						b.RunParallel(func(pb *testing.PB) { loop(pb.Next) })
					} else {
						loop(b.Loop)
					}
				})
			}
			run("latchfree", NewCircuitBreaker[int](c.st).Execute)
			run("gobreaker", peer.NewCircuitBreaker[int](peerSettings(c.st)).Execute)
		}
	}
}
