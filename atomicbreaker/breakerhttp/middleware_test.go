package breakerhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

func middleware(c breakerhttp.MiddlewareConfig) *breakerhttp.Middleware {
	return breakerhttp.NewMiddleware(c)
}

// request calls a handler without a network.
func request(h http.Handler, path string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Result()
}

// A route that fails is answered for, and no other.
func TestRoutesFailAlone(t *testing.T) {
	m := middleware(breakerhttp.MiddlewareConfig{Group: group(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2), OpenTimeout: time.Minute})})
	calls := 0
	mux := http.NewServeMux()
	mux.Handle("GET /bad/{id}", m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "sorry", http.StatusBadGateway)
	})))
	mux.Handle("GET /good", m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })))
	srv := serve(t, mux.ServeHTTP)
	wantGets(t, srv.Client().Transport, srv.URL+"/bad/1", 502)
	wantGets(t, srv.Client().Transport, srv.URL+"/bad/2", 502, 503)
	wantGets(t, srv.Client().Transport, srv.URL+"/good", 200)
	wantState(t, m.Group(), "GET /bad/{id}", atomicbreaker.Open, 0)
	resp, err := srv.Client().Get(srv.URL + "/bad/3")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode != 503 || seconds < 30 || seconds > 61 || string(body) != "Service Unavailable\n" || calls != 2 {
		t.Errorf("%d, retry after %d, %q, %d calls", resp.StatusCode, seconds, body, calls)
	}
	if m.Group().Len() != 1 {
		t.Errorf("%d keys, of which one fails", m.Group().Len())
	}
}

// Retry-After is rounded up, is never zero, and is left out if it is not known.
func TestRejectionsSayWhenToComeAgain(t *testing.T) {
	for _, tt := range []struct {
		open, later time.Duration
		want        string
	}{
		{time.Minute, 0, "60"},
		{time.Minute, time.Second, "59"},
		{time.Minute, 59*time.Second - 1, "2"},
		{time.Minute, 59 * time.Second, "1"},
		{time.Minute, time.Minute - 1, "1"},
		{time.Millisecond, 0, "1"},
		{-1, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := middleware(breakerhttp.MiddlewareConfig{Group: group(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: tt.open})})
			m.Group().RecordFailure("")
			time.Sleep(tt.later)
			resp := request(m.Handler(http.NotFoundHandler()), "/")
			if got := resp.Header.Get("Retry-After"); resp.StatusCode != 503 || got != tt.want {
				t.Errorf("%v after %v: %d, Retry-After %q, want %q", tt.later, tt.open, resp.StatusCode, got, tt.want)
			}
		})
	}
}

// A handler that hangs as a probe keeps its place for a while, and not for ever.
func TestHungHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := middleware(breakerhttp.MiddlewareConfig{Group: group(atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second, ProbeTimeout: 10 * time.Second,
		})})
		release := make(chan struct{})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				<-release
				w.WriteHeader(500)
			}
		}))
		m.Group().RecordFailure("")
		time.Sleep(time.Second)
		hung := make(chan int)
		go func() { hung <- request(h, "/hang").StatusCode }()
		synctest.Wait()
		if resp := request(h, "/"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		time.Sleep(10*time.Second + 128*time.Millisecond)
		if resp := request(h, "/"); resp.StatusCode != 200 {
			t.Errorf("%d", resp.StatusCode)
		}
		close(release) // and its failure is late
		if code := <-hung; code != 500 {
			t.Error(code)
		}
		wantState(t, m.Group(), "", atomicbreaker.Closed, 0)
	})
}

// A handler that panics has failed, and goes on panicking.
func TestHandlersThatDoNotReturn(t *testing.T) {
	var m breakerhttp.Middleware
	for i, tt := range []struct {
		leave func()
		want  any
	}{
		{func() { panic(errBoom) }, errBoom},
		{func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		{runtime.Goexit, "Goexit"},
	} {
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			tt.leave()
		}))
		if how := ended(func() { request(h, "/") }); how != tt.want {
			t.Errorf("it ended with %v, want %v", how, tt.want)
		}
		wantState(t, m.Group(), "", atomicbreaker.Closed, i+1)
	}

	// Behind a server, clients notice.
	srv := serve(t, m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(errBoom) })).ServeHTTP)
	wantGets(t, srv.Client().Transport, srv.URL, 0, 0, 503)
}

// A client that has gone says nothing about the handler, whatever that makes
// of it.
func TestClientsThatHaveGoneAreIgnored(t *testing.T) {
	m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(1)})
	arrived, done := make(chan struct{}), make(chan any)
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		if r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "nobody there", 500)
	}))
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer func() { done <- recover() }()
		h.ServeHTTP(w, r)
	})
	for path, want := range map[string]any{"/": nil, "/panic": http.ErrAbortHandler} {
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+path, nil)
		go srv.Client().Do(r)
		<-arrived
		cancel()
		if how := <-done; how != want {
			t.Errorf("%s ended with %v", path, how)
		}
		wantState(t, m.Group(), "", atomicbreaker.Closed, 0)
	}
}

