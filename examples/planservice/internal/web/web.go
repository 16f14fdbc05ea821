// Package web is planservice's HTTP.
package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
)

type server struct {
	s    *service.Service
	log  *slog.Logger
	mux  *http.ServeMux
	stop <-chan struct{}
	// origin refuses what a page of another site lets a browser post.
	origin *http.CrossOriginProtection
}

// New returns the handler of all routes. Streams of events end when stop is closed.
func New(s *service.Service, log *slog.Logger, stop <-chan struct{}) http.Handler {
	h := &server{s, log, http.NewServeMux(), stop, http.NewCrossOriginProtection()}
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /v1/actions":                   h.createAction,
		"GET /v1/actions":                    h.listActions,
		"GET /v1/actions/{name}":             h.getAction,
		"PUT /v1/actions/{name}":             h.putAction,
		"POST /v1/plans":                     h.createPlan,
		"GET /v1/plans":                      h.listPlans,
		"GET /v1/plans/{name}":               h.getPlan,
		"PUT /v1/plans/{name}":               h.putPlan,
		"POST /v1/plans/{name}/run":          h.runPlan,
		"POST /v1/plans/{name}/apply":        h.applyPlan,
		"POST /v1/strategies":                h.createStrategy,
		"GET /v1/strategies":                 h.listStrategies,
		"GET /v1/strategies/{name}":          h.getStrategy,
		"PUT /v1/strategies/{name}":          h.putStrategy,
		"POST /v1/changesets":                h.startChangeset,
		"GET /v1/changesets":                 h.listChangesets,
		"POST /v1/changesets/{id}/seal":      h.seal,
		"POST /v1/changesets/{id}/apply":     h.apply,
		"POST /v1/changes":                   h.record,
		"GET /v1/audit":                      h.audit,
		"GET /v1/engines":                    h.listEngines,
		"GET /v1/breakers":                   h.listBreakers,
		"POST /v1/breakers/reset":            h.resetBreakers,
		"POST /v1/breakers/{strategy}/reset": h.resetBreaker,
		"GET /v1/status":                     h.status,
		"GET /healthz":                       h.health,
		"GET /readyz":                        h.ready,
		"GET /{$}":                           h.page,
		"GET /static/{file}":                 h.static,
		"GET /events":                        h.events,
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				h.fail(w, r, err)
			}
		})
	}
	h.mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics(), promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError)}))
	h.mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	h.mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	h.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	h.mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	h.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return h
}

func (h *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.s.CountRequest()
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			h.log.Error("a handler panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			h.fail(w, r, fmt.Errorf("a handler panicked"))
		}
	}()
	if err := h.origin.Check(r); err != nil {
		h.writeError(w, &api.Error{Status: http.StatusForbidden, Code: api.CodeCrossOrigin, Message: err.Error()})
		return
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.noRoute(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// noRoute answers in JSON what the mux would answer in text: 404, 405, or a redirect to
// the clean path.
func (h *server) noRoute(w http.ResponseWriter, r *http.Request) {
	answer := headerOnly{header: w.Header()}
	h.mux.ServeHTTP(&answer, r)
	w.Header().Del("X-Content-Type-Options")
	e := &api.Error{Status: answer.status, Code: api.CodeNotFound, Message: "no such route"}
	switch {
	case answer.status == http.StatusMethodNotAllowed:
		e.Code, e.Message = api.CodeMethod, "allowed: "+w.Header().Get("Allow")
	case answer.status < 400:
		w.WriteHeader(answer.status)
		return
	}
	h.writeError(w, e)
}

// headerOnly takes an answer's status and header, and drops the rest.
type headerOnly struct {
	header http.Header
	status int
}

func (w *headerOnly) Header() http.Header         { return w.header }
func (w *headerOnly) WriteHeader(status int)      { w.status = status }
func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
