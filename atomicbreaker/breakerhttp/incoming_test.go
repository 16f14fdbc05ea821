package breakerhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// What handlers make of a body that does not come.
var disappointed = map[string]http.HandlerFunc{
	"blames the client": func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	},
	"blames itself": func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	},
	"panics": func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	},
	"parses a form": func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	},
	"echoes": func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	},
}

// firstRead is a body that tells when it is read for the first time.
type firstRead struct {
	io.ReadCloser
	begins func()
	once   sync.Once
}

func (b *firstRead) Read(p []byte) (int, error) {
	b.once.Do(b.begins)
	return b.ReadCloser.Read(p)
}

// Clients that announce a body, do not send it and leave say nothing about the handler.
func TestClientsThatDoNotSendAreIgnored(t *testing.T) {
	leave := map[string]func(t *testing.T, s *httptest.Server, arrived chan struct{}){
		"HTTP/1.1": func(t *testing.T, s *httptest.Server, arrived chan struct{}) {
			c, err := net.Dial("tcp", host(s))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nhalf")
			<-arrived
			c.Close()
		},
		"HTTP/2.0": func(t *testing.T, s *httptest.Server, arrived chan struct{}) {
			ctx, cancel := context.WithCancel(t.Context())
			body, _ := io.Pipe()
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			go func() { <-arrived; cancel() }()
			if resp, err := s.Client().Do(r); err == nil {
				resp.Body.Close()
			}
		},
	}
	for proto, serve := range servers {
		for name, handle := range disappointed {
			for _, limit := range []time.Duration{0, 10 * time.Millisecond} { // of an http.TimeoutHandler
				t.Run(fmt.Sprint(proto, " ", name, " ", limit), func(t *testing.T) {
					arrived, done := make(chan struct{}), make(chan struct{})
					m := middleware(breakerhttp.MiddlewareConfig{
						Group: tripAfter(5),
						Classify: func(r *http.Request, status int) atomicbreaker.Outcome {
							t.Errorf("Classify was asked about %d", status)
							return atomicbreaker.Failure
						},
					})
					m.Group().RecordFailure("")
					within := m.Handler(handle)
					var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						defer close(done)
						reading := make(chan struct{})
						r.Body = &firstRead{ReadCloser: r.Body, begins: func() { close(reading) }}
						go func() {
							<-reading
							if limit > 0 {
								<-r.Context().Done() // the client leaves after the deadline
							}
							close(arrived)
						}()
						within.ServeHTTP(w, r)
					})
					if limit > 0 {
						h = http.TimeoutHandler(h, limit, "")
					}
					s := serve(t, h.ServeHTTP)
					leave[proto](t, s, arrived)
					<-done
					wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
				})
			}
		}
	}
}

// sent is a request with a body that comes from a pipe.
func sent() (*http.Request, *io.PipeWriter) {
	body, client := io.Pipe()
	return httptest.NewRequest("POST", "/", body), client
}

// A deadline that passes while the body is read is the client's, and one that passes
// elsewhere is the handler's.
//
// Checks I4.
func TestDeadlinesAndBodies(t *testing.T) {
	read := func(r *http.Request) { io.ReadAll(r.Body) }
	hang := func(r *http.Request) { <-r.Context().Done() }
	const handlers, clients, nobodys = 2, 1, 0 // failures afterwards
	for name, tt := range map[string]struct {
		handle func(r *http.Request)
		client func(w *io.PipeWriter)
		want   int
	}{
		"the body does not come":     {read, func(*io.PipeWriter) {}, clients},
		"the body comes late":        {read, func(w *io.PipeWriter) { time.Sleep(time.Minute); w.Close() }, clients},
		"the client leaves late":     {read, func(w *io.PipeWriter) { time.Sleep(time.Minute); w.CloseWithError(errBoom) }, clients},
		"the client leaves in time":  {read, func(w *io.PipeWriter) { w.CloseWithError(errBoom) }, clients},
		"the body drips":             {read, func(w *io.PipeWriter) { drip(w) }, clients},
		"a reader is left behind":    {func(r *http.Request) { go read(r); hang(r) }, func(*io.PipeWriter) {}, clients},
		"the handler hangs":          {hang, func(w *io.PipeWriter) { w.Close() }, handlers},
		"it has read the body":       {func(r *http.Request) { read(r); hang(r) }, func(w *io.PipeWriter) { w.Close() }, handlers},
		"it reads too late":          {func(r *http.Request) { hang(r); read(r) }, func(w *io.PipeWriter) { time.Sleep(time.Minute); w.CloseWithError(errBoom) }, handlers},
		"a reader began too late":    {func(r *http.Request) { hang(r); go read(r); time.Sleep(time.Millisecond) }, func(*io.PipeWriter) {}, handlers},
		"a reader is left in time":   {func(r *http.Request) { go read(r); time.Sleep(time.Millisecond) }, func(*io.PipeWriter) {}, nobodys},
		"it is slow with each piece": {func(r *http.Request) { r.Body.Read(make([]byte, 1)); hang(r); read(r) }, func(w *io.PipeWriter) { drip(w) }, handlers},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
				m.Group().RecordFailure("")
				h := http.TimeoutHandler(m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tt.handle(r) })), time.Second, "")
				r, client := sent()
				go tt.client(client)
				h.ServeHTTP(httptest.NewRecorder(), r)
				time.Sleep(10 * time.Minute)
				client.CloseWithError(errBoom)
				synctest.Wait()
				wantState(t, m.Group(), "", atomicbreaker.Closed, tt.want)
			})
		})
	}
}

