package web

import (
	"fmt"
	"net/http"
)

func (h *server) status(w http.ResponseWriter, _ *http.Request) error {
	return h.writeJSON(w, http.StatusOK, h.s.Status())
}

func (h *server) health(w http.ResponseWriter, _ *http.Request) error {
	fmt.Fprintln(w, "ok")
	return nil
}

func (h *server) ready(w http.ResponseWriter, _ *http.Request) error {
	if err := h.s.Unready(); err != nil {
		return err
	}
	fmt.Fprintln(w, "ready")
	return nil
}
