package breakerhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// claims lists which interfaces of net/http a writer has that handlers look for.
func claims(w http.ResponseWriter) (s string) {
	if _, ok := w.(http.Flusher); ok {
		s += " Flush"
	}
	if _, ok := w.(http.Hijacker); ok {
		s += " Hijack"
	}
	return strings.TrimPrefix(s, " ")
}

// does lists what an http.ResponseController can do with a writer.
func does(w http.ResponseWriter) (errs []error) {
	c, soon := http.NewResponseController(w), time.Now().Add(time.Hour)
	errs = append(errs, c.SetReadDeadline(soon), c.SetWriteDeadline(soon), c.EnableFullDuplex(), c.Flush())
	return errs
}

// A Middleware's writer flushes and hijacks if the wrapped one does, and only then.
func TestWriterCanWhatTheServersCan(t *testing.T) {
	wraps := map[string]func(http.Handler) http.Handler{
		"server":         func(h http.Handler) http.Handler { return h },
		"TimeoutHandler": func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Hour, "too slow") },
	}
	run := map[string]func(http.Handler){
		"recorder": func(h http.Handler) { request(h, "/") },
	}
	for proto, start := range servers {
		run[proto] = func(h http.Handler) {
			srv := start(t, h.ServeHTTP)
			defer srv.Close()
			wantGets(t, srv.Client().Transport, srv.URL, 200)
		}
	}
	var m, outer breakerhttp.Middleware
	for where, run := range run {
		for how, wrap := range wraps {
			var claimed string
			var done []error
			look := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				claimed, done = claims(w), does(w)
				io.WriteString(w, "x")
			})
			run(wrap(look))
			want, wantDone := claimed, done
			for name, h := range map[string]http.Handler{"once": m.Handler(look), "twice": outer.Handler(m.Handler(look))} {
				claimed, done = "", nil
				run(wrap(h))
				if claimed != want || !reflect.DeepEqual(done, wantDone) {
					t.Errorf("%s in %s, %s:\n got %s: %v\nwant %s: %v", where, how, name, claimed, done, want, wantDone)
				}
			}
		}
	}
}

// Other writers lose nothing that handlers need, and gain nothing.
func TestWriterOfOthers(t *testing.T) {
	type (
		rw = http.ResponseWriter
		fl = http.Flusher
		hi = http.Hijacker
	)
	for _, tt := range []struct {
		w    http.ResponseWriter
		want string
	}{
		{struct{ rw }{}, ""},
		{unwrapped{struct{ rw }{}}, ""},
		{struct {
			rw
			fl
		}{}, "Flush"},
		{struct {
			rw
			hi
		}{}, "Hijack"},
		{struct {
			rw
			fl
			hi
		}{}, "Flush Hijack"},
		{unwrapped{struct {
			rw
			fl
		}{}}, "Flush"},
		{unwrapped{unwrapped{struct {
			rw
			hi
		}{}}}, "Hijack"},
	} {
		var m breakerhttp.Middleware
		got := ""
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = claims(w) })).
			ServeHTTP(tt.w, httptest.NewRequest("GET", "/", nil))
		if got != tt.want {
			t.Errorf("%T claims %q, want %q", tt.w, got, tt.want)
		}
	}
}

// failing is a writer whose Flush fails.
type failing struct{ http.ResponseWriter }

func (failing) Flush()            {}
func (failing) FlushError() error { return errBoom }

// An http.ResponseController gets through, also to a writer that is wrapped in
// one that only it sees through, and what it does is noted.
func TestWriterUnderController(t *testing.T) {
	for name, w := range map[string]http.ResponseWriter{
		"direct": httptest.NewRecorder(), "within": unwrapped{httptest.NewRecorder()}, "deep": unwrapped{unwrapped{httptest.NewRecorder()}},
	} {
		status := 0
		m := middleware(breakerhttp.MiddlewareConfig{Classify: func(_ *http.Request, s int) atomicbreaker.Outcome { status = s; return atomicbreaker.Success }})
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.WriteHeader(500) // which is too late
		})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if status != 200 {
			t.Errorf("%s: Classify got %d", name, status)
		}
	}
	for name, inner := range map[string]http.ResponseWriter{"direct": failing{}, "within": unwrapped{failing{}}} {
		var m breakerhttp.Middleware
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != errBoom {
				t.Errorf("%s: %v", name, err)
			}
		})).ServeHTTP(inner, httptest.NewRequest("GET", "/", nil))
	}
	// Whoever unwraps by hand gets to the bottom.
	bottom := httptest.NewRecorder()
	for _, inner := range []http.ResponseWriter{bottom, unwrapped{bottom}} {
		var m breakerhttp.Middleware
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok; u, ok = w.(interface{ Unwrap() http.ResponseWriter }) {
				w = u.Unwrap()
			}
			if w != bottom {
				t.Errorf("%T", w)
			}
		})).ServeHTTP(inner, httptest.NewRequest("GET", "/", nil))
	}
}

// bare is a writer that can flush with an error, and not without.
type bare struct {
	http.ResponseWriter
	flush func() error
}

func (w bare) FlushError() error { return w.flush() }

// A flush of a writer that has only FlushError is noted, and its error comes back.
func TestWriterWithFlushErrorOnly(t *testing.T) {
	for want, flush := range map[int]func(*httptest.ResponseRecorder) error{
		200: func(r *httptest.ResponseRecorder) error { r.Flush(); return nil },
		500: func(*httptest.ResponseRecorder) error { return http.ErrNotSupported },
	} {
		status, rec := 0, httptest.NewRecorder()
		m := middleware(breakerhttp.MiddlewareConfig{Classify: func(_ *http.Request, s int) atomicbreaker.Outcome { status = s; return atomicbreaker.Success }})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); (err == nil) != (want == 200) {
				t.Error(err)
			}
			w.WriteHeader(500) // which is too late after a flush
		}))
		inner := bare{rec, func() error { return flush(rec) }}
		for name, w := range map[string]http.ResponseWriter{
			"alone": inner, "that hijacks": struct {
				bare
				http.Hijacker
			}{bare: inner}, "that pushes": struct {
				bare
				http.Pusher
			}{bare: inner}, "within": unwrapped{inner},
		} {
			status, *rec = 0, *httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); status != want || rec.Code != want {
				t.Errorf("%s: the client got %d, Classify %d, want %d", name, rec.Code, status, want)
			}
		}
	}
}

// A writer that can nothing else writes, and says so.
func TestWriterOfNothing(t *testing.T) {
	status := 0
	m := middleware(breakerhttp.MiddlewareConfig{Classify: func(_ *http.Request, s int) atomicbreaker.Outcome { status = s; return atomicbreaker.Success }})
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
		if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
		w.WriteHeader(202) // as nothing was flushed
		io.WriteString(w, "a")
		io.Copy(w, strings.NewReader("b"))
	}))
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"plain":   func(w http.ResponseWriter) http.ResponseWriter { return plain{w} },
		"wrapped": func(w http.ResponseWriter) http.ResponseWriter { return unwrapped{plain{w}} },
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(wrap(w), httptest.NewRequest("GET", "/", nil))
		if w.Body.String() != "ab" || w.Code != 202 || status != 202 {
			t.Errorf("%s: wrote %q with %d, Classify got %d", name, w.Body, w.Code, status)
		}
	}
}
