package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/pool"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// answers says which answer an error gets. The first that matches counts.
var answers = []struct {
	err    error
	status int
	code   api.Code
}{
	{state.ErrInvalidName, http.StatusBadRequest, api.CodeInvalidName},
	{service.ErrInvalid, http.StatusBadRequest, api.CodeInvalid},
	{state.ErrNotFound, http.StatusNotFound, api.CodeNotFound},
	{state.ErrExists, http.StatusConflict, api.CodeExists},
	{state.ErrConflict, http.StatusPreconditionFailed, api.CodeConflict},
	{state.ErrNoActive, http.StatusConflict, api.CodeNoActiveChangeset},
	{state.ErrElsewhere, http.StatusConflict, api.CodeElsewhere},
	{state.ErrUnavailable, http.StatusServiceUnavailable, api.CodeUnavailable},
	{state.ErrUnknown, http.StatusGatewayTimeout, api.CodeUnknown},
	{state.ErrApplying, http.StatusConflict, api.CodeApplying},
	{service.ErrAlreadyApplied, http.StatusConflict, api.CodeAlreadyApplied},
	{engine.ErrKeyReused, http.StatusConflict, api.CodeKeyReused},
	{service.ErrTooManyDatabases, http.StatusConflict, api.CodeTooManyDatabases},
	{service.ErrEngine, http.StatusInternalServerError, api.CodeEngine},
	{pool.ErrBusy, http.StatusServiceUnavailable, api.CodeBusy},
	{service.ErrStopping, http.StatusServiceUnavailable, api.CodeStopping},
	{pool.ErrClosed, http.StatusServiceUnavailable, api.CodeStopping},
	{cowchangeset.ErrStore, http.StatusInternalServerError, api.CodeInternal},
}

func (h *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var answer *api.Error
	if !errors.As(err, &answer) {
		answer = &api.Error{Status: http.StatusInternalServerError, Code: api.CodeInternal, Message: err.Error()}
		for _, a := range answers {
			if errors.Is(err, a.err) {
				answer.Status, answer.Code = a.status, a.code
				break
			}
		}
	}
	if answer.Status >= 500 && !errors.Is(err, context.Canceled) {
		h.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", answer.Status, "error", err)
	}
	h.writeError(w, answer)
}

func (h *server) writeError(w http.ResponseWriter, e *api.Error) {
	if e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Del("ETag")
	h.writeJSON(w, e.Status, api.ErrorBody{Error: e})
}
