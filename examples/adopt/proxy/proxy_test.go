package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// hosts stands in for the network.
type hosts struct {
	mu     sync.Mutex
	down   map[string]bool
	slow   map[string]chan struct{} // requests for "slow" are answered when it is closed
	called map[string]int
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	name := r.URL.Host
	h.called[name]++
	down, slow := h.down[name], h.slow[name]
	h.mu.Unlock()
	if slow != nil && r.URL.Path == "/slow" {
		<-slow
		down = false
	}
	answer := httptest.NewRecorder()
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case r.URL.Path == "/reset":
		return nil, errors.New("connection reset")
	case down:
		answer.WriteHeader(http.StatusInternalServerError)
	}
	return answer.Result(), nil
}

func (h *hosts) set(host string, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down[host] = down
}

func (h *hosts) calls(host string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called[host]
}

func settings(host string) Settings {
	if host == "strict" {
		return Settings{Failures: 1, Open: 10 * time.Second}
	}
	return Settings{Failures: 3, Open: time.Minute}
}

// both runs a test in a bubble with each transport.
func both(t *testing.T, f func(t *testing.T, h *hosts, transport http.RoundTripper, get func(path string) int)) {
	for name, make := range map[string]func(http.RoundTripper, func(string) Settings) http.RoundTripper{
		"before": func(b http.RoundTripper, s func(string) Settings) http.RoundTripper { return NewBefore(b, s) },
		"after":  func(b http.RoundTripper, s func(string) Settings) http.RoundTripper { return NewAfter(b, s) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hosts{down: map[string]bool{}, slow: map[string]chan struct{}{}, called: map[string]int{}}
				transport := make(h, settings)
				proxy := New(transport)
				f(t, h, transport, func(path string) int {
					answer := httptest.NewRecorder()
					proxy.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
					return answer.Code
				})
			})
		})
	}
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestHostThatIsDown(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, _ http.RoundTripper, get func(string) int) {
		h.set("down", true)
		for range 3 {
			expect(t, "a host that is down", get("/down/"), 500)
		}
		expect(t, "its open breaker", get("/down/"), 503)
		expect(t, "calls of the host", h.calls("down"), 3)
		expect(t, "another host", get("/web/"), 200)

		time.Sleep(time.Minute)
		expect(t, "a probe", get("/down/"), 500)
		expect(t, "after the probe", get("/down/"), 503)
		h.set("down", false)
		time.Sleep(time.Minute)
		for range 5 {
			expect(t, "a host that is up again", get("/down/"), 200)
		}
	})
}

func TestSettingsOfAHost(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, _ http.RoundTripper, get func(string) int) {
		expect(t, "a connection that breaks", get("/strict/reset"), 502)
		expect(t, "after one failure", get("/strict/"), 503)
		time.Sleep(10 * time.Second)
		expect(t, "after ten seconds", get("/strict/"), 200)
	})
}

func TestSuccessesInBetween(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, _ http.RoundTripper, get func(string) int) {
		for range 10 {
			for _, path := range []string{"/web/reset", "/web/reset", "/web/"} {
				get(path)
			}
		}
		expect(t, "two failures in a row", get("/web/"), 200)
	})
}

func TestClientThatLeaves(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, transport http.RoundTripper, get func(string) int) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		for range 5 {
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://web/", nil)
			transport.RoundTrip(r)
		}
		expect(t, "the host", get("/web/"), 200)
	})
}

func TestManyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, _ http.RoundTripper, get func(string) int) {
		h.set("down", true)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					get("/down/")
					expect(t, "a host that is up", get("/web/"), 200)
				}
			})
		}
		all.Wait()
		expect(t, "a host that is down", get("/down/"), 503)
	})
}

// What the first way does wrong.

// either returns what is expected of the first way, or of the second.
func either[T any](transport http.RoundTripper, before, after T) T {
	if _, ok := transport.(*Before); ok {
		return before
	}
	return after
}

// A success that was admitted before the host went down closes its breaker.
func TestLateSuccess(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, transport http.RoundTripper, get func(string) int) {
		h.slow["down"] = make(chan struct{})
		var late sync.WaitGroup
		late.Go(func() { get("/down/slow") })
		synctest.Wait()
		h.set("down", true)
		for range 3 {
			get("/down/")
		}
		expect(t, "the open breaker", get("/down/"), 503)
		close(h.slow["down"])
		late.Wait()
		expect(t, "the host after the late success", get("/down/"), either(transport, 500, 503))
	})
}

// When the open time is over, all clients try the host at once.
func TestAllProbeAtOnce(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, transport http.RoundTripper, get func(string) int) {
		get("/strict/reset")
		time.Sleep(10 * time.Second)
		before := h.calls("strict")
		h.slow["strict"] = make(chan struct{})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { get("/strict/slow") })
		}
		synctest.Wait()
		expect(t, "probes", h.calls("strict")-before, either(transport, 100, 1))
		close(h.slow["strict"])
		all.Wait()
	})
}

// Clients name hosts, and each stays in the map for ever.
func TestHealthyHostsTakeMemory(t *testing.T) {
	both(t, func(t *testing.T, h *hosts, transport http.RoundTripper, get func(string) int) {
		for i := range 1000 {
			get(fmt.Sprintf("/host-%d/", i))
		}
		kept := 0
		switch transport := transport.(type) {
		case *Before:
			kept = len(transport.hosts)
		case *breakerhttp.Transport:
			kept = transport.Group().Len()
		}
		expect(t, "hosts kept", kept, either(transport, 1000, 0))
	})
}
