package breakerhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// half sends half of a body, and goes on when told.
func half(t *testing.T) (srv *httptest.Server, goOn chan func(http.ResponseWriter)) {
	goOn = make(chan func(http.ResponseWriter), 1)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "8")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		select {
		case f := <-goOn:
			f(w)
		case <-r.Context().Done():
		}
	}), goOn
}

// A body that breaks is a failure, one that does not is a success, and either
// is reported when the body ends and not before.
func TestWatchBody(t *testing.T) {
	type handler = chan<- func(http.ResponseWriter)
	for _, tt := range []struct {
		name   string
		end    func(goOn handler, cancel func(), resp *http.Response)
		failed bool
		kept   bool // the failure before is not cleared
	}{
		{"read", func(goOn handler, _ func(), resp *http.Response) {
			goOn <- func(w http.ResponseWriter) { io.WriteString(w, "half") }
			if b, err := io.ReadAll(resp.Body); string(b) != "halfhalf" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
		}, false, false},
		{"closed", func(_ handler, _ func(), resp *http.Response) { resp.Body.Close() }, false, false},
		{"broken", func(goOn handler, _ func(), resp *http.Response) {
			goOn <- func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
		}, true, true},
		{"cancelled", func(_ handler, cancel func(), resp *http.Response) {
			cancel()
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, goOn := half(t) // whose only request this is
			rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, WatchBody: true, Group: tripAfter(5)})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rt.Group().RecordFailure(host(srv))
			r, _ := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, 1)
			tt.end(goOn, cancel, resp)
			want := 0
			if tt.kept {
				want++
			}
			if tt.failed {
				want++
			}
			wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, want)

			// It has ended once, and does not end again.
			rt.Group().RecordFailure(host(srv))
			io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Body.Close()
			wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, want+1)
		})
	}
}

// Without WatchBody the header decides, and the body is the Base's own.
func TestHeaderDecides(t *testing.T) {
	srv, goOn := half(t)
	rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, Group: tripAfter(5)})
	rt.Group().RecordFailure(host(srv))
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", srv.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, 0)
	goOn <- func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("no error")
	}
	resp.Body.Close()
	wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, 0)
}

// Where there is no body to watch, or where it is a connection, the header
// decides too, and so it does if it is a failure.
func TestNothingToWatch(t *testing.T) {
	conn := struct{ io.ReadWriteCloser }{}
	for _, tt := range []struct {
		status   int
		body     io.ReadCloser
		failures int
	}{
		{200, http.NoBody, 0},
		{200, nil, 0},
		{101, conn, 0},
		{500, io.NopCloser(strings.NewReader("sorry")), 2},
	} {
		rt := transport(breakerhttp.TransportConfig{
			WatchBody: true, Group: tripAfter(5),
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: tt.status, Body: tt.body}, nil
			}),
		})
		rt.Group().RecordFailure("example.com:80")
		resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil))
		if err != nil || resp.Body != tt.body {
			t.Errorf("%d: %v with body %T", tt.status, err, resp.Body)
		}
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, tt.failures)
	}
}

// The error of a body is classified, with no response, and a Classify that
// panics loses nothing.
func TestClassifyBody(t *testing.T) {
	for _, verdict := range []string{"Success", "Failure", "Ignored", "panic"} {
		rt := transport(breakerhttp.TransportConfig{
			WatchBody: true, Group: tripAfter(5),
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				resp := answer(200)
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), broken{}))
				return resp, nil
			}),
			Classify: func(resp *http.Response, err error) atomicbreaker.Outcome {
				switch {
				case resp != nil:
					return atomicbreaker.Success
				case err != errBoom:
					t.Error(err)
				case verdict == "panic":
					panic(verdict)
				case verdict == "Failure":
					return atomicbreaker.Failure
				case verdict == "Ignored":
					return atomicbreaker.Ignored
				}
				return atomicbreaker.Success
			},
		})
		rt.Group().RecordFailure("example.com:80")
		resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil))
		if err != nil {
			t.Fatal(err)
		}
		how := ended(func() { io.ReadAll(resp.Body) })
		if (how == nil) != (verdict != "panic") {
			t.Errorf("%s: ended with %v", verdict, how)
		}
		want := map[string]int{"Success": 0, "Failure": 2, "Ignored": 1, "panic": 2}[verdict]
		wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, want)
	}
}

// broken is a reader that fails.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBoom }

// slowBody is a body whose Read waits for Close, and whose Close waits for
// the one who read to get its error.
type slowBody struct{ reading, closed, done chan struct{} }

func (b slowBody) Read([]byte) (int, error) {
	close(b.reading)
	<-b.closed
	return 0, errBoom
}

func (b slowBody) Close() error {
	close(b.closed)
	<-b.done
	return nil
}

// Close makes a Read of another goroutine fail, and that is not a failure.
func TestCloseWhileReading(t *testing.T) {
	b := slowBody{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	rt := transport(breakerhttp.TransportConfig{WatchBody: true, Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: b}, nil
	})})
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://example.com", nil))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.done)
		io.ReadAll(resp.Body)
	}()
	<-b.reading
	resp.Body.Close()
	wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, 0)
}
