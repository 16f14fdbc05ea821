package web

import (
	"embed"
	"net/http"
)

//go:embed static
var files embed.FS

func (h *server) static(w http.ResponseWriter, r *http.Request) error {
	http.ServeFileFS(w, r, files, "static/"+r.PathValue("file"))
	return nil
}

func (h *server) page(w http.ResponseWriter, r *http.Request) error { return h.status(w, r) }

func (h *server) events(w http.ResponseWriter, r *http.Request) error { return h.status(w, r) }
