package breakerhttp_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// hijackable is an http.ResponseWriter whose connection can be taken once, and
// which notes that it was closed.
type hijackable struct {
	http.ResponseWriter
	net.Conn
	taken, closed int
}

func (w *hijackable) Write(p []byte) (int, error) { return w.ResponseWriter.Write(p) }

func (w *hijackable) Close() error { w.closed++; return nil }

func (w *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.taken++; w.taken > 1 {
		return nil, nil, http.ErrHijacked
	}
	return w, nil, nil
}

// unwrapped is an http.ResponseWriter that can nothing but say what it wraps.
type unwrapped struct{ http.ResponseWriter }

func (w unwrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// How handlers take connections.
var hijacks = map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
	"assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
	"controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
		return http.NewResponseController(w).Hijack()
	},
}

// A request whose connection is taken ends there, as a success, and what the
// handler does after that counts for nothing.
func TestHijackEndsTheCall(t *testing.T) {
	for how, hijack := range hijacks {
		for end, leave := range map[string]func(){
			"return": func() {}, "panic": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit,
		} {
			t.Run(how+" and "+end, func(t *testing.T) {
				m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
				m.Group().RecordFailure("")
				w := &hijackable{ResponseWriter: httptest.NewRecorder()}
				ended(func() {
					m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						if _, _, err := hijack(w); err != nil {
							t.Error(err)
						}
						if f := m.Group().Snapshot("").Failures; f != 0 {
							t.Errorf("%d failures while the connection lasts", f)
						}
						m.Group().RecordFailure("")
						if _, _, err := hijack(w); err != http.ErrHijacked {
							t.Error(err)
						}
						w.WriteHeader(500) // which is too late
						leave()
					})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
				})
				wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
				if w.closed != 0 {
					t.Error("the connection was closed")
				}
			})
		}
	}
}

// So it is with a server, also if the server's own writer is wrapped in one that
// only http.ResponseController sees through.
func TestHijackFromServers(t *testing.T) {
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"plain":   func(w http.ResponseWriter) http.ResponseWriter { return w },
		"wrapped": func(w http.ResponseWriter) http.ResponseWriter { return unwrapped{w} },
	} {
		t.Run(name, func(t *testing.T) {
			m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
			m.Group().RecordFailure("")
			done := make(chan struct{})
			h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer close(done)
				conn, buf, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if f := m.Group().Snapshot("").Failures; f != 0 {
					t.Errorf("%d failures while the connection lasts", f)
				}
				m.Group().RecordFailure("")
				buf.WriteString("HTTP/1.1 204 No Content\r\n\r\n")
				buf.Flush()
			}))
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
			wantGets(t, srv.Client().Transport, srv.URL, 204)
			<-done
			srv.Close()
			wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
		})
	}
}

// A breaker that is half-open closes with the handshake of a connection that
// lasts for long.
func TestHijackedProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := middleware(breakerhttp.MiddlewareConfig{Group: group(atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second, ProbeTimeout: 10 * time.Second,
		})})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Hijacker).Hijack()
			time.Sleep(5 * time.Minute)
		}))
		m.Group().RecordFailure("")
		time.Sleep(time.Second)
		go h.ServeHTTP(&hijackable{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
		synctest.Wait()
		wantState(t, m.Group(), "", atomicbreaker.Closed, 0)
		time.Sleep(time.Hour)
		if s := m.Group().Stats(); s.Late != 0 {
			t.Errorf("%d results were late", s.Late)
		}
	})
}

// Classify is asked about a 101 when the connection is taken, and not again.
func TestHijackClassify(t *testing.T) {
	for _, tt := range []struct {
		outcome  atomicbreaker.Outcome
		failures int
	}{{atomicbreaker.Success, 0}, {atomicbreaker.Ignored, 1}, {atomicbreaker.Failure, 2}, {77, 2}} {
		var asked []int
		m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5), Classify: func(_ *http.Request, status int) atomicbreaker.Outcome {
			asked = append(asked, status)
			return tt.outcome
		}})
		m.Group().RecordFailure("")
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Hijacker).Hijack()
			wantState(t, m.Group(), "", atomicbreaker.Closed, tt.failures)
			if len(asked) != 1 || asked[0] != 101 {
				t.Errorf("Classify was asked about %v", asked)
			}
		})).ServeHTTP(&hijackable{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
		wantState(t, m.Group(), "", atomicbreaker.Closed, tt.failures)
		if len(asked) != 1 {
			t.Errorf("Classify was asked about %v", asked)
		}
	}
}

// A handler that has answered before it takes the connection is what it has
// answered.
func TestHijackAfterAnswer(t *testing.T) {
	m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
	m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		w.(http.Hijacker).Hijack()
		wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
	})).ServeHTTP(&hijackable{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
	wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
}

// A connection that cannot be taken ends nothing.
func TestHijackThatFails(t *testing.T) {
	for name, w := range map[string]http.ResponseWriter{
		"taken":       &hijackable{ResponseWriter: httptest.NewRecorder(), taken: 1},
		"none":        httptest.NewRecorder(),
		"none within": unwrapped{httptest.NewRecorder()},
	} {
		m := middleware(breakerhttp.MiddlewareConfig{Group: tripAfter(5)})
		m.Group().RecordFailure("")
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _, err := http.NewResponseController(w).Hijack()
			if want := name != "taken"; err == nil || errors.Is(err, http.ErrNotSupported) != want {
				t.Errorf("%s: %v", name, err)
			}
			wantState(t, m.Group(), "", atomicbreaker.Closed, 1)
			w.WriteHeader(500)
		})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		wantState(t, m.Group(), "", atomicbreaker.Closed, 2)
	}
}

// User code that does not return while a connection is taken loses neither the
// connection nor the outcome.
func TestHijackAndLeave(t *testing.T) {
	for how, leave := range leaves {
		for where, tt := range map[string]struct {
			classify func(*http.Request, int) atomicbreaker.Outcome
			want     atomicbreaker.State
		}{
			"Classify": {func(*http.Request, int) atomicbreaker.Outcome { leave(); return 0 }, atomicbreaker.Open},
			"listener": {nil, atomicbreaker.Closed},
		} {
			t.Run(how+" in "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					notified := 0
					g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
						Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Second},
						OnStateChange: func(_ string, e atomicbreaker.Event) {
							if e.To == tt.want {
								if notified++; where == "listener" {
									leave()
								}
							}
						},
					})
					ended(func() { g.RecordFailure("") })
					time.Sleep(time.Second)
					notified = 0
					w := &hijackable{ResponseWriter: httptest.NewRecorder()}
					m := middleware(breakerhttp.MiddlewareConfig{Group: g, Classify: tt.classify})
					if how := ended(func() {
						m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							w.(http.Hijacker).Hijack()
							t.Error("it returned")
						})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
					}); how == nil {
						t.Error("it ended")
					}
					if w.closed != 1 || notified != 1 {
						t.Errorf("connection closed %d times, told %d times", w.closed, notified)
					}
					wantState(t, g, "", tt.want, 0)
				})
			})
		}
	}
}
