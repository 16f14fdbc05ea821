package breakerhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// A server that refuses requests works.
//
// Reported bug 61, gobreaker, rubyist/circuitbreaker: the caller's errors are failures.
func TestT61_RefusalsAreSuccesses(t *testing.T) {
	var s status
	srv := serve(t, s.serve)
	rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, Group: tripAfter(2)})
	for _, code := range []int{400, 401, 403, 404, 408, 409, 501, 505, 304, 204} {
		s.Store(503)
		wantGets(t, rt, srv.URL, 503)
		s.Store(int64(code))
		wantGets(t, rt, srv.URL, code)
		wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, 0)
	}
}

// A caller who changes its mind says nothing about the server, whatever error
// its context makes of that.
//
// Reported bug 61, gobreaker, rubyist/circuitbreaker: the caller's errors are failures.
func TestCancelledRequestsAreIgnored(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, Group: tripAfter(1)})
	for _, cause := range []error{nil, errBoom} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		done := make(chan error)
		go func() {
			_, err := rt.RoundTrip(r)
			done <- err
		}()
		<-arrived
		cancel(cause)
		if err := <-done; err == nil {
			t.Error("a cancelled request has succeeded")
		}
		<-gone
		wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, 0)

		// What is over before it begins is not sent, and closes its body.
		r, body := post(t, srv.URL)
		if _, err := rt.RoundTrip(r.WithContext(ctx)); err != context.Cause(ctx) || body.closed != 1 {
			t.Errorf("%v, want %v; body closed %d times", err, context.Cause(ctx), body.closed)
		}
	}
}

// A request that is over before it begins takes no slot and is not sent.
func TestEndedRequestsAreNotSent(t *testing.T) {
	sent := 0
	rt := transport(breakerhttp.TransportConfig{Base: roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, errBoom
	})})
	ctx, cancel := context.WithDeadline(t.Context(), time.Time{})
	defer cancel()
	r, body := post(t, "http://example.com")
	if _, err := rt.RoundTrip(r.WithContext(ctx)); err != context.DeadlineExceeded || sent != 0 || body.closed != 1 {
		t.Errorf("%v, sent %d times, body closed %d times", err, sent, body.closed)
	}
	wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, 0)
}

// A server that does not answer in time has failed, whoever measures it.
func TestHungRequestsFail(t *testing.T) {
	var came atomic.Int32
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { came.Add(1); <-r.Context().Done() })
	rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, Group: tripAfter(2)})
	hang := func(request func(brief time.Duration) error) {
		before := rt.Group().Snapshot(host(srv)).Failures
		// On a busy machine the time may be over before the request is sent, which says nothing.
		for brief, n := 20*time.Millisecond, came.Load(); brief < time.Minute; brief *= 2 {
			if request(brief) == nil {
				t.Error("no error")
			}
			if rt.Group().Snapshot(host(srv)).Failures != before || came.Load() > n {
				break
			}
		}
	}
	hang(func(brief time.Duration) error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), brief, errBoom)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		_, err := rt.RoundTrip(r)
		return err
	})
	wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, 1)
	hang(func(brief time.Duration) error {
		_, err := (&http.Client{Transport: rt, Timeout: brief}).Get(srv.URL)
		return err
	})
	wantState(t, rt.Group(), host(srv), atomicbreaker.Open, 0)
}

// A probe that never ends keeps its place for a while, and not for ever.
func TestHungProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, hang := make(chan struct{}), false
		rt := transport(breakerhttp.TransportConfig{
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				if hang {
					<-release
					return nil, errBoom
				}
				return answer(200), nil
			}),
			Group: group(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second, ProbeTimeout: 10 * time.Second}),
		})
		const url, key = "http://example.com:81", "example.com:81"
		rt.Group().RecordFailure(key)
		wantGets(t, rt, url, -1)
		time.Sleep(time.Second)
		hang = true
		var wg sync.WaitGroup
		wg.Go(func() { get(t, rt, url) })
		synctest.Wait()
		hang = false
		wantState(t, rt.Group(), key, atomicbreaker.HalfOpen, 0)
		wantGets(t, rt, url, -1)
		time.Sleep(10*time.Second + 128*time.Millisecond)
		wantGets(t, rt, url, 200)
		close(release) // and its failure is late
		wg.Wait()
		wantState(t, rt.Group(), key, atomicbreaker.Closed, 0)
	})
}

func TestRefusedConnectionsFail(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	base := new(http.Transport)
	rt := transport(breakerhttp.TransportConfig{Base: base, Group: tripAfter(2)})
	wantGets(t, rt, srv.URL, 0, 0, -1)
}

// A Classify of one's own decides, and sees what came.
func TestClassify(t *testing.T) {
	var verdict atomicbreaker.Outcome
	var saw []any
	rt := transport(breakerhttp.TransportConfig{
		Group: tripAfter(10),
		Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/error" {
				return nil, errBoom
			}
			return answer(200), nil
		}),
		Classify: func(resp *http.Response, err error) atomicbreaker.Outcome {
			saw = append(saw, resp != nil, err)
			return verdict
		},
	})
	for _, tt := range []struct {
		path     string
		verdict  atomicbreaker.Outcome
		failures int
	}{
		{"/", atomicbreaker.Failure, 1},
		{"/error", atomicbreaker.Failure, 2},
		{"/error", atomicbreaker.Ignored, 2},
		{"/", atomicbreaker.Ignored, 2},
		{"/", 77, 3}, // none of the three
		{"/error", atomicbreaker.Success, 0},
	} {
		verdict, saw = tt.verdict, nil
		get(t, rt, "http://example.com"+tt.path)
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, tt.failures)
		if failed := tt.path == "/error"; len(saw) != 2 || saw[0] == failed || (saw[1] != nil) != failed {
			t.Errorf("Classify saw %v", saw)
		}
	}
	broken := transport(breakerhttp.TransportConfig{Group: tripAfter(10), Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, nil
	})})
	if resp, err := broken.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil)); resp != nil || err != nil {
		t.Error(resp, err)
	}
	wantState(t, broken.Group(), "example.com:80", atomicbreaker.Closed, 1)
}
