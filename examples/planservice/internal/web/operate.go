package web

import (
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
