package breakerhttp

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Middleware stops requests to handlers that keep failing, and answers them
// with 503, Service Unavailable.
//
// The zero Middleware has the default settings. A Middleware must not be copied after
// first use. All methods may be called concurrently.
type Middleware struct {
	_      atomics.NoCopy
	config MiddlewareConfig            // never changes
	own    atomicbreaker.Group[string] // used if config.Group is nil
}

// MiddlewareConfig holds the settings of a Middleware. The zero value means the defaults.
type MiddlewareConfig struct {
	// Group holds the breakers, by the results of Key. Several Middlewares may share it.
	// Nil means a Group of this Middleware's own with the default settings. Classify is
	// used in place of its Config.Classify.
	Group *atomicbreaker.Group[string]

	// Key returns the breaker of a request. Nil means the request's Pattern, the route that
	// an http.ServeMux has found. Around a whole mux the pattern is not known yet, and
	// there is one breaker for all routes; a Key that calls http.ServeMux.Handler separates
	// them. Keys that clients can choose, like paths, take memory for each key that fails.
	Key func(*http.Request) string

	// Classify says what the status of an answer means. A handler that wrote none has
	// answered with 200. Nil means ClassifyStatus. If it panics, the request has failed.
	//
	// It is called when the handler has returned, or when it takes over the connection,
	// which is a 101 if it has not answered before. If the handler panics or calls
	// runtime.Goexit before that, Classify is not called and the request has failed, also
	// with http.ErrAbortHandler, unless the client has gone.
	//
	// Nor is it called if the client has not sent the request's body, which is Ignored:
	// the body could not be read before there was an answer, or the request's context has
	// ended while the handler was reading it.
	Classify func(r *http.Request, status int) atomicbreaker.Outcome

	// Rejected answers requests that are not admitted. Retry-After is in the header then,
	// unless only a Reset helps. Nil answers with 503.
	Rejected http.Handler
}

// NewMiddleware returns a Middleware. No setting can be wrong.
func NewMiddleware(c MiddlewareConfig) *Middleware { return &Middleware{config: c} }

// Handler returns a handler that calls next for the requests that are admitted. It panics
// if next is nil.
//
// A handler that is too slow has failed, whether next runs within an
// http.TimeoutHandler or is one. Within one, the call lasts until next has returned.
//
// The http.ResponseWriter that next gets is an http.Flusher and an http.Hijacker only if
// an http.ResponseController can flush and hijack the server's own. It is an io.ReaderFrom,
// so files are sent without copying them. Through an http.ResponseController it can do all
// that the server's own can. It is no http.Pusher. An http.MaxBytesReader for it does not
// make the server close the connection; an http.MaxBytesHandler around the Handler does.
//
// If the request has a body, next gets a copy of the request, whose body can read and
// close and nothing else. Pattern and the parsed forms are copied back when next has
// returned. The time in which the client sends the body is part of the call for
// atomicbreaker.SlowRate.
//
// A request must not pass the same breaker twice, through two Handlers with one
// Group and key: a half-open breaker would reject its own probe.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		panic("breakerhttp: Middleware.Handler called with a nil handler")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(next, w, r) })
}

func (m *Middleware) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	key := r.Pattern
	if m.config.Key != nil {
		key = m.config.Key(r)
	}
	permit, err := m.Group().Allow(key)
	if err != nil {
		m.reject(w, r, key)
		return
	}
	r, in := watchIncoming(r)
	answer := &response{ResponseWriter: w, m: m, req: r, in: in, permit: permit}
	defer func() {
		in.handBack()
		answer.end(false)
	}()
	next.ServeHTTP(answer.handOn(), r)
	answer.begin(http.StatusOK)
	answer.end(true)
}

// reject answers a request that was not admitted.
func (m *Middleware) reject(w http.ResponseWriter, r *http.Request, key string) {
	// The breaker may have changed since, and then another answer is better. Zero
	// becomes one second, as it would call for a retry at once.
	if d := m.Group().Snapshot(key).RetryAfter; d != math.MaxInt64 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((d-1)/time.Second)+1, 10))
	}
	if m.config.Rejected != nil {
		m.config.Rejected.ServeHTTP(w, r)
		return
	}
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// Group returns the group of the Middleware's breakers, also if MiddlewareConfig.Group
// is nil. Through it the breakers can be read and changed while they are in use.
func (m *Middleware) Group() *atomicbreaker.Group[string] {
	if m.config.Group != nil {
		return m.config.Group
	}
	return &m.own
}

// A response notes how a request is answered on its way to the server's
// http.ResponseWriter, and reports it. It belongs to the goroutine of its handler.
type response struct {
	http.ResponseWriter
	m        *Middleware
	req      *http.Request
	in       *incoming // nil if the request has no body
	permit   atomicbreaker.GroupPermit[string]
	status   int  // of the final answer, 0 before it
	unread   bool // the body had failed before that
	reported bool // false → true once, before the permit is used
}

// Writers that handlers may use as an http.Flusher or http.Hijacker. Each is one pointer,
// so that an interface holds it without an allocation.
type (
	flusher         struct{ *response }
	hijacker        struct{ *response }
	flusherHijacker struct{ *response }
)

func (w flusher) Flush()                                               { w.FlushError() }
func (w hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error)        { return w.hijack() }
func (w flusherHijacker) Flush()                                       { w.FlushError() }
func (w flusherHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

// handOn returns the response as a writer that flushes and hijacks if the server's can.
func (w *response) handOn() http.ResponseWriter {
	flushes, hijacks := can[http.Flusher](w.ResponseWriter), can[http.Hijacker](w.ResponseWriter)
	switch {
	case flushes && hijacks:
		return flusherHijacker{w}
	case flushes:
		return flusher{w}
	case hijacks:
		return hijacker{w}
	}
	return w
}

// can reports whether an http.ResponseController finds a T in a writer.
func can[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapper.Unwrap()
	}
}

// begin notes a status, of which the first final one counts.
func (w *response) begin(status int) {
	informational := status < 200 && status != http.StatusSwitchingProtocols
	if w.status == 0 && !informational {
		w.status, w.unread = status, w.in.failed()
	}
}

// end reports the call, unless it has ended before: with its status, or with a failure if
// the handler has not returned. What the client is to blame for is Ignored.
func (w *response) end(returned bool) {
	if w.reported {
		return
	}
	w.reported = true
	switch {
	case w.unread || w.in.cutOff() || !returned && (gone(w.req) || w.in.failed()):
		w.permit.Cancel()
	case !returned:
		w.permit.Failure()
	case w.m.config.Classify != nil:
		report(w.permit, func() atomicbreaker.Outcome { return w.m.config.Classify(w.req, w.status) })
	default:
		w.permit.Report(ClassifyStatus(w.req, w.status))
	}
}

func (w *response) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *response) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom has answered only if there was anything to read: if the reader fails
// at once, the handler may still answer with an error.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	if n > 0 {
		w.begin(http.StatusOK)
	}
	return n, err
}

// FlushError is for http.ResponseController, which calls it before it unwraps.
func (w *response) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.begin(http.StatusOK)
	}
	return err
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// hijack ends the call, as the connection may last for long. User code that does not
// return takes the connection with it, so it is closed.
func (w *response) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buf, err
	}
	ended := false
	defer func() {
		if !ended {
			conn.Close()
		}
	}()
	w.begin(http.StatusSwitchingProtocols)
	w.end(true)
	ended = true
	return conn, buf, nil
}
