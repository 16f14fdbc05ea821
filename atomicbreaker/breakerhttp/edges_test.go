package breakerhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// A copy that fails before its first byte has answered nothing: what the handler
// then answers counts.
func TestFailedCopiesAreNoAnswers(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1)}})
	m := breakerhttp.NewMiddleware(breakerhttp.MiddlewareConfig{Group: g})
	srv := httptest.NewServer(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, iotest.ErrReader(io.ErrClosedPipe)); err != nil {
			http.Error(w, "upstream broke", http.StatusBadGateway)
		}
	})))
	defer srv.Close()
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if s := g.State(""); resp.StatusCode != http.StatusBadGateway || s != ab.Open {
		t.Errorf("%s, and the breaker is %v", resp.Status, s)
	}
}

// A body that panics when it is looked at gives the probe's slot back.
func TestBodiesThatPanicBeforeTheyAreSent(t *testing.T) {
	const host = "127.0.0.1:1"
	var tr breakerhttp.Transport
	req, err := http.NewRequest("POST", "http://"+host, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Body = io.NopCloser((*bytes.Reader)(nil))
	tr.Group().HalfOpen(host)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		tr.RoundTrip(req)
	}()
	if s := tr.Group().Snapshot(host); s.State != ab.HalfOpen || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}
