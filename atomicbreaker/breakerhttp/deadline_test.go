package breakerhttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// A request whose time is over has failed, whatever the handler then makes of
// it: behind an http.TimeoutHandler nobody gets that.
func TestDeadlinesAreFailures(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"gives up":      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"says so":       func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done(); w.WriteHeader(504) },
		"is late":       func(w http.ResponseWriter, _ *http.Request) { time.Sleep(time.Minute); w.Write([]byte("x")) },
		"panics":        func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
		"was too early": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
				h := http.TimeoutHandler(m.Handler(handle), time.Second, "too slow")
				for i := range 3 {
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != 503 {
						t.Errorf("the client got %d", w.Code)
					}
					time.Sleep(15 * time.Minute) // until the handler has returned
					synctest.Wait()
					wantState(t, m.Group(), "", atomicbreaker.Closed, i+1)
				}
			})
		})
	}
}

// A handler that is in time is what its status says.
//
// Checks I4.
func TestDeadlinesThatAreMet(t *testing.T) {
	m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
	m.Group().RecordFailure("")
	h := http.TimeoutHandler(m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), time.Hour, "too slow")
	if resp := request(h, "/"); resp.StatusCode != 200 {
		t.Error(resp.StatusCode)
	}
	wantState(t, m.Group(), "", atomicbreaker.Closed, 0)
}
