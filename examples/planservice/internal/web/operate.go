package web

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

func (h *server) status(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Status())
}

func (h *server) health(w http.ResponseWriter, _ *http.Request) error {
	fmt.Fprintln(w, "ok")
	return nil
}

func (h *server) ready(w http.ResponseWriter, _ *http.Request) error {
	if !h.s.Ready() {
		return &api.Error{Status: http.StatusServiceUnavailable, Code: api.CodeStopping, Message: "the service shuts down"}
	}
	fmt.Fprintln(w, "ready")
	return nil
}

// metrics writes the text format of Prometheus.
func (h *server) metrics(w http.ResponseWriter, _ *http.Request) error {
	c := h.s.Counts()
	var b bytes.Buffer
	metric := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP planservice_%s %s\n# TYPE planservice_%s %s\n", name, help, name, kind)
	}
	one := func(name, kind, help string, value uint64) {
		metric(name, kind, help)
		fmt.Fprintf(&b, "planservice_%s %d\n", name, value)
	}
	one("http_requests_total", "counter", "HTTP requests.", c.Requests)
	one("runs_total", "counter", "Plans that were run.", c.Runs)
	metric("strategy_calls_total", "counter", "Calls of strategies, by outcome.")
	for outcome, n := range map[string]uint64{api.OutcomeSuccess: c.Successes, api.OutcomeFailure: c.Failures, api.OutcomeRejected: c.Rejected} {
		fmt.Fprintf(&b, "planservice_strategy_calls_total{outcome=%q} %d\n", outcome, n)
	}
	one("changes_recorded_total", "counter", "Changes that were recorded.", c.Recorded)
	one("changes_unrecorded_total", "counter", "Changes that could not be recorded.", c.Unrecorded)
	one("changes_written_total", "counter", "Changes that were written to databases.", c.Written)
	one("changesets_started_total", "counter", "Changesets that were started.", c.Started)
	one("changesets_applied_total", "counter", "Changesets that were applied.", c.Applied)
	one("actions", "gauge", "Actions that there are.", c.Actions)
	one("plans", "gauge", "Plans that there are.", c.Plans)
	one("workers", "gauge", "Workers that call strategies.", uint64(c.Workers))
	one("workers_busy", "gauge", "Workers that call a strategy now.", uint64(c.Busy))
	one("tasks_queued", "gauge", "Tasks that wait for a worker.", uint64(c.Queued))
	one("engines", "gauge", "Engines that are open.", uint64(len(h.s.Engines())))
	metric("breaker_open", "gauge", "Whether the breaker of a strategy rejects calls.")
	breakers := h.s.Breakers()
	for _, br := range breakers {
		open := 0
		if br.State == "Open" {
			open = 1
		}
		fmt.Fprintf(&b, "planservice_breaker_open{strategy=%q} %d\n", br.Strategy, open)
	}
	metric("breaker_failures", "gauge", "Failures in a row of a strategy.")
	for _, br := range breakers {
		fmt.Fprintf(&b, "planservice_breaker_failures{strategy=%q} %d\n", br.Strategy, br.Failures)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b.Bytes()) // it fails if the client has left
	return nil
}
