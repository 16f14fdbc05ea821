package breakerhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// leaves are the ways in which user code does not return.
var leaves = map[string]func(){"panic": func() { panic("leave") }, "Goexit": runtime.Goexit}

// leaving returns breakers, open for a second after one failure, whose
// listener leaves at events that lead to a state, and counts them.
func leaving(to atomicbreaker.State, leave func()) (*atomicbreaker.Group[string], *int) {
	notified := new(int)
	return atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second},
		OnStateChange: func(_ string, e atomicbreaker.Event) {
			if e.To == to {
				*notified++
				leave()
			}
		},
	}), notified
}

// A listener that does not return takes the answer with it, so that the body is
// closed, and the outcome is reported once.
func TestListenersThatLeaveRoundTrip(t *testing.T) {
	for how, leave := range leaves {
		for name, tt := range map[string]struct {
			opened  bool // before, so that the request is a probe
			to      atomicbreaker.State
			status  int
			fields  []string
			request int // how often the bodies are closed
			resp    int
			state   atomicbreaker.State
		}{
			"failure":      {false, atomicbreaker.Open, 500, nil, 0, 1, atomicbreaker.Open},
			"Retry-After":  {false, atomicbreaker.Open, 503, []string{"Retry-After", "1"}, 0, 1, atomicbreaker.Open},
			"success":      {true, atomicbreaker.Closed, 200, nil, 0, 1, atomicbreaker.Closed},
			"failed probe": {true, atomicbreaker.Open, 500, nil, 0, 1, atomicbreaker.Open},
			"asking":       {true, atomicbreaker.HalfOpen, 200, nil, 1, 0, atomicbreaker.HalfOpen},
			"nowhere":      {false, atomicbreaker.Closed, 200, nil, 0, 0, atomicbreaker.Closed},
		} {
			t.Run(how+" at "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, notified := leaving(tt.to, leave)
					const key = "example.com:80"
					if tt.opened {
						ended(func() { g.RecordFailure(key) })
						time.Sleep(time.Second)
						*notified = 0
					}
					answered := &requestBody{Reader: strings.NewReader("x")}
					rt := transport(breakerhttp.TransportConfig{Group: g, Base: roundTripper(func(*http.Request) (*http.Response, error) {
						resp := answer(tt.status, tt.fields...)
						resp.Body = answered
						return resp, nil
					})})
					r, body := post(t, "http://example.com")
					var resp *http.Response
					end := ended(func() { resp, _ = rt.RoundTrip(r) })
					if want := name == "nowhere"; (end == nil) != want || (resp != nil) != want {
						t.Errorf("it ended with %v and %v", end, resp)
					}
					if body.closed != tt.request || answered.closed != tt.resp {
						t.Errorf("request's body closed %d times, response's %d times", body.closed, answered.closed)
					}
					wantState(t, g, key, tt.state, 0)
					if s := g.Snapshot(key); s.InFlight != 0 {
						t.Errorf("%d probes are in flight", s.InFlight)
					}
					if end != nil && *notified != 1 {
						t.Errorf("told %d times", *notified)
					}
				})
			})
		}
	}
}

// With WatchBody the caller has the body, and a listener that does not return
// from Close keeps nothing open.
func TestListenersThatLeaveBodies(t *testing.T) {
	for how, leave := range leaves {
		for name, tt := range map[string]struct {
			end   func(io.ReadCloser)
			body  io.Reader
			to    atomicbreaker.State
			close int
		}{
			"Close":  {func(b io.ReadCloser) { b.Close() }, strings.NewReader("x"), atomicbreaker.Closed, 1},
			"end":    {func(b io.ReadCloser) { io.ReadAll(b) }, strings.NewReader("x"), atomicbreaker.Closed, 0},
			"broken": {func(b io.ReadCloser) { io.ReadAll(b) }, broken{}, atomicbreaker.Open, 0},
		} {
			t.Run(how+" at "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, notified := leaving(tt.to, leave)
					const key = "example.com:80"
					ended(func() { g.RecordFailure(key) })
					time.Sleep(time.Second)
					*notified = 0
					answered := &requestBody{Reader: tt.body}
					rt := transport(breakerhttp.TransportConfig{Group: g, WatchBody: true, Base: roundTripper(func(*http.Request) (*http.Response, error) {
						resp := answer(200)
						resp.Body = answered
						return resp, nil
					})})
					resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil))
					if err != nil {
						t.Fatal(err)
					}
					if how := ended(func() { tt.end(resp.Body) }); how == nil {
						t.Error("it ended")
					}
					if answered.closed != tt.close || *notified != 1 {
						t.Errorf("closed %d times, told %d times", answered.closed, *notified)
					}
					resp.Body.Close()
					if answered.closed != tt.close+1 || *notified != 1 {
						t.Errorf("closed %d times, told %d times", answered.closed, *notified)
					}
					wantState(t, g, key, tt.to, 0)
				})
			})
		}
	}
}

