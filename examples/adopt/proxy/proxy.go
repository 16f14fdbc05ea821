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

// New returns a proxy that takes /HOST/PATH to http://HOST/PATH, by a transport with breakers: of
// [NewBefore] or [NewAfter]. One that strangers reach needs a list of hosts besides.
func New(transport http.RoundTripper) http.Handler {
	routes := http.NewServeMux()
	routes.Handle("/{host}/{path...}", &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: r.In.PathValue("host")})
			r.Out.URL.Path = "/" + r.In.PathValue("path")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errOpen) || errors.Is(err, atomicbreaker.ErrRejected) {
				http.Error(w, "the host is down", http.StatusServiceUnavailable)
				return
			}
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
	return routes
}
