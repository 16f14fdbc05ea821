package proxy

import (
	"net/http"
	"sync"
	"time"
)

// Before is the usual way: a map of breakers by host, and a mutex around both.
type Before struct {
	base     http.RoundTripper
	settings func(host string) Settings

	mu    sync.Mutex
	hosts map[string]*host
}

type host struct {
	settings  Settings
	failures  int       // in a row
	openUntil time.Time // zero while it is closed
}

// NewBefore returns a transport that sends by base.
func NewBefore(base http.RoundTripper, settings func(host string) Settings) *Before {
	return &Before{base: base, settings: settings, hosts: map[string]*host{}}
}

// RoundTrip implements [http.RoundTripper].
func (b *Before) RoundTrip(r *http.Request) (*http.Response, error) {
	if !b.allow(r.URL.Host) {
		return nil, errOpen
	}
	answer, err := b.base.RoundTrip(r)
	if r.Context().Err() == nil { // else the client has left, which says nothing about the host
		b.report(r.URL.Host, err == nil && answer.StatusCode < 500)
	}
	return answer, err
}

func (b *Before) allow(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.get(name)
	return h.openUntil.IsZero() || !time.Now().Before(h.openUntil)
}

func (b *Before) report(name string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.get(name)
	if ok {
		h.failures, h.openUntil = 0, time.Time{}
		return
	}
	h.failures++
	if h.failures >= h.settings.Failures {
		h.openUntil = time.Now().Add(h.settings.Open)
	}
}

// get returns the breaker of a host, which it makes if there is none.
func (b *Before) get(name string) *host {
	h := b.hosts[name]
	if h == nil {
		h = &host{settings: b.settings(name)}
		b.hosts[name] = h
	}
	return h
}
