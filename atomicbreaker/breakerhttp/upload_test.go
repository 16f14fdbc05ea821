package breakerhttp_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// serveHTTP2 is serve over HTTP/2. The server's client speaks that.
func serveHTTP2(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// servers start one for each version of HTTP.
var servers = map[string]func(*testing.T, http.HandlerFunc) *httptest.Server{"HTTP/1.1": serve, "HTTP/2.0": serveHTTP2}

// keyOf is the key of a server of either version.
func keyOf(s *httptest.Server) string { return s.URL[strings.LastIndex(s.URL, "/")+1:] }

// Whoever cannot read what it wants to send says nothing about the host,
// whatever the user's Classify makes of the error, which is not asked.
func TestUploadsThatFail(t *testing.T) {
	for name, tt := range map[string]struct {
		body   func() io.Reader
		length int64
	}{
		"at once":   {func() io.Reader { return broken{} }, -1},
		"of length": {func() io.Reader { return broken{} }, 10},
		"halfway":   {func() io.Reader { return io.MultiReader(strings.NewReader("half"), broken{}) }, 10},
		"pipe": {func() io.Reader {
			r, w := io.Pipe()
			go func() {
				io.WriteString(w, "half")
				w.CloseWithError(errBoom)
			}()
			return r
		}, -1},
		"limited":   {func() io.Reader { return http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("too much")), 4) }, -1},
		"too short": {func() io.Reader { return io.LimitReader(strings.NewReader("half"), 10) }, 10},
		"too long":  {func() io.Reader { return io.MultiReader(strings.NewReader("too much")) }, 4},
		"of memory": {func() io.Reader { return strings.NewReader("half") }, 10},
	} {
		for proto, serve := range servers {
			t.Run(name+" "+proto, func(t *testing.T) {
				srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						panic(http.ErrAbortHandler) // the client is to see its own error
					}
					<-r.Context().Done() // what is too long is not noticed here
				})
				rt := transport(breakerhttp.TransportConfig{
					Base: srv.Client().Transport, Group: tripAfter(5),
					Classify: func(*http.Response, error) atomicbreaker.Outcome {
						t.Error("Classify was asked")
						return atomicbreaker.Failure
					},
				})
				rt.Group().RecordFailure(keyOf(srv))
				r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, tt.body())
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = tt.length
				if resp, err := rt.RoundTrip(r); err == nil {
					t.Errorf("no error, but %s", resp.Status)
				}
				wantState(t, rt.Group(), keyOf(srv), atomicbreaker.Closed, 1)
			})
		}
	}
}

// A proxy limits uploads, and those who exceed the limit shut nobody out.
func TestLimitedUploadsThroughProxy(t *testing.T) {
	back := serve(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	u, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	rt := transport(breakerhttp.TransportConfig{Base: back.Client().Transport, Group: tripAfter(1)})
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.Transport = rt
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	for _, length := range []int{999, 5000, 1000} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", io.MultiReader(bytes.NewReader(make([]byte, length))))
		r.Body = http.MaxBytesReader(w, r.Body, 1000)
		if proxy.ServeHTTP(w, r); (w.Code == 200) != (length <= 1000) {
			t.Errorf("%d bytes: %d", length, w.Code)
		}
		wantState(t, rt.Group(), host(back), atomicbreaker.Closed, 0)
	}
}

// once is a body that notes what it was asked for, and fails once it is closed.
type once struct {
	io.Reader
	closed bool
}

func (b *once) Close() error { b.closed = true; return nil }

func (b *once) Read(p []byte) (int, error) {
	if b.closed {
		return 0, io.ErrClosedPipe
	}
	return b.Reader.Read(p)
}