// drip sends a byte each 300 milliseconds, for some seconds.
func drip(w *io.PipeWriter) {
	for range 10 {
		time.Sleep(300 * time.Millisecond)
		io.WriteString(w, "x")
	}
}

// Without a deadline, what decides is whether the body broke before there was an
// answer, and who broke it.
func TestAnswersAndBrokenBodies(t *testing.T) {
	breaks := func(r *http.Request) { io.ReadAll(r.Body) }
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		want   int // failures, of which there was one
	}{
		"an answer of 500 after that": {func(w http.ResponseWriter, r *http.Request) { breaks(r); w.WriteHeader(500) }, 1},
		"an answer of 200 after that": {func(w http.ResponseWriter, r *http.Request) { breaks(r); w.WriteHeader(200) }, 1},
		"no answer":                   {func(w http.ResponseWriter, r *http.Request) { breaks(r) }, 1},
		"an answer of 500 before":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); breaks(r) }, 2},
		"an answer of 200 before":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200); breaks(r) }, 0},
		"a hint before":               {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(103); breaks(r); w.WriteHeader(500) }, 1},
		"a panic after an answer":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200); breaks(r); panic(errBoom) }, 1},
		"a panic without it":          {func(w http.ResponseWriter, r *http.Request) { panic(errBoom) }, 2},
		"the handler has closed it":   {func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); breaks(r); w.WriteHeader(500) }, 2},
		"the handler reads another": {func(w http.ResponseWriter, r *http.Request) {
			r.Body = io.NopCloser(broken{})
			breaks(r)
			w.WriteHeader(500)
		}, 2},
	} {
		m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
		m.Group().RecordFailure("")
		r, client := sent()
		client.CloseWithError(errBoom)
		ended(func() { m.Handler(tt.handle).ServeHTTP(httptest.NewRecorder(), r) })
		if s := m.Group().Snapshot(""); s.Failures != tt.want {
			t.Errorf("%s: %d failures, want %d", name, s.Failures, tt.want)
		}
	}
}

// A body that breaks frees the slot of a probe, and the next probe decides.
func TestProbesWhoseBodyBreaks(t *testing.T) {
	m := middleware(breakerhttp.MiddlewareConfig{})
	m.Group().HalfOpen("")
	r, client := sent()
	client.CloseWithError(errBoom)
	m.Handler(disappointed["blames itself"]).ServeHTTP(httptest.NewRecorder(), r)
	if s := m.Group().Snapshot(""); s.State != atomicbreaker.HalfOpen || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

// An http.MaxBytesHandler around a Middleware makes the server close the connection,
// which an http.MaxBytesReader within it cannot, and what it cuts off is Ignored.
func TestBodiesThatAreTooLarge(t *testing.T) {
	var m breakerhttp.Middleware
	m.Group().RecordFailure("")
	srv := serve(t, http.MaxBytesHandler(m.Handler(disappointed["blames itself"]), 10).ServeHTTP)
	resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1000)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 500 || !resp.Close {
		t.Errorf("%s, and the connection is closed: %v", resp.Status, resp.Close)
	}
	wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
}

// What handlers find out about a request, those around the Middleware see, Classify
// sees, and the server sees, which removes the files of a form. The body is the server's.
func TestRequestsComeBack(t *testing.T) {
	form := new(bytes.Buffer)
	w := multipart.NewWriter(form)
	part, _ := w.CreateFormFile("file", "name")
	io.WriteString(part, strings.Repeat("x", 1000))
	w.WriteField("field", "value")
	w.Close()
	var file string
	inner := http.NewServeMux()
	inner.HandleFunc("POST /{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		f, err := r.MultipartForm.File["file"][0].Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		file = f.(*os.File).Name()
	})
	classified := ""
	m := middleware(breakerhttp.MiddlewareConfig{Classify: func(r *http.Request, _ int) atomicbreaker.Outcome {
		classified = r.Pattern + r.FormValue("field")
		return atomicbreaker.Success
	}})
	h := m.Handler(inner)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := r.Body
		h.ServeHTTP(w, r)
		if r.Body != body || r.Pattern != "POST /{id}" || r.Form.Get("field") != "value" || r.PostForm.Get("field") != "value" {
			t.Errorf("body %v, pattern %q, form %v, %v", r.Body == body, r.Pattern, r.Form, r.PostForm)
		}
	})
	resp, err := srv.Client().Post(srv.URL+"/7", w.FormDataContentType(), form)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	srv.Close() // which waits until the server has done with the request
	if want := "POST /{id}value"; classified != want {
		t.Errorf("Classify saw %q, want %q", classified, want)
	}
	if _, err := os.Stat(file); file == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the form's file %q is still there: %v", file, err)
	}
}

// A client that waits to be asked for its body gets an answer without it.
func TestClientsThatWaitToSend(t *testing.T) {
	var m breakerhttp.Middleware
	srv := serve(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })).ServeHTTP)
	c, err := net.Dial("tcp", host(srv))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 403 || !resp.Close {
		t.Errorf("%v, %v", resp, err)
	}
}

// A request with a body costs its copy, and one without costs nothing more.
func TestIncomingAllocations(t *testing.T) {
	var m breakerhttp.Middleware
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Body != nil {
			r.Body.Read(nil)
		}
	}))
	var w http.ResponseWriter = plain{httptest.NewRecorder()}
	for want, body := range map[float64]io.ReadCloser{1: http.NoBody, 2: io.NopCloser(broken{})} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Body = body
		if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != want {
			t.Errorf("%T: %v allocations, want %v", body, got, want)
		}
	}
}
