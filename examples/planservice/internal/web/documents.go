package web

import (
	"net/http"
	"net/url"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

func (h *server) createAction(w http.ResponseWriter, r *http.Request) error {
	return create(h, w, r, h.s.CreateAction, func(a api.Action) string { return "/v1/actions/" + url.PathEscape(a.Name) })
}

func (h *server) putAction(w http.ResponseWriter, r *http.Request) error {
	return put(h, w, r, h.s.PutAction)
}

func (h *server) getAction(w http.ResponseWriter, r *http.Request) error {
	v, err := h.s.Action(r.PathValue("name"))
	if err != nil {
		return err
	}
	return writeStored(h, w, r, http.StatusOK, v)
}

func (h *server) listActions(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Actions())
}

func (h *server) createPlan(w http.ResponseWriter, r *http.Request) error {
	return create(h, w, r, h.s.CreatePlan, func(p api.Plan) string { return "/v1/plans/" + url.PathEscape(p.Name) })
}

func (h *server) putPlan(w http.ResponseWriter, r *http.Request) error {
	return put(h, w, r, h.s.PutPlan)
}

func (h *server) getPlan(w http.ResponseWriter, r *http.Request) error {
	v, err := h.s.Plan(r.PathValue("name"))
	if err != nil {
		return err
	}
	return writeStored(h, w, r, http.StatusOK, v)
}

func (h *server) listPlans(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Plans())
}

func create[T any](h *server, w http.ResponseWriter, r *http.Request, create func(T) (api.Stored[T], error), location func(T) string) error {
	v, err := read[T](w, r)
	if err != nil {
		return err
	}
	stored, err := create(v)
	if err != nil {
		return err
	}
	w.Header().Set("Location", location(stored.Value))
	return writeStored(h, w, r, http.StatusCreated, stored)
}

func put[T any](h *server, w http.ResponseWriter, r *http.Request, put func(string, uint64, T) (api.Stored[T], error)) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	v, err := read[T](w, r)
	if err != nil {
		return err
	}
	stored, err := put(r.PathValue("name"), version, v)
	if err != nil {
		return err
	}
	return writeStored(h, w, r, http.StatusOK, stored)
}
