package breakerhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// status makes a server answer with what it is set to.
type status struct{ atomic.Int64 }

func (s *status) serve(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(s.Load())) }

// A host that fails is rejected, and no other.
//
// Reported bug 56, Couchbase: one bad host opens all.
func TestT56_HostsFailAlone(t *testing.T) {
	var one, two status
	one.Store(500)
	two.Store(200)
	a, b := serve(t, one.serve), serve(t, two.serve)
	rt := transport(breakerhttp.TransportConfig{Base: a.Client().Transport, Group: tripAfter(3)})
	defer rt.CloseIdleConnections()
	wantGets(t, rt, a.URL, 500, 500, 500, -1, -1)
	wantGets(t, rt, b.URL, 200)
	wantState(t, rt.Group(), host(a), atomicbreaker.Open, 0)
	wantState(t, rt.Group(), host(b), atomicbreaker.Closed, 0)

	one.Store(200)
	wantGets(t, rt, a.URL, -1)
	rt.Group().Reset(host(a))
	wantGets(t, rt, a.URL, 200)
	if n := rt.Group().Len(); n != 0 {
		t.Errorf("%d keys are kept for healthy hosts", n)
	}
}

func TestZeroTransport(t *testing.T) {
	var s status
	s.Store(502)
	srv := serve(t, s.serve)
	var rt breakerhttp.Transport
	defer rt.CloseIdleConnections()
	wantGets(t, &rt, srv.URL, 502, 502, 502, 502, 502, -1)
}

// Whoever is rejected gets the reason, and its body is closed unread.
//
// Reported bug 59, handy: rejected bodies stay open.
func TestT59_Rejection(t *testing.T) {
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{PerKey: func(key string) atomicbreaker.Config {
		return atomicbreaker.Config{Name: key, Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Hour, DetailedErrors: true}
	}})
	sent := 0
	rt := transport(breakerhttp.TransportConfig{Group: g, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		sent++
		r.Body.Close()
		return nil, errBoom
	})})
	r, body := post(t, "http://Example.com/")
	if _, err := rt.RoundTrip(r); err != errBoom || body.closed != 1 {
		t.Fatalf("%v, body closed %d times", err, body.closed)
	}
	r, body = post(t, "http://example.com:80/")
	_, err := (&http.Client{Transport: rt}).Do(r)
	var (
		in     *url.Error
		detail *atomicbreaker.OpenError
	)
	if !errors.As(err, &in) || !errors.Is(err, atomicbreaker.ErrRejected) || !errors.Is(err, atomicbreaker.ErrOpen) || !errors.As(err, &detail) {
		t.Fatalf("%#v", err)
	}
	if detail.Name != "example.com:80" || detail.State != atomicbreaker.Open || detail.RetryAfter <= 59*time.Minute {
		t.Errorf("%#v", detail)
	}
	if body.closed != 1 || body.Reader.(*strings.Reader).Len() != 4 || sent != 1 {
		t.Errorf("body closed %d times, sent %d", body.closed, sent)
	}
	rt.Group().Reset("example.com:80")
}

// Nothing is lost if user code does not return: the call has failed, and what
// was open is closed.
func TestUserCodeThatDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("leave") }, "Goexit": runtime.Goexit} {
		for where, tt := range map[string]struct {
			config        breakerhttp.TransportConfig
			failures      int
			request, resp int // how often the bodies are closed
		}{
			"Base": {breakerhttp.TransportConfig{Base: roundTripper(func(*http.Request) (*http.Response, error) {
				leave()
				return nil, nil
			})}, 1, 0, 0},
			"Classify": {breakerhttp.TransportConfig{Classify: func(*http.Response, error) atomicbreaker.Outcome {
				leave()
				return atomicbreaker.Success
			}}, 1, 0, 1},
			"Key": {breakerhttp.TransportConfig{Key: func(*http.Request) string {
				leave()
				return ""
			}}, 0, 1, 0},
		} {
			t.Run(name+" in "+where, func(t *testing.T) {
				answered := &requestBody{Reader: strings.NewReader("")}
				if tt.config.Base == nil {
					tt.config.Base = roundTripper(func(*http.Request) (*http.Response, error) {
						resp := answer(200)
						resp.Body = answered
						return resp, nil
					})
				}
				rt := transport(tt.config)
				r, body := post(t, "https://example.com")
				if how := ended(func() { rt.RoundTrip(r) }); how != "leave" && how != "Goexit" {
					t.Errorf("it ended with %v", how)
				}
				wantState(t, rt.Group(), "example.com:443", atomicbreaker.Closed, tt.failures)
				if body.closed != tt.request || answered.closed != tt.resp {
					t.Errorf("request's body closed %d times, response's %d times", body.closed, answered.closed)
				}
			})
		}
	}
}

