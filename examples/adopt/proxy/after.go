package proxy

import (
	"net/http"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// NewAfter returns a transport that sends by base.
func NewAfter(base http.RoundTripper, settings func(host string) Settings) *breakerhttp.Transport {
	return breakerhttp.MustNewTransport(breakerhttp.TransportConfig{
		Base: base,
		Key:  func(r *http.Request) string { return r.URL.Host },
		Group: atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
			PerKey: func(host string) atomicbreaker.Config {
				s := settings(host)
				return atomicbreaker.Config{Name: host, Policy: atomicbreaker.Consecutive(s.Failures), OpenTimeout: s.Open}
			},
		}),
	})
}
