package breakerhttp_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

var errBoom = errors.New("boom")

// serve starts a server that ends with the test and logs nothing.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// tripAfter returns breakers that open after n failures in a row, for long.
func tripAfter(n int) *atomicbreaker.Group[string] {
	return group(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(n), OpenTimeout: time.Hour})
}

func group(c atomicbreaker.Config) *atomicbreaker.Group[string] {
	return atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{Default: c})
}

// roundTripper is a Base that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer returns a response with a status and header fields, in pairs.
func answer(status int, fields ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	for i := 0; i < len(fields); i += 2 {
		resp.Header.Set(fields[i], fields[i+1])
	}
	return resp
}

// answers is a Base that gives the same answer to all requests.
func answers(status int, fields ...string) roundTripper {
	return func(*http.Request) (*http.Response, error) { return answer(status, fields...), nil }
}

// get makes a request and reads its answer, and returns the status, or -1 if
// it was rejected, or 0 if it failed.
func get(t *testing.T, rt http.RoundTripper, url string) int {
	t.Helper()
	resp, err := (&http.Client{Transport: rt}).Get(url)
	switch {
	case errors.Is(err, atomicbreaker.ErrRejected):
		return -1
	case err != nil:
		return 0
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// wantGets makes requests one after the other.
func wantGets(t *testing.T, rt http.RoundTripper, url string, want ...int) {
	t.Helper()
	for i, want := range want {
		if got := get(t, rt, url); got != want {
			t.Fatalf("request %d of %v: %d", i, want, got)
		}
	}
}

// host is the key of a server.
func host(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }

func wantState(t *testing.T, g *atomicbreaker.Group[string], key string, state atomicbreaker.State, failures int) {
	t.Helper()
	if s := g.Snapshot(key); s.State != state || s.Failures != failures {
		t.Fatalf("%s is %v with %d failures, want %v with %d", key, s.State, s.Failures, state, failures)
	}
}

// ended runs f in a goroutine of its own and returns how it ended: what it
// panicked with, "Goexit", or nil.
func ended(f func()) (how any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		how = "Goexit"
		defer func() {
			if v := recover(); v != nil {
				how = v
			}
		}()
		f()
		how = nil
	}()
	<-done
	return how
}

// requestBody notes that it was closed.
type requestBody struct {
	io.Reader
	closed int
}

func (b *requestBody) Close() error { b.closed++; return nil }

func post(t *testing.T, url string) (*http.Request, *requestBody) {
	t.Helper()
	b := &requestBody{Reader: strings.NewReader("data")}
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, b)
	if err != nil {
		t.Fatal(err)
	}
	return r, b
}

func transport(c breakerhttp.TransportConfig) *breakerhttp.Transport {
	return breakerhttp.MustNewTransport(c)
}