// One may answer rejections, name routes and judge answers oneself.
func TestMiddlewareSettings(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/a/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })
	mux.HandleFunc("/b/", func(http.ResponseWriter, *http.Request) {})
	m := middleware(breakerhttp.MiddlewareConfig{
		Group: tripAfter(1),
		Key: func(r *http.Request) string {
			_, pattern := mux.Handler(r)
			return pattern
		},
		Classify: func(r *http.Request, status int) atomicbreaker.Outcome {
			switch {
			case r.URL.Path == "/a/panic":
				panic("Classify")
			case r.URL.Path == "/a/ignored":
				return atomicbreaker.Ignored
			case status == 404:
				return 77 // none of the three
			}
			return atomicbreaker.Success
		},
		Rejected: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(299)
		}),
	})
	h := m.Handler(mux)
	for _, tt := range []struct {
		path string
		want int
	}{{"/a/ignored", 404}, {"/a/1", 404}, {"/a/2", 299}, {"/b/", 200}, {"/b/", 200}} {
		resp := request(h, tt.path)
		if after := resp.Header.Get("Retry-After"); resp.StatusCode != tt.want || (after != "") != (tt.want == 299) {
			t.Errorf("%s: %d, Retry-After %q", tt.path, resp.StatusCode, after)
		}
	}
	wantState(t, m.Group(), "/a/", atomicbreaker.Open, 0)
	m.Group().Reset("/a/")
	if how := ended(func() { request(h, "/a/panic") }); how != "Classify" {
		t.Errorf("it ended with %v", how)
	}
	wantState(t, m.Group(), "/a/", atomicbreaker.Open, 0)
	if how := ended(func() { m.Handler(nil) }); how != "breakerhttp: Middleware.Handler called with a nil handler" {
		t.Error(how)
	}
}

// The status that counts is the one that clients get.
func TestStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		handle func(w http.ResponseWriter)
		want   int
	}{
		"nothing":       {func(http.ResponseWriter) {}, 200},
		"Write":         {func(w http.ResponseWriter) { w.Write([]byte("x")); w.WriteHeader(500) }, 200},
		"WriteString":   {func(w http.ResponseWriter) { io.WriteString(w, "x"); w.WriteHeader(500) }, 200},
		"ReadFrom":      {func(w http.ResponseWriter) { io.Copy(w, io.LimitReader(strings.NewReader("x"), 1)); w.WriteHeader(500) }, 200},
		"Flush":         {func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.WriteHeader(500) }, 200},
		"WriteHeader":   {func(w http.ResponseWriter) { w.WriteHeader(503); w.WriteHeader(200) }, 503},
		"informational": {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(504) }, 504},
		"only that":     {func(w http.ResponseWriter) { w.WriteHeader(100) }, 200},
		"protocols":     {func(w http.ResponseWriter) { w.WriteHeader(101) }, 101},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			m := middleware(breakerhttp.MiddlewareConfig{Classify: func(_ *http.Request, status int) atomicbreaker.Outcome {
				got = status
				return atomicbreaker.Success
			}})
			srv := serve(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.handle(w) })).ServeHTTP)
			if resp, err := srv.Client().Get(srv.URL); err != nil || resp.StatusCode != tt.want {
				t.Errorf("the client got %v, %v", resp, err)
			} else {
				resp.Body.Close()
			}
			srv.Close()
			if got != tt.want {
				t.Errorf("Classify got %d, want %d", got, tt.want)
			}
		})
	}
}

// What the server's ResponseWriter can do, the wrapped one can.
func TestResponseWriter(t *testing.T) {
	saw := make(chan int, 1)
	m := middleware(breakerhttp.MiddlewareConfig{Classify: func(_ *http.Request, status int) atomicbreaker.Outcome {
		saw <- status
		return atomicbreaker.Success
	}})
	srv := serve(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(time.Now().Add(time.Hour)), c.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/flush" {
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
			if _, ok := w.(io.ReaderFrom); !ok {
				t.Error("no io.ReaderFrom")
			}
			return
		}
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		buf.WriteString("HTTP/1.1 204 No Content\r\n\r\n")
		buf.Flush()
	})).ServeHTTP)
	for path, want := range map[string][2]int{"/flush": {200, 200}, "/hijack": {204, 101}} {
		wantGets(t, srv.Client().Transport, srv.URL+path, want[0])
		if got := <-saw; got != want[1] {
			t.Errorf("%s: Classify got %d", path, got)
		}
	}
}

// plain is an http.ResponseWriter that can do nothing else.
type plain struct{ http.ResponseWriter }

// A request costs the wrapper of its http.ResponseWriter, whatever that can do.
func TestMiddlewareAllocations(t *testing.T) {
	var m breakerhttp.Middleware
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	w.WriteHeader(204)
	full := struct {
		http.ResponseWriter
		http.Flusher
		http.Hijacker
		io.ReaderFrom
		io.StringWriter
	}{ResponseWriter: w}
	for _, rw := range []http.ResponseWriter{w, plain{w}, unwrapped{w}, full} {
		if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(rw, r) }); got != 1 {
			t.Errorf("%T: %v allocations, want 1", rw, got)
		}
	}
}