// What decides is a response if there is one, and otherwise whether a body
// failed before it was closed.
func TestWhatUploadsMean(t *testing.T) {
	for name, tt := range map[string]struct {
		body     io.Reader
		again    func() (io.ReadCloser, error) // GetBody
		base     func(*http.Request) (*http.Response, error)
		failures int
	}{
		"read, and the host fails": {strings.NewReader("data"), nil, func(r *http.Request) (*http.Response, error) {
			io.ReadAll(r.Body)
			r.Body.Close()
			return nil, errBoom
		}, 2},
		"not read": {broken{}, nil, func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return nil, errBoom
		}, 2},
		"closed, and then it fails": {strings.NewReader("data"), nil, func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			if _, err := r.Body.Read(make([]byte, 1)); err != io.ErrClosedPipe {
				t.Error(err)
			}
			return nil, errBoom
		}, 2},
		"it fails": {broken{}, nil, func(r *http.Request) (*http.Response, error) {
			io.ReadAll(r.Body)
			return nil, errors.New("of its own")
		}, 1},
		"it fails, but there is an answer": {broken{}, nil, func(r *http.Request) (*http.Response, error) {
			io.ReadAll(r.Body)
			return answer(500), nil
		}, 2},
		"it fails, but there is a good answer": {broken{}, nil, func(r *http.Request) (*http.Response, error) {
			io.ReadAll(r.Body)
			return answer(400), nil
		}, 0},
		"it fails the second time": {strings.NewReader("data"), func() (io.ReadCloser, error) {
			return io.NopCloser(broken{}), nil
		}, func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			body, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			io.ReadAll(body)
			return nil, errors.New("of its own")
		}, 1},
		"there is no second time": {strings.NewReader("data"), func() (io.ReadCloser, error) {
			return nil, errBoom
		}, func(r *http.Request) (*http.Response, error) {
			if _, err := r.GetBody(); err != errBoom {
				t.Error(err)
			}
			return nil, errors.New("of its own")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rt := transport(breakerhttp.TransportConfig{Group: tripAfter(5), Base: roundTripper(tt.base)})
			rt.Group().RecordFailure("example.com:80")
			r := httptest.NewRequest("POST", "http://example.com", &once{Reader: tt.body})
			r.GetBody = tt.again
			rt.RoundTrip(r)
			wantState(t, rt.Group(), "example.com:80", atomicbreaker.Closed, tt.failures)
		})
	}
}

// The answer breaks because the upload has, and that is no failure either.
func TestUploadsThatFailAfterTheHeader(t *testing.T) {
	for proto, serve := range servers {
		t.Run(proto, func(t *testing.T) {
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				c, half := http.NewResponseController(w), make([]byte, 4)
				c.EnableFullDuplex()
				c.Flush()
				io.ReadFull(r.Body, half)
				w.Write(half)
				c.Flush()
				io.Copy(io.Discard, r.Body)
				panic(http.ErrAbortHandler)
			})
			rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, WatchBody: true, Group: tripAfter(5)})
			rt.Group().RecordFailure(keyOf(srv))
			body, w := io.Pipe()
			r, _ := http.NewRequestWithContext(t.Context(), "POST", srv.URL, body)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, "half")
			if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
				t.Error(err)
			}
			w.CloseWithError(errBoom)
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("no error")
			}
			wantState(t, rt.Group(), keyOf(srv), atomicbreaker.Closed, 1)
			resp.Body.Close()
		})
	}
}

// A body may be read after RoundTrip has returned, and whatever becomes of it
// then says nothing.
func TestUploadsThatOutlastTheCall(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		c.EnableFullDuplex()
		w.WriteHeader(500)
		c.Flush()
	})
	rt := transport(breakerhttp.TransportConfig{Base: srv.Client().Transport, Group: tripAfter(5)})
	for i := range 3 {
		body, w := io.Pipe()
		r, _ := http.NewRequestWithContext(t.Context(), "POST", srv.URL, body)
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		w.CloseWithError(errBoom)
		resp.Body.Close()
		wantState(t, rt.Group(), host(srv), atomicbreaker.Closed, i+1)
	}
}

// The caller's request stays as it is, and is that of the response.
func TestUploadsLeaveTheRequestAlone(t *testing.T) {
	var sent *http.Request
	rt := transport(breakerhttp.TransportConfig{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r
		resp := answer(200)
		resp.Request = r
		return resp, nil
	})})
	for name, tt := range map[string]struct {
		body io.Reader
		same bool // Base gets the caller's request
	}{
		"nil":           {nil, true},
		"NoBody":        {http.NoBody, true},
		"bytes.Reader":  {bytes.NewReader([]byte("data")), true},
		"bytes.Buffer":  {bytes.NewBufferString("data"), true},
		"string.Reader": {strings.NewReader("data"), true},
		"other":         {io.LimitReader(strings.NewReader("data"), 10), false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://example.com", tt.body)
		if err != nil {
			t.Fatal(err)
		}
		body := r.Body
		resp, err := rt.RoundTrip(r)
		if err != nil || resp.Request != r || r.Body != body || (sent == r) != tt.same || (sent.Body == body) != tt.same {
			t.Errorf("%s: %v, Base got the request: %v, its body: %v", name, err, sent == r, sent.Body == body)
		}
	}
}

// What is in memory is sent without an allocation more.
func TestUploadAllocations(t *testing.T) {
	resp := answer(200)
	rt := transport(breakerhttp.TransportConfig{Base: roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil })})
	for name, tt := range map[string]struct {
		body io.Reader
		want float64
	}{"memory": {strings.NewReader("data"), 0}, "other": {broken{}, 3}} {
		r, _ := http.NewRequest("POST", "http://example.com:8080/", tt.body)
		if got := testing.AllocsPerRun(100, func() { rt.RoundTrip(r) }); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tt.want)
		}
	}
}
