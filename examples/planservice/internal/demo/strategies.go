package demo

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// remoteStrategies are those that the demo answers itself.
var remoteStrategies = []string{"warehouse", "mail", "search", "reports"}

// strategies serves endpoints of strategies: one that is down at times, two that always are,
// and a slow one.
type strategies struct {
	server          *http.Server
	address         string
	warehouseIsDown atomic.Bool
	ended           chan error
}

func serveStrategies(tick time.Duration) (*strategies, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &strategies{address: listener.Addr().String(), ended: make(chan error, 1)}
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	routes := http.NewServeMux()
	routes.HandleFunc("/mail", down)
	routes.HandleFunc("/search", down)
	routes.HandleFunc("/warehouse", func(w http.ResponseWriter, r *http.Request) {
		if s.warehouseIsDown.Load() {
			down(w, r)
		}
	})
	routes.HandleFunc("/reports", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(tick / 2):
		case <-r.Context().Done():
		}
	})
	s.server = &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

func (s *strategies) url(name string) string { return "http://" + s.address + "/" + name }

func (s *strategies) close() error { return errors.Join(s.server.Close(), <-s.ended) }
