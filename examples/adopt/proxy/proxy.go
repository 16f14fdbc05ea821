// Package proxy is a reverse proxy that stops calling hosts which fail, with settings for each
// host: before, with a map of breakers under a mutex, and after, with atomicbreaker.
package proxy

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Settings of a host.
type Settings struct {
	Failures int           // in a row that open its breaker
	Open     time.Duration // until the host is tried again
}

var errOpen = errors.New("the host is down")

// New returns a proxy to the host that a request's path begins with. It sends by a transport that
// has the breakers, [Before] or [After].
func New(transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			host := r.In.PathValue("host")
			r.SetURL(&url.URL{Scheme: "http", Host: host})
			r.Out.URL.Path = "/" + r.In.PathValue("path")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errOpen) || errors.Is(err, atomicbreaker.ErrRejected) {
				http.Error(w, "the host is down", http.StatusServiceUnavailable)
				return
			}
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}