// In a Middleware there is nothing to close, and the outcome is reported once.
func TestListenersThatLeaveHandlers(t *testing.T) {
	for how, leave := range leaves {
		for name, tt := range map[string]struct {
			opened bool
			to     atomicbreaker.State
			status int
			calls  int
			state  atomicbreaker.State
		}{
			"failure":      {false, atomicbreaker.Open, 500, 1, atomicbreaker.Open},
			"success":      {true, atomicbreaker.Closed, 200, 1, atomicbreaker.Closed},
			"failed probe": {true, atomicbreaker.Open, 500, 1, atomicbreaker.Open},
			"asking":       {true, atomicbreaker.HalfOpen, 200, 0, atomicbreaker.HalfOpen},
		} {
			t.Run(how+" at "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, notified := leaving(tt.to, leave)
					if tt.opened {
						ended(func() { g.RecordFailure("") })
						time.Sleep(time.Second)
						*notified = 0
					}
					calls := 0
					h := middleware(breakerhttp.MiddlewareConfig{Group: g}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						calls++
						w.WriteHeader(tt.status)
					}))
					if how := ended(func() { request(h, "/") }); how == nil {
						t.Error("it ended")
					}
					if calls != tt.calls || *notified != 1 {
						t.Errorf("%d calls, told %d times", calls, *notified)
					}
					wantState(t, g, "", tt.state, 0)
					if s := g.Snapshot(""); s.InFlight != 0 {
						t.Errorf("%d probes are in flight", s.InFlight)
					}
				})
			})
		}
	}
}

// Who blocks in a listener holds up itself and nobody else, and goes on as if
// nothing had been.
func TestListenersThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g, notified := leaving(atomicbreaker.Open, func() { <-release })
		body := &requestBody{Reader: strings.NewReader("x")}
		rt := transport(breakerhttp.TransportConfig{Group: g, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			resp := answer(500)
			resp.Body = body
			return resp, nil
		})})
		done := make(chan *http.Response)
		go func() {
			resp, _ := rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil))
			done <- resp
		}()
		synctest.Wait()
		wantGets(t, rt, "http://example.com", -1, -1)
		wantState(t, g, "example.com:80", atomicbreaker.Open, 0)
		close(release)
		if resp := <-done; resp == nil || resp.Body != body || body.closed != 0 || *notified != 1 {
			t.Errorf("%v, body closed %d times, told %d times", resp, body.closed, *notified)
		}
	})
}

// A Classify that blocks keeps a probe's slot for a while, and not for ever, and
// what it says then is late.
func TestClassifiersThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, block := make(chan struct{}), true
		classify := func() atomicbreaker.Outcome {
			if block {
				<-release
				return atomicbreaker.Failure
			}
			return atomicbreaker.Success
		}
		settings := atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second, ProbeTimeout: 10 * time.Second}
		rt := transport(breakerhttp.TransportConfig{
			Group: group(settings), Base: answers(200),
			Classify: func(*http.Response, error) atomicbreaker.Outcome { return classify() },
		})
		m := middleware(breakerhttp.MiddlewareConfig{
			Group: group(settings), Classify: func(*http.Request, int) atomicbreaker.Outcome { return classify() },
		})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.(http.Hijacker).Hijack() }))
		serve := func() {
			h.ServeHTTP(&hijackable{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
		}
		rt.Group().RecordFailure("example.com:80")
		m.Group().RecordFailure("")
		time.Sleep(time.Second)
		go rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil))
		go serve()
		synctest.Wait()
		block = false
		wantGets(t, rt, "http://example.com", -1)
		time.Sleep(10*time.Second + 128*time.Millisecond)
		wantGets(t, rt, "http://example.com", 200)
		serve()
		close(release)
		synctest.Wait()
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, 0)
		wantState(t, m.Group(), "", atomicbreaker.Closed, 0)
		if a, b := rt.Group().Stats().Late, m.Group().Stats().Late; a != 1 || b != 1 {
			t.Errorf("%d and %d results were late", a, b)
		}
	})
}
