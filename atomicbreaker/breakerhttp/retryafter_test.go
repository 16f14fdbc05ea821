package breakerhttp_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// meet makes a request to a host that answers once, after a failure, and
// returns its breaker's state.
func meet(t *testing.T, c breakerhttp.TransportConfig, status int, fields ...string) (s atomicbreaker.Snapshot) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Base = answers(status, fields...)
		rt := transport(c)
		rt.Group().RecordFailure("example.com:80")
		wantGets(t, rt, "http://example.com", status)
		s = rt.Group().Snapshot("example.com:80")
	})
	return s
}

// Failures that say when to come again open the breaker for as long, up to a
// limit.
func TestRetryAfterOpens(t *testing.T) {
	for _, tt := range []struct {
		config atomicbreaker.Config
		limit  time.Duration
		after  string
		open   time.Duration
	}{
		// The limit is as long as the breaker would stay open.
		{atomicbreaker.Config{}, 0, "1", time.Second},
		{atomicbreaker.Config{}, 0, "60", time.Minute},
		{atomicbreaker.Config{}, 0, "61", time.Minute},
		{atomicbreaker.Config{}, 0, "99999999999999999999", time.Minute},
		{atomicbreaker.Config{OpenTimeout: 5 * time.Second}, 0, "4", 4 * time.Second},
		{atomicbreaker.Config{OpenTimeout: 5 * time.Second}, 0, "86400", 5 * time.Second},
		{atomicbreaker.Config{OpenTimeout: time.Hour}, 0, "86400", time.Hour},
		{atomicbreaker.Config{OpenTimeout: -1}, 0, "86400", 24 * time.Hour},
		{atomicbreaker.Config{OpenTimeout: -1}, 0, "99999999999999999999", 365 * 24 * time.Hour},

		// One of one's own.
		{atomicbreaker.Config{}, 5 * time.Minute, "240", 4 * time.Minute},
		{atomicbreaker.Config{}, 5 * time.Minute, "86400", 5 * time.Minute},
		{atomicbreaker.Config{}, time.Second, "86400", time.Second},
		{atomicbreaker.Config{}, time.Hour, "86400", 10 * time.Minute}, // MaxOpenTimeout
		{atomicbreaker.Config{OpenTimeout: -1}, time.Hour, "86400", time.Hour},

		// None but MaxOpenTimeout.
		{atomicbreaker.Config{}, math.MaxInt64, "300", 5 * time.Minute},
		{atomicbreaker.Config{}, math.MaxInt64, "86400", 10 * time.Minute},
		{atomicbreaker.Config{MaxOpenTimeout: time.Hour}, math.MaxInt64, "86400", time.Hour},
		{atomicbreaker.Config{OpenTimeout: -1}, math.MaxInt64, "86400", 24 * time.Hour},

		// What says nothing.
		{atomicbreaker.Config{}, 0, "0", 0},
		{atomicbreaker.Config{}, 0, "-5", 0},
		{atomicbreaker.Config{}, math.MaxInt64, "soon", 0},

		// Or what is not heard.
		{atomicbreaker.Config{}, -1, "300", 0},
		{atomicbreaker.Config{OpenTimeout: -1}, math.MinInt64, "86400", 0},
	} {
		// Settings are those of the key, wherever they come from.
		byKey := atomicbreaker.GroupConfig[string]{
			Default: atomicbreaker.Config{OpenTimeout: 7 * time.Second},
			PerKey:  func(string) atomicbreaker.Config { return tt.config },
		}
		for name, g := range map[string]atomicbreaker.GroupConfig[string]{"Default": {Default: tt.config}, "PerKey": byKey} {
			want, failures := atomicbreaker.Open, 0
			if tt.open == 0 {
				want, failures = atomicbreaker.Closed, 2
			}
			var s atomicbreaker.Snapshot
			synctest.Test(t, func(t *testing.T) {
				rt := transport(breakerhttp.TransportConfig{
					Base: answers(503, "Retry-After", tt.after), MaxRetryAfter: tt.limit, Group: atomicbreaker.MustNewGroup(g),
				})
				rt.Group().RecordFailure("example.com:80")
				wantGets(t, rt, "http://example.com", 503)
				s = rt.Group().Snapshot("example.com:80")
			})
			if s.State != want || s.RetryAfter != tt.open || s.Failures != failures {
				t.Errorf("%+v by %s: %+v", tt, name, s)
			}
		}
	}
	// The zero Transport has the defaults.
	if s := meet(t, breakerhttp.TransportConfig{}, 503, "Retry-After", "3600"); s.RetryAfter != atomicbreaker.DefaultOpenTimeout {
		t.Errorf("%+v", s)
	}
}

// tooMany counts 429 as a failure.
func tooMany(resp *http.Response, err error) atomicbreaker.Outcome {
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		return atomicbreaker.Failure
	}
	return breakerhttp.ClassifyResponse(resp, err)
}

