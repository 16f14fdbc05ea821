package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
)

//go:embed static
var files embed.FS

//go:embed template
var templates embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"duration": duration}).ParseFS(templates, "template/*.html"))

// How many plans and breakers the page has at most.
const (
	shownPlans    = 12
	shownBreakers = 20
)

// view is what the page shows.
type view struct {
	api.Status
	Strategies int // that there are
	Now        service.Sample
	Top        float64 // of the curve
	Path       string  // of the curve: one unit to the right for each second
}

func (h *server) render(name string) ([]byte, error) {
	v := view{Status: h.s.Status(), Top: 1}
	v.Plans = v.Plans[:min(len(v.Plans), shownPlans)]
	v.Strategies = len(v.Breakers)
	slices.SortStableFunc(v.Breakers, func(a, b api.Breaker) int {
		return cmp.Or(b2i(a.State == "Closed")-b2i(b.State == "Closed"), b.Failures-a.Failures)
	})
	v.Breakers = v.Breakers[:min(v.Strategies, shownBreakers)]
	history := h.s.History()
	for _, s := range history {
		v.Now, v.Top = s, max(v.Top, s.Recorded)
	}
	for i, s := range history {
		v.Path += fmt.Sprintf("%c%d %.1f", "LM"[b2i(i == 0)], 60-len(history)+i, 98-96*s.Recorded/v.Top)
	}
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, v)
	return b.Bytes(), err
}

// duration is one of so many milliseconds as people read it.
func duration(milliseconds int64) time.Duration {
	d := time.Duration(milliseconds) * time.Millisecond
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (h *server) static(w http.ResponseWriter, r *http.Request) error {
	http.ServeFileFS(w, r, files, "static/"+r.PathValue("file"))
	return nil
}

func (h *server) page(w http.ResponseWriter, _ *http.Request) error {
	text, err := h.render("page")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'")
	w.Write(text) // it fails if the client has left
	return nil
}

// events sends the content of the page each second.
func (h *server) events(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		text, err := h.render("content")
		if err != nil {
			h.log.Error("the status page fails", "error", err)
			return nil
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(string(text), "\n", "\ndata: ")); err != nil {
			return nil // the client has left
		}
		if err := control.Flush(); err != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-h.stop:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}
