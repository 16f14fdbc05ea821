package web

import (
	"bufio"
	"encoding/json"
	"net/http"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

func (h *server) runPlan(w http.ResponseWriter, r *http.Request) error {
	body, err := readOptional[api.RunPlan](w, r)
	if err != nil {
		return err
	}
	run, err := h.s.Run(r.Context(), r.PathValue("name"), body)
	return h.answer(w, http.StatusOK, run, err)
}

func (h *server) applyPlan(w http.ResponseWriter, r *http.Request) error {
	body, err := readOptional[api.ApplyChangeset](w, r)
	if err != nil {
		return err
	}
	all, err := h.s.ApplyPlan(r.Context(), r.PathValue("name"), r.Header.Get("Idempotency-Key"), body.Database)
	return h.answer(w, http.StatusOK, all, err)
}

func (h *server) startChangeset(w http.ResponseWriter, r *http.Request) error {
	body, err := read[api.StartChangeset](w, r)
	if err != nil {
		return err
	}
	c, err := h.s.StartChangeset(r.Context(), body.Plan)
	return h.answer(w, http.StatusCreated, c, err)
}

func (h *server) listChangesets(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Changesets())
}

func (h *server) seal(w http.ResponseWriter, r *http.Request) error {
	c, err := h.s.Seal(r.Context(), r.PathValue("id"))
	return h.answer(w, http.StatusOK, c, err)
}

func (h *server) apply(w http.ResponseWriter, r *http.Request) error {
	body, err := readOptional[api.ApplyChangeset](w, r)
	if err != nil {
		return err
	}
	a, err := h.s.Apply(r.Context(), r.PathValue("id"), r.Header.Get("Idempotency-Key"), body.Database)
	return h.answer(w, http.StatusOK, a, err)
}

func (h *server) record(w http.ResponseWriter, r *http.Request) error {
	body, err := read[api.Change](w, r)
	if err != nil {
		return err
	}
	receipt, err := h.s.Record(r.Context(), body)
	return h.answer(w, http.StatusCreated, receipt, err)
}

func (h *server) audit(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/jsonl")
	b := bufio.NewWriterSize(w, 32<<10)
	e := json.NewEncoder(b)
	for line := range h.s.Audit() {
		if err := e.Encode(line); err != nil {
			panic(http.ErrAbortHandler) // so that the client does not take a part for the whole
		}
	}
	b.Flush() // it fails if the client has left
	return nil
}

func (h *server) listEngines(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Engines())
}

func (h *server) listBreakers(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Breakers())
}

func (h *server) resetBreaker(w http.ResponseWriter, r *http.Request) error {
	if err := h.s.ResetBreaker(r.PathValue("strategy")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *server) resetBreakers(w http.ResponseWriter, _ *http.Request) error {
	if err := h.s.ResetBreakers(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *server) answer(w http.ResponseWriter, status int, v any, err error) error {
	if err != nil {
		return err
	}
	return h.writeJSON(w, status, v)
}
