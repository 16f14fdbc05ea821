package breakerhttp_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// Requests that cannot be sent say nothing about the host, also if Base has
// something to add to the error, and the user's Classify is not asked.
func TestInvalidRequestsAreIgnored(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = "GE T" },
		"field name":   func(r *http.Request) { r.Header["a b"] = []string{"c"} },
		"field value":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer a\nb") },
		"many fields":  func(r *http.Request) { r.Header = http.Header{"a b": {"c"}, "A": {"\x00"}, "B": {"c"}, "": {"d"}} },
		"trailer name": func(r *http.Request) { r.Trailer = http.Header{"a b": nil} },
		"scheme":       func(r *http.Request) { r.URL.Scheme = "gopher" },
		"no header":    func(r *http.Request) { r.Header = nil },
		"query":        func(r *http.Request) { r.URL.RawQuery = "a\nb" },
	} {
		for proto, serve := range servers {
			if name == "query" && proto != "HTTP/1.1" {
				continue // HTTP/2 sends it, and tries again when the server hangs up
			}
			t.Run(name+" "+proto, func(t *testing.T) {
				var hits atomic.Int32
				srv := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
				wrapped := roundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := srv.Client().Transport.RoundTrip(r)
					if err != nil {
						err = fmt.Errorf("traced: %w", err)
					}
					return resp, err
				})
				for _, base := range []http.RoundTripper{srv.Client().Transport, wrapped} {
					rt := transport(breakerhttp.TransportConfig{
						Base: base, Group: tripAfter(5),
						Classify: func(_ *http.Response, err error) atomicbreaker.Outcome {
							t.Errorf("Classify was asked about %v", err)
							return atomicbreaker.Failure
						},
					})
					rt.Group().RecordFailure(keyOf(srv))
					for range 10 {
						r, body := post(t, srv.URL)
						spoil(r)
						if _, err := rt.RoundTrip(r); err == nil {
							t.Error("no error")
						}
						if body.closed != 1 {
							t.Errorf("the request's body was closed %d times", body.closed)
						}
						wantState(t, rt.Group(), keyOf(srv), atomicbreaker.Closed, 1)
					}
				}
				if n := hits.Load(); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
			})
		}
	}
}

// A Base may send what net/http does not, and then the host has failed.
func TestErrorsOfOthersAreFailures(t *testing.T) {
	rt := transport(breakerhttp.TransportConfig{Group: tripAfter(20), Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errBoom
	})})
	want := 0
	for _, spoil := range []func(*http.Request){
		func(*http.Request) {},
		func(r *http.Request) { r.URL.Scheme = "unix" },
		func(r *http.Request) { r.Header = nil },
		func(r *http.Request) { r.Header[":protocol"] = []string{"websocket"} },
		func(r *http.Request) { r.Host = "a b" }, // which net/http leaves out
	} {
		r, _ := post(t, "http://example.com:80")
		spoil(r)
		if _, err := rt.RoundTrip(r); err != errBoom {
			t.Error(err)
		}
		want++
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, want)
	}
}