// Which answers are looked at for it.
func TestRetryAfterOfWhat(t *testing.T) {
	counted := func(*http.Response, error) atomicbreaker.Outcome { return atomicbreaker.Failure }
	for name, tt := range map[string]struct {
		config   breakerhttp.TransportConfig
		status   int
		failures int // -1 if it is open
	}{
		"failure":            {breakerhttp.TransportConfig{}, 500, -1},
		"ignored header":     {breakerhttp.TransportConfig{MaxRetryAfter: -1}, 503, 2},
		"success":            {breakerhttp.TransportConfig{}, 404, 0},
		"redirect":           {breakerhttp.TransportConfig{}, 304, 0},
		"above 5xx":          {breakerhttp.TransportConfig{}, 600, 0},
		"too many":           {breakerhttp.TransportConfig{}, 429, 1},
		"too many, counted":  {breakerhttp.TransportConfig{Classify: tooMany}, 429, -1},
		"both":               {breakerhttp.TransportConfig{Classify: tooMany, MaxRetryAfter: -1}, 429, 2},
		"other, counted":     {breakerhttp.TransportConfig{Classify: tooMany}, 404, 0},
		"failure, counted":   {breakerhttp.TransportConfig{Classify: tooMany}, 503, -1},
		"one's own Classify": {breakerhttp.TransportConfig{Classify: counted}, 429, -1},
	} {
		s := meet(t, tt.config, tt.status, "Retry-After", "30")
		if tt.failures < 0 && (s.State != atomicbreaker.Open || s.RetryAfter != 30*time.Second) ||
			tt.failures >= 0 && (s.State != atomicbreaker.Closed || s.Failures != tt.failures) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := meet(t, breakerhttp.TransportConfig{Classify: tooMany}, 429); s.Failures != 2 {
		t.Errorf("without the header: %+v", s)
	}
}

// A date is as good as a number, and the server's clock need not be right.
func TestRetryAfterDate(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		theirs := time.Now().Add(-24 * time.Hour).UTC()
		w.Header().Set("Date", theirs.Format(http.TimeFormat))
		w.Header().Set("Retry-After", theirs.Add(5*time.Minute).Format(http.TimeFormat))
		w.WriteHeader(503)
	})
	rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, MaxRetryAfter: time.Hour})
	wantGets(t, rt, srv.URL, 503, -1)
	if s := rt.Group().Snapshot(host(srv)); s.RetryAfter > 5*time.Minute+time.Millisecond || s.RetryAfter < 4*time.Minute {
		t.Errorf("%+v", s)
	}
}

// One tenant's 429 shuts nobody out, and with a Key for each tenant it can be
// made to shut that one.
func TestTooManyRequestsOfOneTenant(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") == "greedy" {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(429)
		}
	})
	ask := func(rt http.RoundTripper, tenant string) int {
		return get(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("X-Tenant", tenant)
			return rt.RoundTrip(r)
		}), srv.URL)
	}
	byHost := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, Group: tripAfter(1)})
	byTenant := transport(breakerhttp.TransportConfig{
		Base: srv.Client().Transport, Classify: tooMany,
		Key: func(r *http.Request) string { return r.Header.Get("X-Tenant") },
	})
	for i, want := range []struct {
		rt     http.RoundTripper
		tenant string
		status int
	}{
		{byHost, "greedy", 429}, {byHost, "greedy", 429}, {byHost, "modest", 200},
		{byTenant, "greedy", 429}, {byTenant, "greedy", -1}, {byTenant, "modest", 200},
	} {
		if got := ask(want.rt, want.tenant); got != want.status {
			t.Errorf("%d: %s got %d, want %d", i, want.tenant, got, want.status)
		}
	}
}

// A probe that is one too many gives its slot back, and the next one decides.
func TestTooManyRequestsOfProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 429
		rt := transport(breakerhttp.TransportConfig{
			Group: group(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second}),
			Base:  roundTripper(func(*http.Request) (*http.Response, error) { return answer(status, "Retry-After", "9"), nil }),
		})
		rt.Group().RecordFailure("example.com:80")
		time.Sleep(time.Second)
		wantGets(t, rt, "http://example.com", 429, 429)
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.HalfOpen, 0)
		status = 200
		wantGets(t, rt, "http://example.com", 200)
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, 0)
	})
}

// PerKey is asked for the limit while nobody else has the answer.
func TestPerKeyThatLeaves(t *testing.T) {
	for how, leave := range leaves {
		asked := 0
		g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{PerKey: func(string) atomicbreaker.Config {
			if asked++; asked == 1 {
				leave()
			}
			return atomicbreaker.Config{}
		}})
		body := &requestBody{Reader: strings.NewReader("")}
		rt := transport(breakerhttp.TransportConfig{Group: g, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			resp := answer(503, "Retry-After", "1")
			resp.Body = body
			return resp, nil
		})})
		if end := ended(func() { rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil)) }); end == nil {
			t.Errorf("%s: it ended", how)
		}
		if body.closed != 1 {
			t.Errorf("%s: the body was closed %d times", how, body.closed)
		}
		wantState(t, g, "example.com:80", atomicbreaker.Closed, 1)
	}
}
