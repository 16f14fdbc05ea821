package web

import (
	"context"
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
	return get(h, w, r, h.s.Action)
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
	return get(h, w, r, h.s.Plan)
}

func (h *server) listPlans(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Plans())
}

func (h *server) createStrategy(w http.ResponseWriter, r *http.Request) error {
	return create(h, w, r, h.s.CreateStrategy, func(st api.Strategy) string { return "/v1/strategies/" + url.PathEscape(st.Name) })
}

func (h *server) putStrategy(w http.ResponseWriter, r *http.Request) error {
	return put(h, w, r, h.s.PutStrategy)
}

func (h *server) getStrategy(w http.ResponseWriter, r *http.Request) error {
	return get(h, w, r, h.s.Strategy)
}

func (h *server) listStrategies(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Strategies())
}

func get[T any](h *server, w http.ResponseWriter, r *http.Request, get func(name string) (api.Stored[T], error)) error {
	v, err := get(r.PathValue("name"))
	if err != nil {
		return err
	}
	return writeStored(h, w, r, http.StatusOK, v)
}

func create[T any](h *server, w http.ResponseWriter, r *http.Request, create func(context.Context, T) (api.Stored[T], error), location func(T) string) error {
	v, err := read[T](w, r)
	if err != nil {
		return err
	}
	stored, err := create(r.Context(), v)
	if err != nil {
		return err
	}
	w.Header().Set("Location", location(stored.Value))
	return writeStored(h, w, r, http.StatusCreated, stored)
}

func put[T any](h *server, w http.ResponseWriter, r *http.Request, put func(context.Context, string, uint64, T) (api.Stored[T], error)) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	v, err := read[T](w, r)
	if err != nil {
		return err
	}
	stored, err := put(r.Context(), r.PathValue("name"), version, v)
	if err != nil {
		return err
	}
	return writeStored(h, w, r, http.StatusOK, stored)
}
