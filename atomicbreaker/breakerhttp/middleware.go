package breakerhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Middleware stops requests to handlers that keep failing, and answers them
// with 503, Service Unavailable. See MiddlewareConfig for its settings.
//
// The zero Middleware has breakers with the default settings. A Middleware
// must not be copied after first use. All methods may be called concurrently.
type Middleware struct {
	_      atomics.NoCopy
	config MiddlewareConfig            // never changes
	own    atomicbreaker.Group[string] // used if config.Group is nil
}

// MiddlewareConfig holds the settings of a Middleware. The zero value means
// the defaults.
type MiddlewareConfig struct {
	// Group holds the breakers, by the results of Key. Several Middlewares may
	// share a Group. Nil means a Group of this Middleware's own with the default
	// settings. Classify is used in place of its Config.Classify.
	Group *atomicbreaker.Group[string]

	// Key returns the breaker of a request. Nil means the request's Pattern, the
	// route that an http.ServeMux has found: one breaker for each handler that is
	// registered through Handler. Around a whole mux the pattern is not known yet,
	// and there is one breaker for all routes; a Key that calls
	// http.ServeMux.Handler separates them. Keys that clients can choose, like
	// paths, take memory for each key that fails.
	Key func(*http.Request) string

	// Classify says what the status of an answer means. A handler that wrote
	// none has answered with 200. Nil means ClassifyStatus. If it panics, the
	// request has failed.
	//
	// It is called when the handler has returned, or when it takes over the
	// connection, which is a 101 if it has not answered before. The later use of
	// the connection is not part of the call. If the handler panics or calls
	// runtime.Goexit before that, Classify is not called and the request has
	// failed, also with http.ErrAbortHandler, unless the client has gone.
	//
	// Nor is it called if the client has not sent the request's body, which is
	// Ignored: the body could not be read before there was an answer, or the
	// request's context has ended while the handler was reading it.
	Classify func(r *http.Request, status int) atomicbreaker.Outcome

	// Rejected answers requests that are not admitted. Retry-After is in the
	// header then, unless only a Reset helps. Nil answers with 503.
	Rejected http.Handler
}

// NewMiddleware returns a Middleware. The error is always nil; it is for settings
// that can be wrong.
func NewMiddleware(c MiddlewareConfig) (*Middleware, error) {
	return &Middleware{config: c}, nil
}

// MustNewMiddleware is like NewMiddleware but panics if a setting is wrong.
func MustNewMiddleware(c MiddlewareConfig) *Middleware {
	m, err := NewMiddleware(c)
	if err != nil {
		panic(err)
	}
	return m
}

// Handler returns a handler that calls next for the requests that are
// admitted. It panics if next is nil.
//
// A handler that is too slow has failed, whether next runs within an
// http.TimeoutHandler or is one. Within one, the call lasts until next has returned.
//
// The http.ResponseWriter that next gets is an http.Flusher, http.Hijacker,
// http.Pusher, io.ReaderFrom, io.StringWriter and http.CloseNotifier if the
// server's own is, and only then: over HTTP/1 and HTTP/2, within an
// http.TimeoutHandler and with an httptest.ResponseRecorder. Around other writers it
// is an http.Flusher and an http.Hijacker if they are, and never more than they are,
// except that an http.Flusher always has FlushError. Through an
// http.ResponseController it can do all that they can. But an http.MaxBytesReader for
// it does not make the server close the connection: it knows the server's own writer
// only. An http.MaxBytesHandler around the Handler does.
//
// If the request has a body, next gets a copy of the request, whose body can read and
// close and nothing else. Pattern and the parsed forms are copied back when next has
// returned. The time in which the client sends the body is part of the call for
// atomicbreaker.SlowRate.
//
// A request must not pass the same breaker twice, through two Handlers with one
// Group and key: a half-open breaker would reject its own probe.
//
// Handler is wait-free. It takes effect at once, and requests as Group.Allow
// and GroupPermit.Done do.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		panic("breakerhttp: Middleware.Handler called with a nil handler")
	}
	// LP(Handler): Group.Allow and the methods of GroupPermit, for each request.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(next, w, r) })
}

func (m *Middleware) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	key := m.key(r)
	permit, err := m.Group().Allow(key)
	if err != nil {
		m.reject(w, r, key)
		return
	}
	r, in := watchIncoming(r)
	answer := &response{ResponseWriter: w, m: m, req: r, in: in, permit: permit}
	defer answer.unwind()
	next.ServeHTTP(answer.handOn(), r)
	answer.begin(http.StatusOK)
	answer.end()
}

// reject answers a request that was not admitted.
func (m *Middleware) reject(w http.ResponseWriter, r *http.Request, key string) {
	// The breaker may have changed since, and then another answer is better.
	if s, ok := seconds(m.Group().Snapshot(key).RetryAfter); ok {
		w.Header().Set("Retry-After", strconv.FormatInt(s, 10))
	}
	if m.config.Rejected != nil {
		m.config.Rejected.ServeHTTP(w, r)
		return
	}
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// seconds rounds up, and makes zero one, as that would call for a retry at once.
// It fails if the time is not known.
func seconds(d time.Duration) (int64, bool) {
	if d == math.MaxInt64 {
		return 0, false
	}
	return int64((d-1)/time.Second) + 1, true
}

func (m *Middleware) outcome(r *http.Request, status int) atomicbreaker.Outcome {
	if m.config.Classify != nil {
		return m.config.Classify(r, status)
	}
	return ClassifyStatus(r, status)
}

func (m *Middleware) key(r *http.Request) string {
	if m.config.Key != nil {
		return m.config.Key(r)
	}
	return r.Pattern
}

// Group returns the group of the Middleware's breakers, also if MiddlewareConfig.Group
// is nil. Through it the breakers can be read and changed while they are in use.
//
// Group is wait-free. It takes effect at once: the group is always the same.
func (m *Middleware) Group() *atomicbreaker.Group[string] {
	// LP(Group): nothing is shared.
	if m.config.Group != nil {
		return m.config.Group
	}
	return &m.own
}