// One breaker must not be asked twice about one request; two may.
func TestNestedTransports(t *testing.T) {
	g, base := tripAfter(1), roundTripper(answers(500))
	inner := transport(breakerhttp.TransportConfig{Base: base, Group: g})
	const want = "breakerhttp: TransportConfig.Base: must not be a Transport with the same Group"
	c := breakerhttp.TransportConfig{Base: inner, Group: g}
	if rt, err := breakerhttp.NewTransport(c); rt != nil || err == nil || err.Error() != want {
		t.Error(err)
	}
	if how, _ := ended(func() { transport(c) }).(error); how == nil || how.Error() != want {
		t.Errorf("it ended with %v", how)
	}
	const wantNil = "breakerhttp: TransportConfig.Base: must not be a nil *Transport"
	c.Base = (*breakerhttp.Transport)(nil)
	if rt, err := breakerhttp.NewTransport(c); rt != nil || err == nil || err.Error() != wantNil {
		t.Error(err)
	}
	outer := transport(breakerhttp.TransportConfig{Base: inner, Group: tripAfter(2)})
	wantGets(t, outer, "http://example.com", 500, -1, -1, -1)
	wantState(t, outer.Group(), "example.com:80", atomicbreaker.Closed, 1)
	wantState(t, g, "example.com:80", atomicbreaker.Open, 0)
}

// Requests that name no host go to who can say what is wrong with them.
func TestRequestsWithoutHost(t *testing.T) {
	rt := transport(breakerhttp.TransportConfig{Base: new(http.Transport)})
	for _, r := range []*http.Request{{Header: http.Header{}}, {URL: &url.URL{Scheme: "http"}, Header: http.Header{}}} {
		if _, err := rt.RoundTrip(r); err == nil {
			t.Error("no error")
		}
	}
	if n := rt.Group().Len(); n != 0 {
		t.Errorf("%d keys", n)
	}
}

// Connections are used again as without a breaker.
func TestKeepAlive(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	for _, watch := range []bool{false, true} {
		rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, WatchBody: watch})
		fresh, reused := 0, 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if i.Reused {
				reused++
			} else {
				fresh++
			}
		}})
		for range 5 {
			r, _ := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); string(b) != "hello" || err != nil {
				t.Error(string(b), err)
			}
			resp.Body.Close()
		}
		if fresh > 1 || fresh+reused != 5 {
			t.Errorf("%d connections made, %d used again", fresh, reused)
		}
		(&http.Client{Transport: rt}).CloseIdleConnections()
		srv.Client().CloseIdleConnections()
	}
}

func TestCloseIdleConnections(t *testing.T) {
	closed := 0
	base := closer{roundTripper: answers(200), close: func() { closed++ }}
	(&http.Client{Transport: transport(breakerhttp.TransportConfig{Base: base})}).CloseIdleConnections()
	if closed != 1 {
		t.Errorf("called %d times", closed)
	}
	transport(breakerhttp.TransportConfig{Base: answers(200)}).CloseIdleConnections() // cannot
}

type closer struct {
	roundTripper
	close func()
}

func (c closer) CloseIdleConnections() { c.close() }

// Many callers meet a server that fails now and then, and each answer counts
// once: when all is quiet and the server works, so does the breaker.
func TestStressTransport(t *testing.T) {
	var broken atomic.Bool
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(503)
		}
		io.WriteString(w, "answer")
	})
	rt := transport(breakerhttp.TransportConfig{
		Base: srv.Client().Transport, WatchBody: true,
		Group: group(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3), OpenTimeout: time.Millisecond, Probes: 2}),
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 50 {
				broken.Store(i%10 < 3)
				get(t, rt, srv.URL)
			}
		})
	}
	wg.Wait()
	broken.Store(false)
	for rt.Group().Snapshot(host(srv)) != (atomicbreaker.Snapshot{}) {
		get(t, rt, srv.URL) // for a millisecond
	}
}

// A request costs its key, if that has to be made.
func TestTransportAllocations(t *testing.T) {
	resp := answer(200)
	rt := transport(breakerhttp.TransportConfig{Base: roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil })})
	for url, want := range map[string]float64{"http://example.com:8080/": 0, "http://example.com/": 1} {
		r := httptest.NewRequest("GET", url, nil)
		if got := testing.AllocsPerRun(100, func() { rt.RoundTrip(r) }); got != want {
			t.Errorf("%s: %v allocations, want %v", url, got, want)
		}
	}
	if rt.Group().Len() != 0 {
		t.Error("healthy hosts are kept")
	}
}

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
		"connection":   func(r *http.Request) { r.Header.Set("Connection", "a, b") },
		"host":         func(r *http.Request) { r.Host = "a b" },
	} {
		for proto, serve := range servers {
			switch {
			case name == "query" && proto != "HTTP/1.1":
				continue // HTTP/2 sends it, and tries again when the server hangs up
			case (name == "connection" || name == "host") && proto == "HTTP/1.1":
				continue // sent too
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

// A Base may send what net/http does not, and then the host has failed. So it has if it
// only quotes what net/http says of requests.
func TestErrorsOfOthersAreFailures(t *testing.T) {
	fails := errBoom
	rt := transport(breakerhttp.TransportConfig{Group: tripAfter(20), Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, fails
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
	fails = fmt.Errorf("the host says: net/http: invalid method %q", "GE T")
	r, _ := post(t, "http://example.com:80")
	rt.RoundTrip(r)
	wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, want+1)
}
